import {
  careRangeIn,
  isInCareRange,
  type Params,
  parseQuery,
  type Query,
  resourceTypes,
} from '../../../fhir/index.ts'
import { findNamedTypes, type Search, type SearchPage } from '../../../fhir-api/index.ts'
import { hasCompartment } from '../../../smart/index.ts'
import type { Call, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import type { SqlValue } from '../repository/database.ts'
import { toEntry } from './entry.ts'
import { findIncludes } from './includes.ts'
import { createQueryContext } from './query-context.ts'
import { countQuery, type FoundRows, type Hit, isCountable, runQuery, type SearchScope } from './run-query.ts'
import { findStoredTypes } from './types-in.ts'
import { findExcess } from './width.ts'

/** How far a total is counted that was not requested. */
const COUNTED = 5_000

/** How a page differs from that of a plain search. */
interface PageOptions {
  /** The parameters of the self link, where they are not those that were understood. */
  readonly used?: Params
  /** What is included with the matches of this page. */
  readonly include?: (ground: SearchScope, query: Query, found: FoundRows) => readonly Hit[] | Problem
  /** Whether a match is shown itself, or only what is included with it. */
  readonly isShown?: (hit: Hit) => boolean
}

/** The page of a search that begins after a row. */
export function findPage(
  context: Context,
  call: Call<Search>,
  after: readonly SqlValue[] | undefined,
  options: PageOptions = {},
): SearchPage | Problem {
  const care = findCareRange(call.interaction)
  if (care && isProblem(care)) return care
  const query = parseCriteria(context, call)
  if (isProblem(query)) return query
  const wide = findExcess(query)
  if (wide) return wide
  const ground = { ...createGround(context, call), care }
  const page = { used: options.used ?? findUsed(call.interaction, query), shape: query.shape }
  if (query.shape.summary === 'count' || query.count === 0)
    return { ...page, matches: [], includes: [], total: countQuery(ground, query), cursors: NONE }
  const found = runQuery(ground, query, after)
  const included = options.include
    ? options.include(ground, query, found)
    : findIncludes(ground.database, ground.scene, call.access, query.includes, found.hits)
  if (isProblem(included)) return included
  const isInCare = (hit: Hit) => !care || isInCareRange(JSON.parse(hit.content), care, context.baseUrl)
  const hits = options.isShown ? found.hits.filter(options.isShown) : found.hits
  return {
    ...page,
    matches: hits.map(hit => toEntry(ground.database, hit)),
    includes: included.filter(isInCare).map(hit => toEntry(ground.database, hit)),
    total: findTotal(ground, query, { ...found, hits }, after === undefined),
    cursors: found.next ? new Map([['next', found.next]]) : NONE,
  }
}

const NONE: SearchPage['cursors'] = new Map()

/** The query of a search, for the types that there are. */
export function parseCriteria(context: Context, call: Call<Search>): Query | Problem {
  const types = findTypes(call)
  if (isProblem(types)) return types
  const query = parseQuery(types, findCriteria(call.interaction), context.baseUrl, call.preferences.lenient)
  return isProblem(query) || types.length === 1 ? query : keepPresentTypes(context, call, query)
}

/** The total is given where it was requested, is known already, or is cheap to know. */
function findTotal(
  ground: SearchScope,
  query: Query,
  found: FoundRows,
  isFirst: boolean,
): number | undefined {
  if (query.total === 'none') return undefined
  if (isFirst && !found.next) return found.hits.length
  if (query.total === 'accurate') return countQuery(ground, query)
  return isCountable(ground, query) ? countQuery(ground, query, COUNTED) : undefined
}

function createGround({ repository }: Context, { interaction, access }: Call<Search>): SearchScope {
  return {
    database: repository.database,
    scene: createQueryContext(repository, access, 's'),
    compartment: interaction.kind === 'search-compartment' ? interaction.id : undefined,
  }
}

/** Without _type: all types that the caller may search, whether or not there are resources. */
function findTypes({ interaction, access }: Call<Search>): readonly string[] | Problem {
  if (isOfOneType(interaction)) return [interaction.type]
  const named = findNamedTypes(interaction.params)
  if (isProblem(named) || named.length > 0) return named
  return resourceTypes.filter(
    type =>
      access.filterFor(type, 's').length > 0 &&
      (interaction.kind === 'search-system' || hasCompartment(type)),
  )
}

/** Of many types, those of which there are resources. The query was parsed before: that reveals no data. */
function keepPresentTypes({ repository }: Context, { interaction }: Call<Search>, query: Query): Query {
  const compartment = interaction.kind === 'search-compartment' ? interaction.id : undefined
  const present = new Set(findStoredTypes(repository, compartment))
  return { ...query, types: query.types.filter(({ type }) => present.has(type)) }
}

/** The range of `$everything`, which is a search of a whole compartment. */
function findCareRange(interaction: Search): ReturnType<typeof careRangeIn> {
  return isOfCompartment(interaction) ? careRangeIn(interaction.params) : undefined
}

function isOfCompartment(interaction: Search): boolean {
  return interaction.kind === 'search-compartment' && interaction.type === '*'
}

/** `_type`, `start` and `end` apply to all types together, and are not parameters of each. */
function findCriteria(interaction: Search): Params {
  return interaction.params.filter(([name]) => !isChoice(interaction, name))
}

function isChoice(interaction: Search, name: string): boolean {
  if (isOfOneType(interaction)) return false
  return name === '_type' || (isOfCompartment(interaction) && (name === 'start' || name === 'end'))
}

/** What was understood, the choice of types too (R4 http.html#search: the self link says what was used). */
function findUsed(interaction: Search, { used }: Query): Params {
  return [...interaction.params.filter(([name]) => isChoice(interaction, name)), ...used]
}

function isOfOneType(
  interaction: Search,
): interaction is Exclude<Search, { readonly kind: 'search-system' }> {
  return (
    interaction.kind === 'search-type' ||
    (interaction.kind === 'search-compartment' && interaction.type !== '*')
  )
}
