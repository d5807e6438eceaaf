import {
  careRangeIn,
  fail,
  isInCareRange,
  isResourceType,
  type Params,
  parseQuery,
  type Query,
  resourceTypes,
  shaped,
} from '../../../fhir/index.ts'
import { buildUrl, bundleJson, entryJson, type Link } from '../../../fhir-api/index.ts'
import { hasCompartment } from '../../../smart/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler, InteractionOf } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import type { SqlValue } from '../repository/database.ts'
import { includesOf } from '../search/includes.ts'
import { countQuery, type Found, type Ground, type Hit, isCountable, runQuery } from '../search/run-query.ts'
import { sceneOf } from '../search/scene.ts'
import { nextLink, turnPage } from '../search/turn-page.ts'
import { typesIn } from '../search/types-in.ts'
import { tooWide } from '../search/width.ts'

type Search = InteractionOf<'search-type' | 'search-system' | 'search-compartment'>

/** How far a total is counted that nobody asked for. */
const COUNTED = 5_000

/** Searches a type, several types, or a compartment. */
export const search: Handler<Search['kind']> = (context, begun) => {
  const address = addressOfSearch(context, begun.interaction)
  const turned = turnPage(context, begun, address)
  if (isProblem(turned)) return turned
  const { call, after } = turned
  return answerSearch(context, call, after, {
    address,
    linkTo: next => nextLink(context, call, address, next),
    include: ({ database, scene }, { includes }, { hits }) =>
      includesOf(database, scene, call.access, includes, hits),
  })
}

/** How a page of a search is presented. */
export interface SearchPage {
  /** Where it is, for its self link. */
  readonly address: string
  /** What the self link has for parameters, where it is not what was understood. */
  readonly asked?: Params
  readonly linkTo: (next: readonly SqlValue[]) => Link
  /** What comes along with the matches of this page. */
  readonly include: (ground: Ground, query: Query, found: Found) => readonly Hit[] | Problem
  /** Whether a match is shown itself, or only what comes along with it. */
  readonly isShown?: (hit: Hit) => boolean
}

/** The page of a search that begins after a place. */
export function answerSearch(
  context: Context,
  call: Call<Search>,
  after: readonly SqlValue[] | undefined,
  page: SearchPage,
): Answer | Problem {
  const care = careOf(call.interaction)
  if (care && isProblem(care)) return care
  const query = queryOf(context, call)
  if (isProblem(query)) return query
  const wide = tooWide(query)
  if (wide) return wide
  const ground = { ...groundOf(context, call), care }
  const used = page.asked ?? usedBy(call.interaction, query)
  const self = { relation: 'self', url: buildUrl(page.address, used) } as const
  if (query.shape.summary === 'count' || query.count === 0) return counted(ground, query, self)
  const found = runQuery(ground, query, after)
  const brought = page.include(ground, query, found)
  if (isProblem(brought)) return brought
  const included = care
    ? brought.filter(hit => isInCareRange(JSON.parse(hit.content), care, context.baseUrl))
    : brought
  const next = found.next && page.linkTo(found.next)
  const hits = page.isShown ? found.hits.filter(page.isShown) : found.hits
  return answer({
    type: 'searchset',
    total: totalOf(ground, query, { ...found, hits }, after === undefined),
    links: next ? [self, next] : [self],
    entries: [
      ...hits.map(hit => entryOf(context, query, hit, 'match')),
      ...included.map(hit => entryOf(context, query, hit, 'include')),
    ],
  })
}

/** What a search asks, of the types that there are. */
export function queryOf(context: Context, call: Call<Search>): Query | Problem {
  const types = typesOf(call)
  if (isProblem(types)) return types
  const query = parseQuery(types, criteriaOf(call.interaction), context.baseUrl, call.preferences.lenient)
  return isProblem(query) || types.length === 1 ? query : ofPresent(context, call, query)
}

function answer(parts: Parameters<typeof bundleJson>[0]): Answer {
  return { status: 200, body: bundleJson(parts) }
}

function counted(ground: Ground, query: Query, self: Link): Answer {
  return answer({ type: 'searchset', total: countQuery(ground, query), links: [self], entries: [] })
}

/** The total is given where it was asked for, is known already, or is cheap to know. */
function totalOf(ground: Ground, query: Query, found: Found, isFirst: boolean): number | undefined {
  if (query.total === 'none') return undefined
  if (isFirst && !found.next) return found.hits.length
  if (query.total === 'accurate') return countQuery(ground, query)
  return isCountable(ground, query) ? countQuery(ground, query, COUNTED) : undefined
}

function entryOf(context: Context, query: Query, hit: Hit, mode: 'match' | 'include'): string {
  const resource = shaped(hit.content, query.shape)
  return entryJson({ fullUrl: `${context.baseUrl}/${hit.type}/${hit.id}`, resource, search: { mode } })
}

function groundOf({ repository }: Context, { interaction, access }: Call<Search>): Ground {
  return {
    database: repository.database,
    scene: sceneOf(repository, access, 's'),
    compartment: interaction.kind === 'search-compartment' ? interaction.id : undefined,
  }
}

function addressOfSearch({ baseUrl }: Context, interaction: Search): string {
  switch (interaction.kind) {
    case 'search-type':
      return `${baseUrl}/${interaction.type}`
    case 'search-system':
      return baseUrl
    case 'search-compartment':
      return `${baseUrl}/${interaction.compartment}/${interaction.id}/${interaction.type}`
  }
}

/** Without _type: what the caller reaches at all, whether or not there is any. */
function typesOf({ interaction, access }: Call<Search>): readonly string[] | Problem {
  if (interaction.kind === 'search-type') return [interaction.type]
  if (interaction.kind === 'search-compartment' && interaction.type !== '*') return [interaction.type]
  const named = namedTypes(interaction.params)
  if (isProblem(named) || named.length > 0) return named
  return resourceTypes.filter(
    type =>
      access.filterFor(type, 's').length > 0 &&
      (interaction.kind === 'search-system' || hasCompartment(type)),
  )
}

/** Of many types, those of which there are resources. What is asked was understood before: that tells of no data. */
function ofPresent({ repository }: Context, { interaction }: Call<Search>, query: Query): Query {
  const compartment = interaction.kind === 'search-compartment' ? interaction.id : undefined
  const present = new Set(typesIn(repository, compartment))
  return { ...query, types: query.types.filter(({ type }) => present.has(type)) }
}

/** The range of `$everything`, which is a search of a whole compartment. */
function careOf(interaction: Search): ReturnType<typeof careRangeIn> {
  return isOfCompartment(interaction) ? careRangeIn(interaction.params) : undefined
}

function isOfCompartment(interaction: Search): boolean {
  return interaction.kind === 'search-compartment' && interaction.type === '*'
}

/** `_type`, `start` and `end` choose for all types together, and are not asked of each. */
function criteriaOf(interaction: Search): Params {
  return interaction.params.filter(([name]) => !isChoice(interaction, name))
}

function isChoice(interaction: Search, name: string): boolean {
  if (isOfOneType(interaction)) return false
  return name === '_type' || (isOfCompartment(interaction) && (name === 'start' || name === 'end'))
}

/** What was understood, the choice of types too (R4 http.html#search: the self link says what was used). */
function usedBy(interaction: Search, { used }: Query): Params {
  return [...interaction.params.filter(([name]) => isChoice(interaction, name)), ...used]
}

function isOfOneType(interaction: Search): boolean {
  return (
    interaction.kind === 'search-type' ||
    (interaction.kind === 'search-compartment' && interaction.type !== '*')
  )
}

/** The types that `_type` names. */
export function namedTypes(params: Params): readonly string[] | Problem {
  const types = params.filter(([name]) => name === '_type').flatMap(([, value]) => value.split(','))
  const unknown = types.find(type => !isResourceType(type))
  return unknown === undefined
    ? [...new Set(types)]
    : fail({
        problem: 'bad-search',
        code: 'invalid',
        text: 'Cannot read _type: expected resource types of R4',
      })
}
