import type { Params } from '../../fhir/index.ts'
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
import type { Call, Context } from './context.ts'
import { buildGet, buildHeaders, buildQuery, buildSearch } from './http/build-request.ts'
import { passThrough } from './http/pass-through.ts'
import type { PageCursor } from './search/fetch-page.ts'
import { dropFormat } from './search/find-page.ts'
import { PAGE, parseCursor } from './search/page-links.ts'
import type { LinkSealing } from './search/seal-links.ts'

/** Passes a request through where the caller may see everything; undefined where the response has to be inspected. */
export function passRequest(
  context: Context,
  request: FhirRequest,
  cursor?: Cursor,
): Promise<FhirResponse | Failure> | undefined {
  const { interaction, access, preferences } = request
  if (!seesAll(access)) return undefined
  switch (interaction.kind) {
    case 'read':
    case 'vread':
      // The content of a Binary is taken out of the resource.
      return preferences.content ? undefined : passRead(context, { ...request, interaction })
    case 'history-instance':
    case 'history-type':
      return passHistory(context, { ...request, interaction }, parseCursor(cursor))
    case 'search-type':
    case 'search-compartment':
      return bringsOtherTypes(interaction)
        ? undefined
        : passSearch(context, { ...request, interaction }, parseCursor(cursor))
    // Over all types the response may contain types that are never taken from the upstream.
    default:
      return undefined
  }
}

function passRead(
  context: Context,
  request: FhirRequest<InteractionOf<'read' | 'vread'>>,
): Promise<FhirResponse | Failure> {
  const { ifNoneMatch, ifModifiedSince } = request.preconditions
  const query = buildQuery(dropFormat(request.interaction.params), context.addresses)
  const path = getPath(request.interaction)
  return passThrough(context, request, {
    method: 'GET',
    path: query === '' ? path : `${path}?${query}`,
    headers: {
      ...buildHeaders(request),
      ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
      ...(ifModifiedSince !== undefined && { 'if-modified-since': ifModifiedSince }),
    },
  })
}

function passHistory(
  context: Context,
  request: FhirRequest<History>,
  spot: PageCursor | undefined,
): Promise<FhirResponse | Failure> {
  const { params } = request.interaction
  const path = getPath(request.interaction)
  const query = buildQuery(dropFormat(params), context.addresses)
  const first = query === '' ? path : `${path}?${query}`
  return passThrough(
    context,
    request,
    buildGet(request, spot?.link ?? first),
    sealForRequest(context, request, path, params),
  )
}

function passSearch(
  context: Context,
  request: FhirRequest<Search>,
  spot: PageCursor | undefined,
): Promise<FhirResponse | Failure> {
  const { interaction } = request
  const path = getPath(interaction)
  const params = dropFormat(interaction.params)
  const sent = spot
    ? buildGet(request, spot.link)
    : buildSearch(request, path, params, interaction.posted === true, context.addresses)
  return passThrough(context, request, sent, sealForRequest(context, request, path, params))
}

/** Whether a search may bring types that are never taken from the upstream: of a whole compartment, or by an include of anything. */
function bringsOtherTypes(interaction: InteractionOf<'search-type' | 'search-compartment'>): boolean {
  return (
    interaction.type === '*' ||
    interaction.params.some(([name, value]) => /^_(?:rev)?include/.test(name) && value.includes('*'))
  )
}

/**
 * Seals the links of a Bundle that passes by unseen. What is sealed already stays as it is. A page that is not below the
 * upstream's base could be anywhere: the link leads here, where it is refused.
 */
function sealForRequest(context: Context, call: Call, path: string, params: Params): LinkSealing {
  const address = `${context.baseUrl}${path}`
  const holder = grantFingerprint(call.authenticated.grant)
  return (relation, url) => {
    if (relation === 'self') return buildUrl(address, params)
    if (url.includes(`${PAGE}=`)) return url
    const link = context.addresses.below(context.addresses.inward(url))
    if (link === undefined) return `${address}?${PAGE}=elsewhere`
    return `${address}?${PAGE}=${context.pages.seal({ path, params, cursor: { link }, grant: holder })}`
  }
}
