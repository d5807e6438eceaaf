import type { Access, Reach } from '../../consent/index.ts'
import type { Letter } from '../../scope/index.ts'
import type { Names } from '../repository/names.ts'
import type { Repository } from '../repository/repository.ts'
import { type Sql, sql } from './sql.ts'

/** What a search knows beside its clauses. */
export interface Scene {
  readonly names: Names
  readonly baseUrl: string
  /** What the caller reaches of a type by searching it. Chains, too, look only there (contract 5.3). */
  readonly reach: (type: string) => Reach
  /** Whether a subquery gives so few rows that a search had better begin with it. Unless told, it does. */
  readonly isFew?: (rids: Sql) => boolean
}

const FEW = 3000

export function sceneOf({ names, baseUrl, database }: Repository, access: Access, letter: Letter): Scene {
  return {
    names,
    baseUrl,
    reach: type => access.reach(type, letter),
    isFew(rids) {
      const { text, values } = sql`SELECT count(*) FROM (SELECT 1 FROM (${rids}) LIMIT ${FEW + 1})`
      return Number(database.rows(text, values)[0]?.[0]) <= FEW
    },
  }
}
