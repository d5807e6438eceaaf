import type { SearchClause } from '../../../fhir/index.ts'
import { buildAccessCondition, selectCompartment } from './access-condition.ts'
import { buildCondition, type LeadingClause, selectRids } from './conditions.ts'
import type { QueryContext } from './query-context.ts'
import { all, name, type Sql, sql } from './sql.ts'

/**
 * The resources of a type that live, that the caller reaches, and for which all clauses hold. The best of the
 * clauses begins; the others are looked up for what it finds. Where each holds for many, the search goes through the
 * type: it soon has a page. With a compartment, only what is in that patient's.
 */
export function selectCurrent(
  scene: QueryContext,
  type: string,
  clauses: readonly SearchClause[],
  columns: Sql,
  row: string,
  compartment?: string,
): Sql {
  const inside = compartment === undefined ? undefined : [{ patient: compartment }]
  const lead = leadOf(scene, type, clauses)
  const start = lead
    ? selectRids(scene, type, lead)
    : selectCompartment(scene, type, inside ?? scene.filter(type))
  const tid = scene.names.typeId(type)
  return sql`SELECT ${columns} FROM resource ${name(row)} WHERE ${all([
    // With a start the plus keeps SQLite from beginning with all resources of the type.
    start
      ? sql`${name(row)}.rid IN (${start}) AND +${name(row)}.tid = ${tid}`
      : sql`${name(row)}.tid = ${tid}`,
    isCurrentMatch(scene, type, lead ? clauses.filter(clause => clause !== lead) : clauses, row),
    ...(inside ? [buildAccessCondition(scene, type, inside, row)] : []),
  ])}`
}

/** Whether the resource in a row of the type lives, is reached by the caller, and all clauses hold for it. */
export function isCurrentMatch(
  scene: QueryContext,
  type: string,
  clauses: readonly SearchClause[],
  row: string,
): Sql {
  const filter = scene.filter(type)
  return all([
    sql`${name(row)}.deleted = 0`,
    ...clauses.map(clause => buildCondition(scene, type, clause, row)),
    ...(filter === 'everything' ? [] : [buildAccessCondition(scene, type, filter, row)]),
  ])
}

/**
 * Whether a search looks at no more resources than it finds, or begins with few. Of a limited caller only the grant
 * tells: whether a clause holds for few is a matter of everybody's data.
 */
export function isBounded(scene: QueryContext, type: string, clauses: readonly SearchClause[]): boolean {
  const filter = scene.filter(type)
  if (filter !== 'everything') return selectCompartment(scene, type, filter) !== undefined
  return clauses.length === 0 || leadOf(scene, type, clauses) !== undefined
}

// A search is counted and run, each of which asks.
const leads = new WeakMap<readonly SearchClause[], { readonly lead: LeadingClause | undefined }>()

function leadOf(
  scene: QueryContext,
  type: string,
  clauses: readonly SearchClause[],
): LeadingClause | undefined {
  const known = leads.get(clauses)
  if (known) return known.lead
  const { isFew = () => true } = scene
  const lead = clauses
    .filter(canLead)
    .toSorted((a, b) => rank(a) - rank(b))
    .find(clause => rank(clause) <= SURELY_FEW || isFew(selectRids(scene, type, clause)))
  leads.set(clauses, { lead })
  return lead
}

function canLead(clause: SearchClause): clause is LeadingClause {
  return clause.kind !== 'missing' && !(clause.kind === 'token' && clause.negated)
}

const SURELY_FEW = 1
const OF_ONE_PATIENT: ReadonlySet<string> = new Set(['patient', 'subject', 'encounter'])

// How few resources a clause is likely to leave.
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
