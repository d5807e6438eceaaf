import type { ChainClause, HasClause, SearchClause, TypeQuery } from '../../../../fhir/index.ts'
import { buildAccessCondition } from './access-condition.ts'
import { buildOwnCondition, isOfColumn } from './own-condition.ts'
import type { SearchScope } from './search-scope.ts'
import { all, any, name, type Sql, sql } from './sql.ts'

/** Whether the resource in the row is current and within the caller's access, and all clauses hold for it. */
export function buildCurrentCondition(scope: SearchScope, query: TypeQuery, row: string): Sql {
  return all([sql`${name(row)}.deleted = 0`, buildConditions(scope, query, row)])
}

/**
 * Whether the row of a resource need not be read: it is current, because it has search values, and all conditions are
 * evaluated on those.
 */
export function isDecidedByValues(
  { filter, compartment, care }: SearchScope,
  { type, clauses }: TypeQuery,
): boolean {
  const isOfValues = (clause: SearchClause) =>
    clause.kind !== 'chain' && clause.kind !== 'has' && (clause.kind === 'missing' || !isOfColumn(clause))
  return filter(type) === 'everything' && compartment === undefined && !care && clauses.every(isOfValues)
}

/**
 * Whether the resource in the row, if it is current, is within the caller's access, and all clauses hold for it. `rid`
 * names its number in a row that is read before: SQLite then evaluates most conditions without reading the resource.
 */
export function buildConditions(
  scope: SearchScope,
  { type, clauses }: TypeQuery,
  row: string,
  rid = `${row}.rid`,
): Sql {
  const filter = scope.filter(type)
  return all([
    ...clauses.map(clause => buildCondition(scope, type, clause, row, rid)),
    ...(filter === 'everything' ? [] : [buildAccessCondition(scope, type, filter, row, rid)]),
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
  const nid = names.parameterId(type, chain.parameter)
  const tid = names.typeId(target.type)
  const t = name(nextAlias(row))
  return sql`EXISTS (SELECT 1 FROM reference e CROSS JOIN resource ${t} ON ${t}.tid = ${tid} AND ${t}.id = e.id
    WHERE e.rid = ${name(row)}.rid AND e.nid = ${nid} AND e.type = ${target.type}
    AND ${buildCurrentCondition(scope, toQuery(target), nextAlias(row))})`
}

function buildHasCondition(scope: SearchScope, type: string, has: HasClause, row: string): Sql {
  const nid = scope.names.parameterId(has.type, has.parameter)
  const t = name(nextAlias(row))
  return sql`EXISTS (SELECT 1 FROM reference e CROSS JOIN resource ${t} ON ${t}.rid = e.rid
    WHERE e.nid = ${nid} AND e.id = ${name(row)}.id AND e.type = ${type}
    AND ${buildCurrentCondition(scope, toQuery(has), nextAlias(row))})`
}

/** The search at the other end of a link. */
export function toQuery({ type, clause }: ChainClause['targets'][number]): TypeQuery {
  return { type, clauses: [clause] }
}
