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
  readonly isFew: (rows: Sql, most?: number) => boolean
  /** How many rows of an index one step of a long search reads. */
  readonly step: number
  /** Only the compartment of this patient (`Patient/1/Condition`). */
  readonly compartment?: string | undefined
  /** Only resources whose dates of care overlap this range. */
  readonly care?: DateRange | undefined
}

const FEW = 2000
const STEP = 500

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
    isFew: createProbe(database),
    step: STEP,
  }
}

/** Counts the rows of subqueries, each once, and no further than necessary. */
export function createProbe(database: Database): SearchScope['isFew'] {
  const known = new Map<string, boolean>()
  return (rows, most = FEW) => {
    const key = JSON.stringify([rows, most])
    const isFew = known.get(key) ?? countUpTo(database, rows, most + 1) <= most
    known.set(key, isFew)
    return isFew
  }
}

/** The number of rows; a negative limit is none. */
export function countUpTo(database: Database, rows: Sql, most = -1): number {
  const { text, values } = sql`SELECT count(*) FROM (SELECT 1 FROM (${rows}) LIMIT ${most})`
  return Number(database.rows(text, values)[0]?.[0])
}
