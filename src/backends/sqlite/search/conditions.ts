import type { ChainClause, DateClause, HasClause, SearchClause, TokenClause } from '../../../fhir/index.ts'
import { buildEntryMatch, type EntryClause } from './entry-match.ts'
import { buildMissingCondition } from './missing.ts'
import type { QueryContext } from './query-context.ts'
import { buildComparison } from './ranges.ts'
import { isCurrentMatch, selectCurrent } from './select-current.ts'
import { any, list, name, type Sql, sql } from './sql.ts'

/** Whether a clause holds for the resource of `type` that stands in the row `row` of the table `resource`. */
export function buildCondition(scene: QueryContext, type: string, clause: SearchClause, row: string): Sql {
  const rid = sql`${name(row)}.rid`
  switch (clause.kind) {
    case 'chain':
      return any(clause.targets.map(target => isChained(scene, type, clause, target, row)))
    case 'has':
      return isPointedAt(scene, type, clause, row)
    case 'missing':
      return buildMissingCondition(scene, type, clause, row)
    default:
      return ownCondition(clause, row) ?? entryCondition(scene, type, clause, rid)
  }
}

/** The clauses that can begin a search: what they hold for is found without looking at each resource. */
export type LeadingClause = Exclude<SearchClause, { kind: 'missing' }>

/** The `rid`s for which a clause holds, as a subquery. Those of deleted resources may be among them. */
export function selectRids(scene: QueryContext, type: string, clause: LeadingClause): Sql {
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

function entryRids(scene: QueryContext, type: string, clause: EntryClause): Sql {
  const { table, where } = buildEntryMatch(clause)
  return sql`SELECT e.rid FROM ${table} e WHERE e.nid = ${scene.names.parameterId(type, clause.parameter)} AND ${where}`
}

function entryCondition(scene: QueryContext, type: string, clause: EntryClause, rid: Sql): Sql {
  const { table, where } = buildEntryMatch(clause, 'few')
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
  return any(clause.values.map(value => buildComparison(value, `${row}.updated`, `${row}.updated`)))
}

function chained(
  scene: QueryContext,
  type: string,
  chain: ChainClause,
  target: ChainClause['targets'][number],
): Sql {
  const nid = scene.names.parameterId(type, chain.parameter)
  const targets = selectCurrent(scene, target.type, [target.clause], name('t.id'), 't')
  return sql`SELECT e.rid FROM (${targets}) f CROSS JOIN reference e ON e.nid = ${nid} AND e.id = f.id AND e.type = ${target.type}`
}

// Each link of a chain has a row of its own name.
function next(row: string): string {
  return `${row}t`
}

function isChained(
  scene: QueryContext,
  type: string,
  chain: ChainClause,
  target: ChainClause['targets'][number],
  row: string,
): Sql {
  const [nid, tid] = [scene.names.parameterId(type, chain.parameter), scene.names.typeId(target.type)]
  const t = name(next(row))
  return sql`EXISTS (SELECT 1 FROM reference e CROSS JOIN resource ${t} ON ${t}.tid = ${tid} AND ${t}.id = e.id
    WHERE e.rid = ${name(row)}.rid AND e.nid = ${nid} AND e.type = ${target.type}
    AND ${isCurrentMatch(scene, target.type, [target.clause], next(row))})`
}

function isPointedAt(scene: QueryContext, type: string, has: HasClause, row: string): Sql {
  const nid = scene.names.parameterId(has.type, has.parameter)
  const t = name(next(row))
  return sql`EXISTS (SELECT 1 FROM reference e CROSS JOIN resource ${t} ON ${t}.rid = e.rid
    WHERE e.nid = ${nid} AND e.id = ${name(row)}.id AND e.type = ${type}
    AND ${isCurrentMatch(scene, has.type, [has.clause], next(row))})`
}

function pointedAt(scene: QueryContext, type: string, has: HasClause): Sql {
  const nid = scene.names.parameterId(has.type, has.parameter)
  const sources = selectCurrent(scene, has.type, [has.clause], name('t.rid'), 't')
  return sql`SELECT o.rid FROM (${sources}) f CROSS JOIN reference e ON e.rid = f.rid AND e.nid = ${nid} AND e.type = ${type}
    CROSS JOIN resource o ON o.tid = ${scene.names.typeId(type)} AND o.id = e.id`
}
