import type { HasClause, SearchClause, TypeQuery } from '../../../../fhir/index.ts'
import { toQuery } from './current-condition.ts'
import { divideStart } from './find-rows.ts'
import { buildSourceCondition, openStart } from './row-source.ts'
import { fitStep, type SearchScope, type Steps } from './search-scope.ts'
import { findAccessStart, isOfOnePatient } from './select-current.ts'
import { name, sql } from './sql.ts'

/**
 * Replaces each `_has` through resources of one patient by the ids that they refer to. A patient may have any number of them,
 * and as a condition of one row they would be read in one step.
 */
export function* resolveLinks(scope: SearchScope, types: readonly TypeQuery[]): Steps<readonly TypeQuery[]> {
  const resolved: TypeQuery[] = []
  for (const query of types) {
    const clauses: SearchClause[] = []
    for (const clause of query.clauses)
      clauses.push(isWide(scope, clause) ? yield* resolveHas(scope, query.type, clause) : clause)
    resolved.push({ ...query, clauses })
  }
  return resolved
}

function isWide(scope: SearchScope, clause: SearchClause): clause is HasClause {
  if (clause.kind !== 'has' || !isOfOnePatient(scope.filter(clause.type))) return false
  const start = findAccessStart(scope, clause.type)
  return start !== undefined && !scope.isFew(start.rids, scope.step)
}

function* resolveHas(whole: SearchScope, type: string, has: HasClause): Steps<SearchClause> {
  const free = { ...whole, compartment: undefined, care: undefined }
  const [query = toQuery(has)] = yield* resolveLinks(free, [toQuery(has)])
  const scope = fitStep(free, query)
  const start = findAccessStart(scope, has.type)
  const ids = new Set<string>()
  for (const part of start ? divideStart(scope, start) : []) {
    const source = openStart(scope, query, part)
    // The cross join keeps SQLite from reading all references of the type, those of other patients too.
    const { text, values } = sql`SELECT DISTINCT e.id FROM
      (SELECT ${name(source.rid)} AS rid FROM ${source.from} AND ${buildSourceCondition(scope, has.type, source)}) f
      CROSS JOIN reference e ON e.rid = f.rid
      AND e.nid = ${scope.names.parameterId(has.type, has.parameter)} AND e.type = ${type}`
    for (const [id] of scope.database.rows(text, values)) ids.add(String(id))
    yield scope.stepWork
  }
  return {
    kind: 'token',
    parameter: '_id',
    negated: false,
    values: [...ids].map(code => ({ system: undefined, code })),
  }
}
