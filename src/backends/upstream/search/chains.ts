import {
  indexResource,
  isId,
  isProblem,
  type Params,
  parseSearch,
  type SearchClause,
} from '../../../fhir/index.ts'
import type { Search } from '../../../fhir-api/index.ts'
import { findResource } from '../../../fhir-api/index.ts'
import type { Access } from '../../../smart/index.ts'
import { createLookup } from '../access.ts'
import type { Call, Context } from '../context.ts'
import { CHAIN_MATCHES } from '../limits.ts'
import type { Problem } from '../problem.ts'
import { collect, searchFor } from './collect.ts'
import { hasAccess } from './narrow-includes.ts'
import { findOneType } from './plan.ts'

type ChainClause = Extract<SearchClause, { readonly kind: 'chain' }>
type HasClause = Extract<SearchClause, { readonly kind: 'has' }>
type Resolved = readonly [string, string] | 'nothing' | Problem

/**
 * Puts what a chain leads to in its place (`patient.name=Ann` becomes `patient=Patient/1`), found by a search that is
 * itself within reach. Otherwise the upstream would look along the chain into all of its data, and the caller learn
 * from what matches (ROUTE-4). `nothing` when no resource in reach is at its end.
 */
export async function resolveChains(
  context: Context,
  call: Call<Search>,
): Promise<Call<Search> | 'nothing' | Problem> {
  const type = findOneType(call.interaction)
  if (type === undefined || !call.interaction.params.some(([name]) => isLookedUp(name))) return call
  const params: (readonly [string, string])[] = []
  for (const pair of call.interaction.params) {
    const resolved = isLookedUp(pair[0]) ? await resolve(context, call, type, pair) : pair
    if (resolved === 'nothing' || isProblem(resolved)) return resolved as 'nothing' | Problem
    params.push(resolved as readonly [string, string])
  }
  return { ...call, interaction: { ...call.interaction, params } }
}

async function resolve(
  context: Context,
  call: Call<Search>,
  type: string,
  [name, value]: readonly [string, string],
): Promise<Resolved> {
  if (name === '_list') return resolveList(context, call, value)
  const clause = parseSearch(type, name, value, context.baseUrl)
  // What cannot be read is refused when the search is planned.
  if (clause.kind === 'error' || isWholly(clause, call.access)) return [name, value]
  if (clause.kind === 'chain') return resolveChain(context, call, clause, name, value)
  return clause.kind === 'has' ? resolveHas(context, call, clause, type, name, value) : [name, value]
}

/** The lists among these that the caller may read: what is on another one is not to be told. */
async function resolveList(context: Context, call: Call<Search>, value: string): Promise<Resolved> {
  const visible: string[] = []
  for (const id of value.split(',')) {
    // A list that the upstream makes for the patient (`$current-problems`).
    const isMade = /^\$[a-z][a-z-]*$/.test(id)
    if (!isMade && !isId(id)) continue
    const found = isMade ? undefined : await findResource(createLookup(context, call), call, 'r', 'List', id)
    if (found && isProblem(found) && found.problem !== 'absent' && found.problem !== 'outside-access')
      return found
    if (isMade || (found && !isProblem(found) && !found.deleted)) visible.push(id)
  }
  return visible.length === 0 ? 'nothing' : ['_list', visible.join(',')]
}

async function resolveChain(
  context: Context,
  call: Call<Search>,
  clause: ChainClause,
  name: string,
  value: string,
): Promise<Resolved> {
  const rest = name.slice(name.indexOf('.') + 1)
  const found: string[] = []
  for (const { type } of clause.targets) {
    if (!hasAccess(call.access, type, 's')) continue
    const linked = await collect(context, searchFor(call, type, [[rest, value]]), CHAIN_MATCHES)
    if (isProblem(linked)) return linked as Problem
    found.push(...linked.map(({ resource }) => `${type}/${resource.id}`))
  }
  return found.length === 0 ? 'nothing' : [clause.parameter, found.join(',')]
}

async function resolveHas(
  context: Context,
  call: Call<Search>,
  { type: source, parameter }: HasClause,
  type: string,
  name: string,
  value: string,
): Promise<Resolved> {
  if (!hasAccess(call.access, source, 's')) return 'nothing'
  const inner: Params = [[name.split(':').slice(3).join(':'), value]]
  const linked = await collect(context, searchFor(call, source, inner), CHAIN_MATCHES)
  if (isProblem(linked)) return linked as Problem
  const ids = linked.flatMap(({ resource }) =>
    indexResource(resource, context.baseUrl).flatMap(entry =>
      entry.parameter === parameter &&
      entry.kind === 'reference' &&
      entry.type === type &&
      entry.id !== undefined
        ? [entry.id]
        : [],
    ),
  )
  return ids.length === 0 ? 'nothing' : ['_id', [...new Set(ids)].join(',')]
}

/** Whether all that a chain looks into may be seen. */
function isWholly(clause: SearchClause, access: Access): boolean {
  if (clause.kind === 'has')
    return access.filterFor(clause.type, 's') === 'everything' && isWholly(clause.clause, access)
  if (clause.kind !== 'chain') return true
  return clause.targets.every(
    it => access.filterFor(it.type, 's') === 'everything' && isWholly(it.clause, access),
  )
}

function isLookedUp(name: string): boolean {
  return isChained(name) || name === '_list'
}

function isChained(name: string): boolean {
  return name.includes('.') || name.startsWith('_has:')
}
