import { Readable } from 'node:stream'
import type { Resource } from '../../../fhir/index.ts'
import { type Failure, type FhirRequest, isFailure, seesAll } from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import type { UpstreamResponse } from '../http/client.ts'
import { pipe } from '../http/decode.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { explainPageFailure, isJson, parseBundle, type UpstreamBundle } from '../http/response.ts'
import { createLinkSealer } from './paging.ts'

/** The upstream's response to the request for a page. */
export type PageResponse =
  | ({ readonly kind: 'page'; readonly text: string } & UpstreamBundle)
  /** A page of one resource that is too large to be checked, so that nobody knows who may see it. Its links remain. */
  | { readonly kind: 'unchecked'; readonly bundle: Resource }
  /** Any other status than 200. */
  | { readonly kind: 'declined'; readonly response: UpstreamResponse }

/** Finds a page by its text, so that it is not parsed again. */
type Recall<Known> = (text: string) => Known | undefined

/** The assumed size of a page that was requested without `_count`. */
const USUAL_COUNT = 100

/**
 * Requests a page. If it is too large to be inspected, requests smaller ones, each a quarter of the one before, down to
 * one resource.
 */
export async function requestPage<Known = never>(
  context: GatewayContext,
  request: FhirRequest,
  first: UpstreamRequest,
  recall?: Recall<Known>,
): Promise<PageResponse | Known | Failure> {
  let outgoing = first
  for (;;) {
    const response = await context.upstream.ask(outgoing)
    if (!isFailure(response) && response.status !== 200) return { kind: 'declined', response }
    const page = isFailure(response) ? response : readPage(response, recall)
    if (!isFailure(page) || page.problem !== 'upstream-broken' || page.excess === undefined) return page
    const count = findCount(outgoing) ?? USUAL_COUNT
    if (count <= 1)
      return isLimited(request) ? skipResource(context, outgoing, page) : explainPageFailure(page)
    outgoing = setParam(outgoing, COUNT, String(Math.max(1, Math.floor(count / 4))))
  }
}

/** Whether the page may contain something that the caller must not see. */
function isLimited({ interaction, access }: FhirRequest): boolean {
  switch (interaction.kind) {
    case 'search-type':
    case 'search-compartment':
    case 'history-type':
    case 'history-instance':
      return access.filterFor(interaction.type, 's') !== 'everything'
    default:
      return !seesAll(access)
  }
}

function readPage<Known>(response: UpstreamResponse, recall?: Recall<Known>): PageResponse | Known | Failure {
  const { headers, text } = response
  const known = isJson(headers['content-type']) ? recall?.(text) : undefined
  if (known) return known
  const bundle = parseBundle(response)
  return isFailure(bundle) ? bundle : { kind: 'page', text, ...bundle }
}

/**
 * Skips a page of one resource, which a limited caller is not shown. A page with more resources, of an upstream that
 * ignores `_count`, remains a failure: resources that the caller may see would be left out too.
 */
async function skipResource(
  context: GatewayContext,
  outgoing: UpstreamRequest,
  tooLarge: Failure,
): Promise<PageResponse | Failure> {
  const response = await context.upstream.pass(outgoing)
  if (isFailure(response)) return response
  const link: object[] = []
  const links = createLinkSealer((relation, url) => {
    link.push({ relation, url })
    return url
  })
  const body = typeof response.body === 'string' ? Readable.from(response.body) : response.body
  const entries = await countEntries(pipe(body, links)).catch(() => 0)
  return entries === 1
    ? { kind: 'unchecked', bundle: { resourceType: 'Bundle', link } }
    : explainPageFailure(tooLarge)
}

const ENTRY = '"fullUrl"'

/** Counts the entries of a Bundle without keeping it in memory. */
async function countEntries(body: Readable): Promise<number> {
  let count = 0
  let rest = ''
  for await (const chunk of body) {
    const parts = (rest + chunk.toString('latin1')).split(ENTRY)
    count += parts.length - 1
    rest = (parts.at(-1) ?? '').slice(-ENTRY.length)
  }
  return count
}

const COUNT = '_count'

function findCount({ path, body }: UpstreamRequest): number | undefined {
  const count = (buildPattern(COUNT).exec(path) ?? buildPattern(COUNT).exec(body ?? ''))?.[1]
  return count === undefined ? undefined : Number(count)
}

/** Whether a page has as many entries as were requested, so that there may be more. */
export function isFullPage(outgoing: UpstreamRequest, entries: number): boolean {
  return entries >= (findCount(outgoing) ?? 1)
}

/** The same search, with the number of all matches. */
export function requestTotal(outgoing: UpstreamRequest): UpstreamRequest {
  return setParam(outgoing, '_total', 'accurate')
}

function setParam(outgoing: UpstreamRequest, name: string, value: string): UpstreamRequest {
  const { path, body } = outgoing
  const [pattern, param] = [buildPattern(name), `${name}=${value}`]
  if (pattern.test(path)) return { ...outgoing, path: path.replace(pattern, param) }
  if (body === undefined) return { ...outgoing, path: `${path}${path.includes('?') ? '&' : '?'}${param}` }
  return { ...outgoing, body: pattern.test(body) ? body.replace(pattern, param) : `${body}&${param}` }
}

/** Finds a parameter and its value. */
function buildPattern(name: string): RegExp {
  return new RegExp(`(?<=^|[?&])${name}=([^&]*)`)
}
