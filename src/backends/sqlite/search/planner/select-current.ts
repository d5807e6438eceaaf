import type {
  ChainClause,
  EntryClause,
  HasClause,
  ReferenceValue,
  SearchClause,
  TokenClause,
  TypeQuery,
} from '../../../../fhir/index.ts'
import type { AccessFilter } from '../../../../smart/index.ts'
import { findCandidates, selectCompartment, selectOfPatients } from './access-condition.ts'
import { selectOfRanges, selectRange } from './clause-walk.ts'
import { buildCurrentCondition, toQuery } from './current-condition.ts'
import { canSelect, isOfColumn, isOfTime, selectByEntries } from './own-condition.ts'
import type { SearchScope } from './search-scope.ts'
import { name, type Sql, sql, union } from './sql.ts'

/**
 * Selects the current resources of a type that are within the caller's access and for which all clauses hold. It starts
 * with the few resources of the most selective clause or of the access filter, and evaluates the rest on them. Where
 * nothing is selective, the caller reads the type in steps: it soon has a page.
 */
export function selectCurrent(scope: SearchScope, query: TypeQuery, row: string): Sql {
  const start = findStart(scope, query)
  const r = name(row)
  const tid = scope.names.typeId(query.type)
  const clauses = query.clauses.filter(clause => clause !== start?.clause)
  const condition = buildCurrentCondition(scope, { ...query, clauses }, row)
  return start
    ? // The plus keeps SQLite from starting with all resources of the type.
      sql`SELECT ${r}.rid FROM resource ${r} WHERE ${r}.rid IN (${start.rids}) AND +${r}.tid = ${tid} AND ${condition}`
    : sql`SELECT ${r}.rid FROM resource ${r} INDEXED BY resource_live WHERE ${r}.tid = ${tid} AND ${condition}`
}

/** The resources that a search starts with. */
export interface Start {
  readonly rids: Sql
  /** The clause that holds for all of them. */
  readonly clause?: LeadingClause
  /** Whether they are all of one patient, and so may be many. */
  readonly isOfPatient?: true
}

/**
 * The few resources among which are all that a search finds; undefined if there are many. `compartment` limits the search,
 * but not the resources that a chain passes through.
 */
export function findStart(
  scope: SearchScope,
  { type, clauses }: TypeQuery,
  compartment?: string,
): Start | undefined {
  const leading = clauses.filter(canLead).toSorted((a, b) => rank(a) - rank(b))
  const toStart = (clause: LeadingClause): Start => ({ rids: selectRids(scope, type, clause), clause })
  const [first] = leading
  const isFirstFew = first && rank(first) <= SURELY_FEW
  if (isFirstFew && findsOwn(scope, type, first)) return toStart(first)
  const access = findAccessStart(scope, type, compartment)
  if (access) return access
  if (isFirstFew) return toStart(first)
  const clause = leading.slice(0, MAX_PROBES).find(it => leadsToFew(scope, type, it))
  return clause && toStart(clause)
}

/**
 * Whether the resources that a clause finds are the caller's own, or one for each value. Otherwise a limited caller's search
 * starts with the access filter: the time must not reveal how many resources of other patients a clause finds.
 */
function findsOwn(scope: SearchScope, type: string, clause: LeadingClause): boolean {
  const filter = scope.filter(type)
  if (filter === 'everything') return true
  if (clause.kind !== 'reference') return clause.parameter === '_id'
  const isGranted = ({ id }: LocalValue) => filter.some(({ patient }) => patient === id)
  return clause.values.every(
    value => isOfTypes(value) && (isGranted(value) || isVisible(scope, selectNamed(scope, value))),
  )
}

type LocalValue = Extract<ReferenceValue, { readonly types: unknown }> & { readonly types: readonly string[] }

function isOfTypes(value: ReferenceValue): value is LocalValue {
  return value.kind === 'local' && value.types !== undefined
}

/** The resource that a value names, if it is within the caller's access. */
function selectNamed(scope: SearchScope, { types, id }: LocalValue): Sql {
  return union(types.map(type => selectById(scope, type, id)))
}

function selectById(scope: SearchScope, type: string, id: string): Sql {
  return sql`SELECT o.rid FROM resource o WHERE o.tid = ${scope.names.typeId(type)} AND o.id = ${id}
    AND ${buildCurrentCondition(scope, { type, clauses: [] }, 'o')}`
}

function isVisible(scope: SearchScope, rows: Sql): boolean {
  return !scope.isFew(rows, 0)
}

/** The clauses that are tried. More are seldom of use, and each takes time. */
const MAX_PROBES = 8

/** The most resources at the other end of a chain with which a search starts. */
export const FEW_LINKS = 500

/** Whether reading few index rows, matches or not, finds all resources for which a clause holds. */
function leadsToFew(scope: SearchScope, type: string, clause: LeadingClause): boolean {
  const few: SearchScope = { ...scope, isFew: (rows, most = FEW_LINKS) => scope.isFew(rows, most) }
  switch (clause.kind) {
    case 'chain':
      return (
        clause.targets.every(target => startsWithFew(few, toQuery(target))) &&
        scope.isFew(selectRids(scope, type, clause))
      )
    case 'has':
      return startsWithFew(few, toQuery(clause)) && scope.isFew(selectRids(scope, type, clause))
    default: {
      // It holds for all other times, which no index finds.
      if (isOfTime(clause) && clause.values.some(({ prefix }) => prefix === 'ne')) return false
      const rows = isOfColumn(clause)
        ? selectByEntries(scope.names, type, clause)
        : selectRange(scope.names, type, clause)
      return rows !== undefined && scope.isFew(rows)
    }
  }
}

function startsWithFew(scope: SearchScope, query: TypeQuery): boolean {
  const start = findStart(scope, query)
  return start !== undefined && (!start.isOfPatient || scope.isFew(start.rids))
}

/** The resources of the compartment, if it is one of the caller's, or of the access filter, if they are few. */
export function findAccessStart(scope: SearchScope, type: string, compartment?: string): Start | undefined {
  const inCompartment = compartment === undefined ? undefined : startOfPatient(scope, type, compartment)
  const filter = scope.filter(type)
  if (filter === 'everything') return inCompartment
  if (compartment !== undefined && isOwnPatient(scope, type, compartment)) return inCompartment
  const patient = findOnePatient(filter)
  if (patient !== undefined) return startOfPatient(scope, type, patient)
  const rids = findCandidates(scope, type, filter)
  return rids && scope.isFew(rids) ? { rids } : inCompartment
}

function startOfPatient({ names }: SearchScope, type: string, patient: string): Start {
  return { rids: selectOfPatients(names, type, [patient]), isOfPatient: true }
}

/** Whether a compartment is one of the caller's. */
export function isOwnPatient(scope: SearchScope, type: string, patient: string): boolean {
  const filter = scope.filter(type)
  const isGranted = filter !== 'everything' && filter.some(constraint => constraint.patient === patient)
  return isGranted || isVisible(scope, selectById(scope, 'Patient', patient))
}

/** The patient of all constraints: granular scopes are several. */
function findOnePatient(filter: AccessFilter): string | undefined {
  const [patient, ...others] =
    filter === 'everything' ? [] : new Set(filter.map(constraint => constraint.patient))
  return others.length === 0 ? patient : undefined
}

export function isOfOnePatient(filter: AccessFilter): boolean {
  return findOnePatient(filter) !== undefined
}

/** The clauses that can start a search: the index finds the resources for which they hold. */
type LeadingClause = EntryClause | ChainClause | HasClause

/** The `rid`s of the resources for which a clause holds, as a subquery. */
function selectRids(scope: SearchScope, type: string, clause: LeadingClause): Sql {
  switch (clause.kind) {
    case 'chain':
      return union(
        clause.targets.map(target =>
          selectReferring(scope, type, clause, target.type, selectCurrent(scope, toQuery(target), 'l')),
        ),
      )
    case 'has':
      return selectReferred(scope, type, clause, selectCurrent(scope, toQuery(clause), 'l'))
    default:
      return selectOfRanges(scope.names, type, clause) ?? selectByEntries(scope.names, type, clause)
  }
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
export function isBounded(scope: SearchScope, { type, clauses }: TypeQuery): boolean {
  const filter = scope.filter(type)
  if (filter !== 'everything') return selectCompartment(scope.names, type, filter) !== undefined
  const own = clauses.filter(clause => passesOwn(scope, clause))
  return clauses.length === 0 || findStart(scope, { type, clauses: own }) !== undefined
}

/** Whether a chain passes only through resources of one patient, and of types that the caller may see whole. */
function passesOwn(scope: SearchScope, clause: SearchClause): boolean {
  const ends = clause.kind === 'chain' ? clause.targets : clause.kind === 'has' ? [clause] : []
  return ends.every(end => {
    const filter = scope.filter(end.type)
    return (filter === 'everything' || isOfOnePatient(filter)) && passesOwn(scope, end.clause)
  })
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
