import { remember } from '../../../core/index.ts'
import { failFor, type IncludeRule, limits, type Query } from '../../../fhir/index.ts'
import type { Failure } from '../../../fhir-api/index.ts'
import type { Access } from '../../../smart/index.ts'
import { buildAccessCondition } from './planner/access-condition.ts'
import { divideStart } from './planner/find-rows.ts'
import { findRids, type Hit, loadHit } from './planner/run-query.ts'
import type { SearchScope, Steps } from './planner/search-scope.ts'
import { findAccessStart } from './planner/select-current.ts'
import { list, name, type Sql, sql } from './planner/sql.ts'
import { listSteps, walkReferences } from './planner/walk.ts'

/**
 * The resources that `_include` and `_revinclude` add to the matches. `_include` reads its targets (`r`), `_revinclude`
 * searches its sources (`s`): each must be within the caller's access for that permission.
 */
export function* findIncludes(
  scope: SearchScope,
  access: Access,
  rules: readonly IncludeRule[],
  matches: readonly Hit[],
): Steps<readonly Hit[] | Failure> {
  if (rules.length === 0) return []
  const known = new Set(matches.map(hit => hit.rid))
  const included: Hit[] = []
  const readable = withReadAccess(scope, access)
  let charactersLeft = limits.INCLUDED_CHARACTERS
  let from = matches
  let active = rules
  for (let round = 0; active.length > 0 && from.length > 0 && round < limits.INCLUDE_ROUNDS; round++) {
    const fresh: Hit[] = []
    for (const rule of active)
      for (const part of listCandidates(scope, rule, from)) {
        if (part === PAUSE) {
          yield scope.step
          continue
        }
        const within = rule.direction === 'forward' ? readable : scope
        for (const rid of findAccessible(within, part.type, part.rids)) {
          if (known.has(rid)) continue
          known.add(rid)
          const hit = loadHit(scope, rid)
          charactersLeft -= hit.content.length
          fresh.push(hit)
          if (charactersLeft < 0 || included.length + fresh.length > limits.INCLUDED_RESOURCES)
            return TOO_MANY_INCLUDED
        }
      }
    // In which order they are found depends on resources outside the access.
    from = fresh.toSorted((a, b) => a.rid - b.rid)
    for (const hit of from) included.push(hit)
    active = rules.filter(rule => rule.iterate)
  }
  return included
}

const INCLUDED = { most: limits.INCLUDED_RESOURCES, characters: limits.INCLUDED_CHARACTERS }

const TOO_MANY_INCLUDED = failFor('included-too-many', INCLUDED)

/** The resources that the matches of a query refer to, without the matches; only of the named types, if any. */
export function* findReferenced(
  scope: SearchScope,
  query: Query,
  access: Access,
  types: readonly string[],
): Steps<readonly Hit[] | Failure> {
  const matching = yield* findRids(scope, query)
  const known = new Set(matching)
  const readable = withReadAccess(scope, access)
  const hits: Hit[] = []
  let charactersLeft = limits.INCLUDED_CHARACTERS
  for (const [type, ids] of yield* collectReferences(scope, matching)) {
    if (types.length > 0 && !types.includes(type)) continue
    for (const some of chunk([...ids], scope.step)) {
      for (const rid of findAccessible(readable, type, selectByIds(scope, type, some))) {
        if (known.has(rid)) continue
        const hit = loadHit(scope, rid)
        charactersLeft -= hit.content.length
        hits.push(hit)
        if (charactersLeft < 0 || hits.length > limits.INCLUDED_RESOURCES) return TOO_MANY_REFERENCED
      }
      yield scope.step
    }
  }
  return hits
}

/** The ids that resources refer to, by type, in steps. */
function* collectReferences(
  scope: SearchScope,
  rids: readonly number[],
): Steps<ReadonlyMap<string, ReadonlySet<string>>> {
  const collected = new Map<string, Set<string>>()
  for (const some of chunk(rids, scope.step)) {
    for (const [type, ids] of findReferences(scope, some)) {
      const known = remember(collected, type, () => new Set<string>())
      for (const id of ids) known.add(id)
    }
    if (rids.length > scope.step) yield scope.step
  }
  return collected
}

function* chunk<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size)
}

const TOO_MANY_REFERENCED = failFor('referenced-too-many', INCLUDED)

function withReadAccess(scope: SearchScope, access: Access): SearchScope {
  return { ...scope, filter: type => access.filterFor(type, 'r') }
}

/** Resources that a rule may include. Their access is checked in the step that loads them: others may write in between. */
interface Candidates {
  readonly type: string
  readonly rids: Sql
}

const PAUSE = Symbol('pause')

function listCandidates(
  scope: SearchScope,
  rule: IncludeRule,
  from: readonly Hit[],
): Generator<Candidates | typeof PAUSE> {
  return rule.direction === 'forward' ? listTargets(scope, rule, from) : listSources(scope, rule, from)
}

function* listTargets(
  scope: SearchScope,
  rule: IncludeRule,
  from: readonly Hit[],
): Generator<Candidates | typeof PAUSE> {
  const sources = from.filter(hit => hit.type === rule.source).map(hit => hit.rid)
  if (sources.length === 0) return
  const references = findReferences(scope, sources, sql`AND +e.nid IN (${listParameters(scope, rule)})`)
  for (const [type, ids] of references) {
    if (rule.target !== undefined && rule.target !== type) continue
    for (let at = 0; at < ids.length; at += scope.step) {
      if (at > 0) yield PAUSE
      yield { type, rids: selectByIds(scope, type, ids.slice(at, at + scope.step)) }
    }
  }
}

function* listSources(
  scope: SearchScope,
  rule: IncludeRule,
  from: readonly Hit[],
): Generator<Candidates | typeof PAUSE> {
  let parts = 0
  for (const [type, targets] of Map.groupBy(from, hit => hit.type)) {
    if (rule.target !== undefined && rule.target !== type) continue
    const ids = targets.map(hit => hit.id)
    for (const rids of listReferring(scope, rule, type, ids)) {
      if (parts++ > 0) yield PAUSE
      yield { type: rule.source, rids }
    }
  }
}

/** The resources that refer to one of several, in one part for each step. */
function* listReferring(
  scope: SearchScope,
  rule: IncludeRule,
  type: string,
  ids: readonly string[],
): Generator<Sql> {
  const named = sql`e.nid IN (${listParameters(scope, rule)})
    AND e.id IN (SELECT value FROM json_each(${JSON.stringify(ids)})) AND e.type = ${type}`
  const own = findAccessStart(scope, rule.source)
  if (own)
    return yield* divideStart(scope, own).map(
      // The plus keeps SQLite from starting with the references.
      ({ rids }) => sql`SELECT o.rid FROM (${rids}) o CROSS JOIN reference e ON e.rid = o.rid AND +${named}`,
    )
  const all = sql`SELECT e.rid FROM reference e WHERE ${named}`
  if (scope.isFew(all, scope.step)) return yield all
  for (const id of ids)
    for (const parameter of rule.parameters) {
      const nid = scope.names.parameterId(rule.source, parameter)
      const walk = walkReferences(sql`w.nid = ${nid} AND w.id = ${id} AND w.type = ${type}`)
      for (const range of listSteps(scope, walk))
        yield sql`SELECT w.rid FROM ${walk.index} WHERE ${walk.where} AND ${range}`
    }
}

function listParameters({ names }: SearchScope, { source, parameters }: IncludeRule): Sql {
  return list(parameters.map(it => names.parameterId(source, it)))
}

/** The ids that resources refer to, by type. */
function findReferences(
  { database }: SearchScope,
  rids: readonly number[],
  condition: Sql = sql``,
): readonly (readonly [type: string, ids: readonly string[]])[] {
  const { text, values } = sql`SELECT DISTINCT e.type, e.id FROM reference e
    WHERE e.rid IN (SELECT value FROM json_each(${JSON.stringify(rids)})) AND e.type <> '' ${condition}`
  const ids = new Map<string, string[]>()
  for (const [type, id] of database.rows(text, values)) {
    const known = ids.get(String(type))
    if (known) known.push(String(id))
    else ids.set(String(type), [String(id)])
  }
  return [...ids]
}

function selectByIds({ names }: SearchScope, type: string, ids: readonly string[]): Sql {
  return sql`SELECT o.rid FROM json_each(${JSON.stringify(ids)}) j CROSS JOIN resource o
    ON o.tid = ${names.typeId(type)} AND o.id = j.value`
}

/** The `rid`s of the current resources among some that are within the access. */
function findAccessible(scope: SearchScope, type: string, rids: Sql): readonly number[] {
  const filter = scope.filter(type)
  const within = filter === 'everything' ? name('1') : buildAccessCondition(scope, type, filter, 'r')
  // The plus keeps SQLite from starting with all resources of the type.
  const { text, values } = sql`SELECT r.rid FROM resource r WHERE r.rid IN (${rids})
    AND +r.tid = ${scope.names.typeId(type)} AND r.deleted = 0 AND ${within} ORDER BY r.rid LIMIT ${limits.INCLUDED_RESOURCES + 1}`
  return scope.database.rows(text, values).map(([rid]) => Number(rid))
}
