import type { ChainClause, DateClause, HasClause, SearchClause, TokenClause } from '../../../fhir/index.ts'
import { type EntryClause, entryMatch } from './entry-match.ts'
import { isLiving, living } from './living.ts'
import { missingCondition } from './missing.ts'
import { compared } from './ranges.ts'
import type { Scene } from './scene.ts'
import { any, list, name, type Sql, sql } from './sql.ts'

/** Whether a clause holds for the resource of `type` that stands in the row `row` of the table `resource`. */
export function condition(scene: Scene, type: string, clause: SearchClause, row: string): Sql {
  const rid = sql`${name(row)}.rid`
  switch (clause.kind) {
    case 'chain':
      return any(clause.targets.map(target => isChained(scene, type, clause, target, row)))
    case 'has':
      return isPointedAt(scene, type, clause, row)
    case 'missing':
      return missingCondition(scene, type, clause, row)
    default:
      return ownCondition(clause, row) ?? entryCondition(scene, type, clause, rid)
  }
}

/** The clauses that can begin a search: what they hold for is found without looking at each resource. */
export type LeadingClause = Exclude<SearchClause, { kind: 'missing' }>

/** The `rid`s for which a clause holds, as a subquery. Those of deleted resources may be among them. */
export function ridsOf(scene: Scene, type: string, clause: LeadingClause): Sql {
  switch (clause.kind) {
    case 'chain':
      return clause.targets
        .map(target => chained(scene, type, clause, target))
        .reduce((left, right) => sql`${left} UNION ALL ${right}`)
    case 'has':
      return pointedAt(scene, type, clause)
    default: {
      const own = ownCondition(clause, 'o')
      if (own) return sql`SELECT o.rid FROM resource o WHERE o.tid = ${scene.names.typeId(type)} AND ${own}`
      return entryRids(scene, type, clause)
    }
  }
}

function entryRids(scene: Scene, type: string, clause: EntryClause): Sql {
  const { table, where } = entryMatch(clause)
  return sql`SELECT e.rid FROM ${table} e WHERE e.nid = ${scene.names.parameterId(type, clause.parameter)} AND ${where}`
}

function entryCondition(scene: Scene, type: string, clause: EntryClause, rid: Sql): Sql {
  const { table, where } = entryMatch(clause, 'few')
  const nid = scene.names.parameterId(type, clause.parameter)
  const not = name(clause.kind === 'token' && clause.negated ? 'NOT ' : '')
  return sql`${not}EXISTS (SELECT 1 FROM ${table} e WHERE e.rid = ${rid} AND e.nid = ${nid} AND ${where})`
}

/** `_id` and `_lastUpdated` are columns of the resource. */
function ownCondition(clause: EntryClause, row: string): Sql | undefined {
  if (clause.kind === 'token' && clause.parameter === '_id') return idCondition(clause, row)
  if (clause.kind === 'date' && clause.parameter === '_lastUpdated') return updatedCondition(clause, row)
  return undefined
}

function idCondition(clause: TokenClause, row: string): Sql {
  const ids = clause.values.flatMap(({ system, code }) => (system || code === undefined ? [] : [code]))
  return sql`${name(row)}.id ${name(clause.negated ? 'NOT ' : '')}IN (${list(ids)})`
}

function updatedCondition(clause: DateClause, row: string): Sql {
  return any(clause.values.map(value => compared(value, `${row}.updated`, `${row}.updated`)))
}

function chained(
  scene: Scene,
  type: string,
  chain: ChainClause,
  target: ChainClause['targets'][number],
): Sql {
  const nid = scene.names.parameterId(type, chain.parameter)
  const targets = living(scene, target.type, [target.clause], name('t.id'), 't')
  return sql`SELECT e.rid FROM (${targets}) f CROSS JOIN reference e ON e.nid = ${nid} AND e.id = f.id AND e.type = ${target.type}`
}

// Each link of a chain has a row of its own name.
function next(row: string): string {
  return `${row}t`
}

function isChained(
  scene: Scene,
  type: string,
  chain: ChainClause,
  target: ChainClause['targets'][number],
  row: string,
): Sql {
  const [nid, tid] = [scene.names.parameterId(type, chain.parameter), scene.names.typeId(target.type)]
  const t = name(next(row))
  return sql`EXISTS (SELECT 1 FROM reference e CROSS JOIN resource ${t} ON ${t}.tid = ${tid} AND ${t}.id = e.id
    WHERE e.rid = ${name(row)}.rid AND e.nid = ${nid} AND e.type = ${target.type}
    AND ${isLiving(scene, target.type, [target.clause], next(row))})`
}

function isPointedAt(scene: Scene, type: string, has: HasClause, row: string): Sql {
  const nid = scene.names.parameterId(has.type, has.parameter)
  const t = name(next(row))
  return sql`EXISTS (SELECT 1 FROM reference e CROSS JOIN resource ${t} ON ${t}.rid = e.rid
    WHERE e.nid = ${nid} AND e.id = ${name(row)}.id AND e.type = ${type}
    AND ${isLiving(scene, has.type, [has.clause], next(row))})`
}

function pointedAt(scene: Scene, type: string, has: HasClause): Sql {
  const nid = scene.names.parameterId(has.type, has.parameter)
  const sources = living(scene, has.type, [has.clause], name('t.rid'), 't')
  return sql`SELECT o.rid FROM (${sources}) f CROSS JOIN reference e ON e.rid = f.rid AND e.nid = ${nid} AND e.type = ${type}
    CROSS JOIN resource o ON o.tid = ${scene.names.typeId(type)} AND o.id = e.id`
}
