import type { ChainClause, HasClause, SearchClause, TokenClause } from '../../../fhir/index.ts'
import {
  buildAccessCondition,
  findCandidates,
  selectCompartment,
  selectOfPatients,
} from './access-condition.ts'
import { selectRange } from './clause-walk.ts'
import type { EntryClause } from './entry-match.ts'
import { buildOwnCondition, canSelect, isOfColumn, selectByEntries } from './own-condition.ts'
import type { SearchScope } from './search-scope.ts'
import { all, any, name, type Sql, sql, union } from './sql.ts'

/**
 * Selects the current resources of a type that are within the caller's access and for which all clauses hold. It starts
 * with the few resources of the most selective clause or of the access filter, and evaluates the rest on them. Where
 * nothing is selective, the caller reads the type in steps: it soon has a page. `compartment` limits the result, but not
 * the resources that a chain passes through.
 */
export function selectCurrent(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
  columns: Sql,
  row: string,
  compartment?: string,
): Sql {
  const start = findStart(scope, type, clauses, compartment)
  const [r, tid] = [name(row), scope.names.typeId(type)]
  const others = clauses.filter(clause => clause !== start?.clause)
  const condition = buildCurrentCondition(scope, type, others, row, compartment)
  return start
    ? // The plus keeps SQLite from starting with all resources of the type.
      sql`SELECT ${columns} FROM resource ${r} WHERE ${r}.rid IN (${start.rids}) AND +${r}.tid = ${tid} AND ${condition}`
    : sql`SELECT ${columns} FROM resource ${r} INDEXED BY resource_live WHERE ${r}.tid = ${tid} AND ${condition}`
}

/** The resources that a search starts with. */
export interface Start {
  readonly rids: Sql
  /** The clause that holds for all of them. */
  readonly clause?: LeadingClause
}

/** The few resources among which are all that a search finds; undefined if there are many. */
export function findStart(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
  compartment?: string,
): Start | undefined {
  const leading = clauses.filter(canLead).toSorted((a, b) => rank(a) - rank(b))
  const toStart = (clause: LeadingClause): Start => ({ rids: selectRids(scope, type, clause), clause })
  const [first] = leading
  if (first && rank(first) <= SURELY_FEW) return toStart(first)
  const access = findAccessStart(scope, type, compartment)
  if (access) return access
  const clause = leading.find(it => leadsToFew(scope, type, it))
  return clause && toStart(clause)
}

/** The most resources at the other end of a chain with which a search starts. */
export const FEW_LINKS = 500

/** Whether reading few index rows, matches or not, finds all resources for which a clause holds. */
function leadsToFew(scope: SearchScope, type: string, clause: LeadingClause): boolean {
  const few: SearchScope = { ...scope, isFew: (rows, most = FEW_LINKS) => scope.isFew(rows, most) }
  switch (clause.kind) {
    case 'chain':
      return (
        clause.targets.every(target => findStart(few, target.type, [target.clause])) &&
        scope.isFew(selectRids(scope, type, clause))
      )
    case 'has':
      return (
        findStart(few, clause.type, [clause.clause]) !== undefined &&
        scope.isFew(selectRids(scope, type, clause))
      )
    default: {
      const rows = isOfColumn(clause)
        ? selectByEntries(scope.names, type, clause)
        : selectRange(scope.names, type, clause)
      return rows !== undefined && scope.isFew(rows)
    }
  }
}

function findAccessStart(scope: SearchScope, type: string, compartment?: string): Start | undefined {
  if (compartment !== undefined) return { rids: selectOfPatients(scope.names, type, [compartment]) }
  const filter = scope.filter(type)
  if (filter === 'everything') return undefined
  const isOfOnePatient = filter.length === 1 && filter[0]?.patient !== undefined
  const rids = findCandidates(scope, type, filter)
  return rids && (isOfOnePatient || scope.isFew(rids)) ? { rids } : undefined
}

/**
 * Whether the resource in the row is current and within the caller's access, and all clauses hold for it. `rid` names its
 * number in a row that is read before: SQLite then evaluates most conditions without reading the resource.
 */
export function buildCurrentCondition(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
  row: string,
  compartment?: string,
  rid = `${row}.rid`,
): Sql {
  return all([sql`${name(row)}.deleted = 0`, buildConditions(scope, type, clauses, row, compartment, rid)])
}

/**
 * Whether the row of a resource need not be read: it is current, because it has search values, and all conditions are
 * evaluated on those.
 */
export function isDecidedByValues(
  { filter, compartment, care }: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
): boolean {
  const isOfValues = (clause: SearchClause) =>
    clause.kind !== 'chain' && clause.kind !== 'has' && (clause.kind === 'missing' || !isOfColumn(clause))
  return filter(type) === 'everything' && compartment === undefined && !care && clauses.every(isOfValues)
}

/** Whether the resource in the row, if it is current, is within the caller's access, and all clauses hold for it. */
export function buildConditions(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
  row: string,
  compartment?: string,
  rid = `${row}.rid`,
): Sql {
  const filter = scope.filter(type)
  return all([
    ...clauses.map(clause => buildCondition(scope, type, clause, row, rid)),
    ...(filter === 'everything' ? [] : [buildAccessCondition(scope, type, filter, row, rid)]),
    ...(compartment === undefined
      ? []
      : [buildAccessCondition(scope, type, [{ patient: compartment }], row)]),
  ])
}

/** Whether a clause holds for the resource of `type` in the row `row` of the table `resource`. */
function buildCondition(
  scope: SearchScope,
  type: string,
  clause: SearchClause,
  row: string,
  rid: string,
): Sql {
  switch (clause.kind) {
    case 'chain':
      return any(clause.targets.map(target => buildChainCondition(scope, type, clause, target, row)))
    case 'has':
      return buildHasCondition(scope, type, clause, row)
    default:
      return buildOwnCondition(scope.names, type, clause, row, rid)
  }
}

// Each link of a chain has an alias of its own.
function nextAlias(row: string): string {
  return `${row}t`
}

function buildChainCondition(
  scope: SearchScope,
  type: string,
  chain: ChainClause,
  target: ChainClause['targets'][number],
  row: string,
): Sql {
  const { names } = scope
  const [nid, tid] = [names.parameterId(type, chain.parameter), names.typeId(target.type)]
  const t = name(nextAlias(row))
  return sql`EXISTS (SELECT 1 FROM reference e CROSS JOIN resource ${t} ON ${t}.tid = ${tid} AND ${t}.id = e.id
    WHERE e.rid = ${name(row)}.rid AND e.nid = ${nid} AND e.type = ${target.type}
    AND ${buildCurrentCondition(scope, target.type, [target.clause], nextAlias(row))})`
}

function buildHasCondition(scope: SearchScope, type: string, has: HasClause, row: string): Sql {
  const nid = scope.names.parameterId(has.type, has.parameter)
  const t = name(nextAlias(row))
  return sql`EXISTS (SELECT 1 FROM reference e CROSS JOIN resource ${t} ON ${t}.rid = e.rid
    WHERE e.nid = ${nid} AND e.id = ${name(row)}.id AND e.type = ${type}
    AND ${buildCurrentCondition(scope, has.type, [has.clause], nextAlias(row))})`
}

/** The clauses that can start a search: the index finds the resources for which they hold. */
type LeadingClause = EntryClause | ChainClause | HasClause

/** The `rid`s of the resources for which a clause holds, as a subquery. */
function selectRids(scope: SearchScope, type: string, clause: LeadingClause): Sql {
  switch (clause.kind) {
    case 'chain':
      return union(
        clause.targets.map(target =>
          selectReferring(scope, type, clause, target.type, selectLinked(scope, target)),
        ),
      )
    case 'has':
      return selectReferred(scope, type, clause, selectLinked(scope, clause))
    default:
      return selectByEntries(scope.names, type, clause)
  }
}

function selectLinked(scope: SearchScope, { type, clause }: ChainClause['targets'][number]): Sql {
  return selectCurrent(scope, type, [clause], name('l.rid'), 'l')
}

/** The resources that refer to one of the targets. */
export function selectReferring(
  { names }: SearchScope,
  type: string,
  { parameter }: ChainClause,
  targetType: string,
  targets: Sql,
): Sql {
  const nid = names.parameterId(type, parameter)
  return sql`SELECT e.rid FROM (${targets}) f CROSS JOIN resource t ON t.rid = f.rid
    CROSS JOIN reference e ON e.nid = ${nid} AND e.id = t.id AND e.type = ${targetType}`
}

/** The resources to which one of the sources refers. */
export function selectReferred({ names }: SearchScope, type: string, has: HasClause, sources: Sql): Sql {
  const nid = names.parameterId(has.type, has.parameter)
  return sql`SELECT o.rid FROM (${sources}) f CROSS JOIN reference e ON e.rid = f.rid AND e.nid = ${nid} AND e.type = ${type}
    CROSS JOIN resource o ON o.tid = ${names.typeId(type)} AND o.id = e.id`
}

/**
 * Whether a search reads no more resources than it finds, or starts with few. For a limited caller the access filter
 * alone decides: how many resources a clause holds for depends on other patients' data.
 */
export function isBounded(scope: SearchScope, type: string, clauses: readonly SearchClause[]): boolean {
  const filter = scope.filter(type)
  if (filter !== 'everything') return selectCompartment(scope.names, type, filter) !== undefined
  return clauses.length === 0 || findStart(scope, type, clauses) !== undefined
}

function canLead(clause: SearchClause): clause is LeadingClause {
  return clause.kind === 'chain' || clause.kind === 'has' || canSelect(clause)
}

const SURELY_FEW = 1
const OF_ONE_PATIENT: ReadonlySet<string> = new Set(['patient', 'subject', 'encounter'])

function isIdentifier({ parameter, values }: TokenClause): boolean {
  return parameter === 'identifier' && values.every(({ code }) => code !== undefined)
}

/** Orders clauses by how selective they usually are. */
function rank(clause: LeadingClause): number {
  switch (clause.kind) {
    case 'token':
      return clause.parameter === '_id' ? 0 : isIdentifier(clause) ? 1 : 6
    case 'reference':
      return OF_ONE_PATIENT.has(clause.parameter) ? 1 : 2
    case 'identifier':
      return 2
    case 'chain':
    case 'has':
      return 3
    case 'uri':
      return 4
    case 'part':
    case 'string':
      return 5
    case 'text':
      return 7
    case 'number':
    case 'quantity':
      return 8
    case 'date':
      return 9
  }
}
