import type { Access, AccessFilter, Permission } from '../../../smart/index.ts'
import type { Names } from '../repository/names.ts'
import type { Repository } from '../repository/repository.ts'
import { type Sql, sql } from './sql.ts'

/** What a search knows beside its clauses. */
export interface QueryContext {
  readonly names: Names
  readonly baseUrl: string
  /** What the caller may search of a type. Chains, too, look only there (ROUTE-4). */
  readonly filter: (type: string) => AccessFilter
  /** Whether a subquery gives so few rows that a search had better begin with it. Unless told, it does. */
  readonly isFew?: (rids: Sql) => boolean
}

const FEW = 3000

export function createQueryContext(
  { names, baseUrl, database }: Repository,
  access: Access,
  permission: Permission,
): QueryContext {
  return {
    names,
    baseUrl,
    filter: type => access.filterFor(type, permission),
    isFew(rids) {
      const { text, values } = sql`SELECT count(*) FROM (SELECT 1 FROM (${rids}) LIMIT ${FEW + 1})`
      return Number(database.rows(text, values)[0]?.[0]) <= FEW
    },
  }
}
