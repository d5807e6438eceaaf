import { Readable } from 'node:stream'
import { isFailure } from '../../../core/index.ts'
import { nameNeeded, type Params } from '../../../fhir/index.ts'
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
} from '../../../fhir-api/index.ts'
import { grantFingerprint } from '../../../smart/index.ts'
import type { GatewayContext } from '../context.ts'
import { buildGet, buildPath, buildRead, dropFormat } from '../http/build-request.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import {
  buildSearch,
  NO_CACHE,
  requestTotal,
  setCacheControl,
  toRequest,
  type UpstreamSearch,
} from '../http/upstream-search.ts'
import { createLinkSealer, PAGE, type PageCursor, parseCursor, sealLinks } from '../paging.ts'
import { createLinkReader } from '../search/continuation.ts'
import { buildMembershipParams } from '../search/membership-params.ts'
import { chooseCacheControl } from '../search/plan.ts'
import { requestsSubset } from '../search/search.ts'
import { sendSearch } from '../search/send-search.ts'
import { type BodyRewrite, passThrough } from './pass-through.ts'

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
  const path = buildPath(getPath(request.interaction), dropFormat(nameNeeded(type, params)), context.urls)
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
  const outgoing = buildGet(request, cursor?.link ?? first)
  return passThrough(context, request, outgoing, sealForRequest(context, request, path, params, outgoing))
}

async function passSearch(
  context: GatewayContext,
  request: FhirRequest<InteractionOf<'search-type' | 'search-compartment'>>,
  cursor: PageCursor | undefined,
): Promise<FhirResponse | Failure> {
  const { interaction } = request
  const path = getPath(interaction)
  const params = dropFormat(interaction.params)
  const sentParams = nameNeeded(interaction.type, params)
  const isPosted = interaction.posted === true
  const member = findMembership(context, interaction)
  const seal = (it: UpstreamRequest) => sealForRequest(context, request, path, params, it)
  const pass = (it: UpstreamRequest) => passThrough(context, request, it, seal(it))
  if (cursor) return pass(buildGet(request, cursor.link))
  const sent = member
    ? buildSearch(request, `/${member.type}`, [...sentParams, ...member.params], isPosted, context.urls)
    : buildSearch(request, path, sentParams, isPosted, context.urls)
  const fresh = setCacheControl(sent, chooseCacheControl(context, request))
  const { response, paging, isForeign } = await sendSearch(context, fresh, {
    send: pass,
    isRefused: it => isFailure(it) && it.reason === 'upstream-declined' && it.status === 400,
  })
  if (isFailure(response)) return response
  if (paging === 'offset') {
    if (isForeign || isLastPage(response)) return response
    discard(response)
    // Pages of stored results: an app that changes what it has found would miss the matches that move up.
    const stored = setCacheControl(sent, NO_CACHE)
    if (response.body instanceof Readable) return pass(toRequest(requestTotal(stored)))
    return passCounted(pass, stored, await pass(toRequest(stored)))
  }
  return context.profile().linksEveryPage ? response : passCounted(pass, fresh, response)
}

const NEXT = /"relation"\s*:\s*"next"/
const TOTAL = /"total"\s*:\s*\d/

/** Whether a page of a search by offset is the last. A page that is too long for memory may not be. */
function isLastPage({ body }: FhirResponse): boolean {
  return body === undefined || (typeof body === 'string' && !NEXT.test(body))
}

/** HAPI leaves out the link to the next page of some results, but not together with the total (`readContinuation`). */
async function passCounted(
  pass: (outgoing: UpstreamRequest) => Promise<FhirResponse | Failure>,
  sent: UpstreamSearch,
  response: FhirResponse | Failure,
): Promise<FhirResponse | Failure> {
  if (isFailure(response) || response.body === undefined || saysEnd(response.body)) return response
  discard(response)
  return pass(toRequest(requestTotal(sent)))
}

/** Whether a page says how the results go on. A page that is too long for memory may not. */
function saysEnd(body: string | Readable): boolean {
  if (typeof body !== 'string') return false
  const head = body.slice(0, Math.max(body.indexOf('"entry"'), 0))
  const stated = head.includes('"link"') ? head : body
  return NEXT.test(stated) || TOTAL.test(stated)
}

function discard({ body }: FhirResponse): void {
  if (body instanceof Readable) body.destroy()
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
  outgoing: UpstreamRequest,
): BodyRewrite {
  const reader = createLinkReader(context.urls, outgoing.path)
  const url = `${context.baseUrl}${path}`
  const holder = grantFingerprint(request.authenticated.grant)
  const seal = (relation: string, link: string) => {
    if (relation === 'self') {
      reader.learn(link)
      return buildUrl(url, params)
    }
    if (link.includes(`${PAGE}=`)) return link
    const below = reader.toPath(link)
    if (below === undefined) return `${url}?${PAGE}=elsewhere`
    return `${url}?${PAGE}=${context.pages.seal({ path, params, cursor: { link: below }, grant: holder })}`
  }
  return { text: body => sealLinks(body, seal), createStream: () => createLinkSealer(seal) }
}
