import type { SearchClause } from '../../fhir/index.ts'
import { condition, type LeadingClause, ridsOf } from './conditions.ts'
import { compartmentRids, reachCondition } from './reach-condition.ts'
import type { Scene } from './scene.ts'
import { all, name, type Sql, sql } from './sql.ts'

/**
 * The resources of a type that live, that the caller reaches, and for which all clauses hold. The best of the
 * clauses begins; the others are looked up for what it finds. With a compartment, only what is in that patient's.
 */
export function living(
  scene: Scene,
  type: string,
  clauses: readonly SearchClause[],
  columns: Sql,
  row: string,
  compartment?: string,
): Sql {
  const reach = scene.reach(type)
  const inside = compartment === undefined ? undefined : [{ patient: compartment }]
  const lead = leadOf(clauses)
  const start = lead ? ridsOf(scene, type, lead) : compartmentRids(scene, type, inside ?? reach)
  const conditions = clauses.filter(clause => clause !== lead).map(it => condition(scene, type, it, row))
  const tid = scene.names.typeId(type)
  return sql`SELECT ${columns} FROM resource ${name(row)} WHERE ${all([
    // With a start the plus keeps SQLite from beginning with all resources of the type.
    start
      ? sql`${name(row)}.rid IN (${start}) AND +${name(row)}.tid = ${tid}`
      : sql`${name(row)}.tid = ${tid}`,
    sql`${name(row)}.deleted = 0`,
    ...conditions,
    ...(inside ? [reachCondition(scene, type, inside, row)] : []),
    ...(reach === 'everything' ? [] : [reachCondition(scene, type, reach, row)]),
  ])}`
}

/** Whether a search looks at no more resources than it finds, or begins with few. */
export function isBounded(scene: Scene, type: string, clauses: readonly SearchClause[]): boolean {
  const reach = scene.reach(type)
  if (leadOf(clauses) !== undefined || compartmentRids(scene, type, reach) !== undefined) return true
  return clauses.length === 0 && reach === 'everything'
}

function leadOf(clauses: readonly SearchClause[]): LeadingClause | undefined {
  let best: LeadingClause | undefined
  for (const clause of clauses) if (canLead(clause) && (!best || rank(clause) < rank(best))) best = clause
  return best
}

function canLead(clause: SearchClause): clause is LeadingClause {
  return clause.kind !== 'missing' && !(clause.kind === 'token' && clause.negated)
}

// How few resources a clause is likely to leave.
function rank(clause: LeadingClause): number {
  switch (clause.kind) {
    case 'token':
      return clause.parameter === '_id' ? 0 : clause.parameter === 'identifier' ? 1 : 6
    case 'reference':
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
