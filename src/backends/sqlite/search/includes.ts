import { fail, type IncludeRule, limits, type Query } from '../../../fhir/index.ts'
import type { Access } from '../../../smart/index.ts'
import type { Problem } from '../problem.ts'
import type { Database } from '../repository/database.ts'
import { buildAccessCondition } from './access-condition.ts'
import type { QueryContext } from './query-context.ts'
import { findRids, type Hit, loadHit, type SearchScope } from './run-query.ts'
import { list, name, type Sql, sql } from './sql.ts'

/**
 * What the rules bring along with what was found. Along a reference a resource is read (`r`), against one it is
 * searched (`s`): each is within the caller's reach for its type and permission.
 */
export function findIncludes(
  database: Database,
  scene: QueryContext,
  access: Access,
  rules: readonly IncludeRule[],
  matches: readonly Hit[],
): readonly Hit[] | Problem {
  const known = new Set(matches.map(hit => hit.rid))
  const included: Hit[] = []
  let room = limits.INCLUDED_CHARACTERS
  let from = matches
  let active = rules
  for (let round = 0; active.length > 0 && from.length > 0 && round < limits.INCLUDE_ROUNDS; round++) {
    const fresh: Hit[] = []
    for (const rule of active)
      for (const rid of rule.direction === 'forward'
        ? forward(database, { ...scene, filter: type => access.filterFor(type, 'r') }, rule, from)
        : reverse(database, scene, rule, from)) {
        if (known.has(rid)) continue
        known.add(rid)
        const hit = loadHit({ database, scene }, rid)
        room -= hit.content.length
        fresh.push(hit)
        if (room < 0 || included.length + fresh.length > limits.INCLUDED_RESOURCES) return TOO_MUCH
      }
    for (const hit of fresh) included.push(hit)
    from = fresh
    active = rules.filter(rule => rule.iterate)
  }
  return included
}

const TOO_MUCH = fail({
  problem: 'too-costly',
  text: `Cannot include more than ${limits.INCLUDED_RESOURCES} resources or ${limits.INCLUDED_CHARACTERS} characters: ask for smaller pages`,
})

/** What any match of a query refers to and that is no match itself; of the named types, if there are some. */
export function findReferenced(
  ground: SearchScope,
  query: Query,
  access: Access,
  types: readonly string[],
): readonly Hit[] | Problem {
  const { database, scene } = ground
  const matching = findRids(ground, query)
  const known = new Set(matching)
  const readable = { ...scene, filter: (type: string) => access.filterFor(type, 'r') }
  const rids = targetsOf(database, matching)
    .filter(([type]) => types.length === 0 || types.includes(type))
    .flatMap(([type, ids]) => reached(database, readable, type, isOneOf(ids)))
    .filter(rid => !known.has(rid))
  if (rids.length > limits.INCLUDED_RESOURCES) return TOO_MUCH_REFERRED
  const hits: Hit[] = []
  let room = limits.INCLUDED_CHARACTERS
  for (const rid of rids) {
    const hit = loadHit(ground, rid)
    room -= hit.content.length
    if (room < 0) return TOO_MUCH_REFERRED
    hits.push(hit)
  }
  return hits
}

const TOO_MUCH_REFERRED = fail({
  problem: 'too-costly',
  text: `Cannot include more than ${limits.INCLUDED_RESOURCES} resources or ${limits.INCLUDED_CHARACTERS} characters: name the types by _type`,
})

/** The numbers of what the rule brings along. */
function forward(
  database: Database,
  scene: QueryContext,
  rule: IncludeRule,
  from: readonly Hit[],
): readonly number[] {
  const sources = from.filter(hit => hit.type === rule.source).map(hit => hit.rid)
  if (sources.length === 0) return []
  const nids = rule.parameters.map(it => scene.names.parameterId(rule.source, it))
  return targetsOf(database, sources, sql`AND e.nid IN (${list(nids)})`)
    .filter(([type]) => rule.target === undefined || rule.target === type)
    .flatMap(([type, targets]) => reached(database, scene, type, isOneOf(targets)))
}

/** The ids that resources refer to, by type. */
function targetsOf(
  database: Database,
  rids: readonly number[],
  which: Sql = sql``,
): readonly (readonly [type: string, ids: readonly string[]])[] {
  const { text, values } = sql`SELECT DISTINCT e.type, e.id FROM reference e
    WHERE e.rid IN (SELECT value FROM json_each(${JSON.stringify(rids)})) AND e.type <> '' ${which}`
  const ids = new Map<string, string[]>()
  for (const [type, id] of database.rows(text, values)) {
    const known = ids.get(String(type))
    if (known) known.push(String(id))
    else ids.set(String(type), [String(id)])
  }
  return [...ids]
}

function isOneOf(ids: readonly string[]): Sql {
  return sql`r.id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`
}

function reverse(
  database: Database,
  scene: QueryContext,
  rule: IncludeRule,
  from: readonly Hit[],
): readonly number[] {
  const rids: number[] = []
  for (const [type, targets] of Map.groupBy(from, hit => hit.type)) {
    if (rule.target !== undefined && rule.target !== type) continue
    const ids = JSON.stringify(targets.map(hit => hit.id))
    const nids = rule.parameters.map(it => scene.names.parameterId(rule.source, it))
    const pointing = sql`SELECT e.rid FROM reference e WHERE e.nid IN (${list(nids)})
      AND e.id IN (SELECT value FROM json_each(${ids})) AND e.type = ${type}`
    for (const rid of reached(database, scene, rule.source, sql`r.rid IN (${pointing})`)) rids.push(rid)
  }
  return rids
}

function reached(database: Database, scene: QueryContext, type: string, which: Sql): readonly number[] {
  const filter = scene.filter(type)
  const within = filter === 'everything' ? name('1') : buildAccessCondition(scene, type, filter, 'r')
  const { text, values } = sql`SELECT r.rid FROM resource r
    WHERE r.tid = ${scene.names.typeId(type)} AND ${which} AND r.deleted = 0 AND ${within} ORDER BY r.rid LIMIT ${limits.INCLUDED_RESOURCES + 1}`
  return database.rows(text, values).map(([rid]) => Number(rid))
}
