import { Readable } from 'node:stream'
import { isFailure } from '../../core/index.ts'
import { nameMandatory, type Params } from '../../fhir/index.ts'
import {
  buildUrl,
  type Cursor,
  type Failure,
  type FhirRequest,
  type FhirResponse,
  getPath,
  type History,
  type InteractionOf,
  type Search,
  seesAll,
} from '../../fhir-api/index.ts'
import { grantFingerprint } from '../../smart/index.ts'
import type { GatewayContext } from './context.ts'
import {
  buildGet,
  buildPath,
  buildRead,
  buildSearch,
  dropFormat,
  setCacheControl,
} from './http/build-request.ts'
import type { UpstreamRequest } from './http/exchange.ts'
import { createLinkSealer, PAGE, type PageCursor, parseCursor, sealLinks } from './paging.ts'
import { type BodyRewrite, passThrough } from './pass-through.ts'
import { buildMembershipParams } from './search/membership-params.ts'
import { chooseCacheControl } from './search/plan.ts'
import { requestsSubset } from './search/search.ts'
import {
  countEntries,
  isFullPage,
  requestTotal,
  type SearchExchange,
  sendSearch,
} from './search/send-search.ts'

/** Passes a request through where the caller may see everything; undefined where the response has to be inspected. */
export function passRequest(
  context: GatewayContext,
  request: FhirRequest,
  cursor?: Cursor,
): Promise<FhirResponse | Failure> | undefined {
  const { interaction, access, preferences } = request
  if (!seesAll(access) || (context.isRecorded && requestsSubset(interaction))) return undefined
  switch (interaction.kind) {
    case 'read':
    case 'vread':
      // The content of a Binary is taken out of the resource, and HAPI answers `_summary=text` with HTML.
      return preferences.content || isTextSummary(interaction.params)
        ? undefined
        : passRead(context, { ...request, interaction })
    case 'history-instance':
    case 'history-type':
      return passHistory(context, { ...request, interaction }, parseCursor(cursor))
    case 'search-type':
    case 'search-compartment':
      return mayIncludeOtherTypes(interaction)
        ? undefined
        : passSearch(context, { ...request, interaction }, parseCursor(cursor))
    // Over all types the response may contain types that are never taken from the upstream.
    default:
      return undefined
  }
}

function isTextSummary(params: Params): boolean {
  return params.some(([name, value]) => name === '_summary' && value === 'text')
}

function passRead(
  context: GatewayContext,
  request: FhirRequest<InteractionOf<'read' | 'vread'>>,
): Promise<FhirResponse | Failure> {
  const { ifNoneMatch, ifModifiedSince } = request.preconditions
  const { type, params } = request.interaction
  const path = buildPath(getPath(request.interaction), dropFormat(nameMandatory(type, params)), context.urls)
  const outgoing = buildRead(request, path, {
    ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
    ...(ifModifiedSince !== undefined && { 'if-modified-since': ifModifiedSince }),
  })
  return passThrough(context, request, outgoing)
}

function passHistory(
  context: GatewayContext,
  request: FhirRequest<History>,
  cursor: PageCursor | undefined,
): Promise<FhirResponse | Failure> {
  const { params } = request.interaction
  const path = getPath(request.interaction)
  const first = buildPath(path, dropFormat(params), context.urls)
  return passThrough(
    context,
    request,
    buildGet(request, cursor?.link ?? first),
    sealForRequest(context, request, path, params),
  )
}

async function passSearch(
  context: GatewayContext,
  request: FhirRequest<InteractionOf<'search-type' | 'search-compartment'>>,
  cursor: PageCursor | undefined,
): Promise<FhirResponse | Failure> {
  const { interaction } = request
  const path = getPath(interaction)
  const params = dropFormat(interaction.params)
  const sentParams = nameMandatory(interaction.type, params)
  const isPosted = interaction.posted === true
  const member = findMembership(context, interaction)
  const rewrite = sealForRequest(context, request, path, params)
  if (cursor) return passThrough(context, request, buildGet(request, cursor.link), rewrite)
  const sent = member
    ? buildSearch(request, `/${member.type}`, [...sentParams, ...member.params], isPosted, context.urls)
    : buildSearch(request, path, sentParams, isPosted, context.urls)
  const fresh = setCacheControl(sent, chooseCacheControl(context, request))
  const exchange: SearchExchange<FhirResponse | Failure> = {
    send: it => passThrough(context, request, it, rewrite),
    countEntries: countPassed,
    discard: it => void (!isFailure(it) && it.body instanceof Readable && it.body.destroy()),
  }
  const response = await sendSearch(context, fresh, exchange)
  if (!mayLackNext(response, fresh) || context.profile().linksEveryPage) return response
  const counted = await sendSearch(context, requestTotal(fresh), exchange)
  return isFailure(counted) ? response : counted
}

function countPassed(response: FhirResponse | Failure): number {
  if (isFailure(response))
    return response.problem === 'upstream-declined' ? countEntries(response.status, '') : 0
  const { status, body = '' } = response
  return typeof body === 'string' ? countEntries(status, body) : Number.POSITIVE_INFINITY
}

/** HAPI leaves out the link to the next page of some results, and their total (`fetchPage`). */
function mayLackNext(response: FhirResponse | Failure, sent: UpstreamRequest): boolean {
  if (isFailure(response) || typeof response.body !== 'string') return false
  const { body } = response
  const hasEnd = /"relation"\s*:\s*"next"|"total"\s*:\s*\d/.test(body)
  return !hasEnd && isFullPage(sent, body.split('"fullUrl"').length - 1)
}

/** A compartment search as a search parameter, for an upstream without compartment searches. */
function findMembership(context: GatewayContext, interaction: Search) {
  if (interaction.kind !== 'search-compartment' || context.narrowing() === 'compartment') return undefined
  const { type, id } = interaction
  const params = buildMembershipParams(type, [id])
  return params.length === 0 ? undefined : { type, params }
}

/** Whether a search may return types that are never taken from the upstream: of a compartment, or by a wildcard include. */
function mayIncludeOtherTypes(interaction: InteractionOf<'search-type' | 'search-compartment'>): boolean {
  return (
    interaction.type === '*' ||
    interaction.params.some(([name, value]) => /^_(?:rev)?include/.test(name) && value.includes('*'))
  )
}

/**
 * Seals the links of a Bundle that is not inspected. A link that is not below the upstream's base URL leads to the
 * gateway, which refuses it.
 */
function sealForRequest(
  context: GatewayContext,
  request: FhirRequest,
  path: string,
  params: Params,
): BodyRewrite {
  const url = `${context.baseUrl}${path}`
  const holder = grantFingerprint(request.authenticated.grant)
  const seal = (relation: string, link: string) => {
    if (relation === 'self') return buildUrl(url, params)
    if (link.includes(`${PAGE}=`)) return link
    const below = context.urls.getPathBelowBase(context.urls.toUpstream(link))
    if (below === undefined) return `${url}?${PAGE}=elsewhere`
    return `${url}?${PAGE}=${context.pages.seal({ path, params, cursor: { link: below }, grant: holder })}`
  }
  return { text: body => sealLinks(body, seal), createStream: () => createLinkSealer(seal) }
}
