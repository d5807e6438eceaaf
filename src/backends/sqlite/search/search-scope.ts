import type { DateRange } from '../../../fhir/index.ts'
import type { Access, AccessFilter, Permission } from '../../../smart/index.ts'
import type { Database } from '../repository/database.ts'
import type { Names } from '../repository/names.ts'
import type { Repository } from '../repository/repository.ts'
import { type Sql, sql } from './sql.ts'

/** The resources that a search may find. */
export interface SearchScope {
  readonly database: Database
  readonly names: Names
  readonly baseUrl: string
  /** The caller's access to a type. It also limits the resources that a chain passes through (ROUTE-4). */
  readonly filter: (type: string) => AccessFilter
  /** Whether a subquery returns so few rows that a search is fastest when it starts there. */
  readonly isFew: (rids: Sql) => boolean
  /** Only the compartment of this patient (`Patient/1/Condition`). */
  readonly compartment?: string | undefined
  /** Only resources whose dates of care overlap this range. */
  readonly care?: DateRange | undefined
}

const FEW = 3000

export function createSearchScope(
  { names, baseUrl, database }: Repository,
  access: Access,
  permission: Permission,
): SearchScope {
  return {
    database,
    names,
    baseUrl,
    filter: type => access.filterFor(type, permission),
    isFew(rids) {
      const { text, values } = sql`SELECT count(*) FROM (SELECT 1 FROM (${rids}) LIMIT ${FEW + 1})`
      return Number(database.rows(text, values)[0]?.[0]) <= FEW
    },
  }
}
