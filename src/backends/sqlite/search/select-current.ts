import type { ChainClause, HasClause, SearchClause } from '../../../fhir/index.ts'
import {
  buildAccessCondition,
  findCandidates,
  selectCompartment,
  selectOfPatients,
} from './access-condition.ts'
import type { EntryClause } from './entry-match.ts'
import { buildOwnCondition, canSelect, selectByEntries } from './own-condition.ts'
import type { SearchScope } from './search-scope.ts'
import { all, any, join, name, type Sql, sql } from './sql.ts'

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
  const clause = leading.find(it => startsWithFew(scope, it) && scope.isFew(selectRids(scope, type, it)))
  return clause && toStart(clause)
}

const FEW_LINKS = 500

/** Whether a chain begins with few resources; otherwise it leads to many. */
function startsWithFew(scope: SearchScope, clause: LeadingClause): boolean {
  const few: SearchScope = { ...scope, isFew: (rows, most = FEW_LINKS) => scope.isFew(rows, most) }
  switch (clause.kind) {
    case 'chain':
      return clause.targets.every(target => findStart(few, target.type, [target.clause]) !== undefined)
    case 'has':
      return findStart(few, clause.type, [clause.clause]) !== undefined
    default:
      return true
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
  const filter = scope.filter(type)
  return all([
    sql`${name(row)}.deleted = 0`,
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
      return join(
        clause.targets.map(target => selectChained(scope, type, clause, target)),
        ' UNION ALL ',
      )
    case 'has':
      return selectReferred(scope, type, clause)
    default:
      return selectByEntries(scope.names, type, clause)
  }
}

function selectChained(
  scope: SearchScope,
  type: string,
  chain: ChainClause,
  target: ChainClause['targets'][number],
): Sql {
  const nid = scope.names.parameterId(type, chain.parameter)
  const targets = selectCurrent(scope, target.type, [target.clause], name('t.id'), 't')
  return sql`SELECT e.rid FROM (${targets}) f CROSS JOIN reference e ON e.nid = ${nid} AND e.id = f.id AND e.type = ${target.type}`
}

function selectReferred(scope: SearchScope, type: string, has: HasClause): Sql {
  const { names } = scope
  const nid = names.parameterId(has.type, has.parameter)
  const sources = selectCurrent(scope, has.type, [has.clause], name('t.rid'), 't')
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

/** Orders clauses by how selective they usually are. */
function rank(clause: LeadingClause): number {
  switch (clause.kind) {
    case 'token':
      return clause.parameter === '_id' ? 0 : clause.parameter === 'identifier' ? 1 : 6
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
