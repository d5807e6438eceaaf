import { isFailure, isRecord } from '../../../core/index.ts'
import { namesMissingResults, type Resource } from '../../../fhir/index.ts'
import { type Failure, failBroken, type Relation } from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import { type BundleEntry, parseEntry } from '../http/response.ts'
import type { UrlRewriter } from '../http/urls.ts'
import type { Continuation, Links, PageCursor } from '../paging.ts'
import type { RequestedPage } from './send-search.ts'

export const END: Continuation = { kind: 'end' }

/** A page of a search, and how it was requested. */
interface ReceivedPage extends RequestedPage {
  readonly entries: readonly BundleEntry[]
  /** The path of the request. */
  readonly path: string
  readonly from: PageCursor
  /** Whether the total was requested too. */
  readonly isCounted: boolean
}

/**
 * How the results go on after a page. This is the only place that decides it, for pages, counts and the gateway's own
 * searches. Only the upstream's word counts: a link to the next page, or its absence where the upstream links every page. A
 * page with few entries says nothing. Undefined if the upstream says nothing either: HAPI leaves out the link to the next page
 * of some results, but not together with the total.
 */
export function readContinuation(
  context: GatewayContext,
  page: ReceivedPage,
): Continuation | undefined | Failure {
  const continuation = readLink(context, page)
  if (continuation === undefined || isFailure(continuation) || !page.entries.some(saysIncomplete))
    return continuation
  return { ...continuation, kind: 'cut' }
}

function readLink(context: GatewayContext, page: ReceivedPage): Continuation | undefined | Failure {
  const { bundle, entries, paging, from, isCounted, fits, isBeginning } = page
  const { total } = bundle
  const matches = entries.filter(isMatch).length
  const size = fits === undefined ? {} : { fits }
  const next = findLink(bundle, 'next')
  if (isBeginning || (next !== undefined && paging === 'offset')) {
    const stated = isBeginning || next === undefined ? undefined : readOffset(next)
    return { kind: 'next', cursor: { link: '', offset: stated ?? countBefore() + matches, ...size } }
  }
  if (next !== undefined) {
    const cursor = toCursor(context, page, next)
    return isFailure(cursor) ? cursor : { kind: 'next', cursor }
  }
  const isFirst = from.link === '' && findLink(bundle, 'previous') === undefined
  if ((isFirst || paging === 'offset') && typeof total === 'number' && total > countBefore() + matches)
    return { kind: 'cut' }
  const isEnd =
    paging === 'offset' || context.profile().linksEveryPage || total !== undefined || from.link !== ''
  return isEnd || isCounted ? END : undefined

  function countBefore(): number {
    return paging === 'offset' ? (from.offset ?? 0) : 0
  }
}

/** Whether an entry of a page may be a match: the search mode is optional. */
function isMatch({ search }: Pick<BundleEntry, 'search'>): boolean {
  const mode = isRecord(search) ? search.mode : undefined
  return mode !== 'include' && mode !== 'outcome'
}

function saysIncomplete(entry: BundleEntry): boolean {
  return isRecord(entry.search) && entry.search.mode === 'outcome' && namesMissingResults(parseEntry(entry))
}

/** The failure of a request that needs all of a result. */
export const CUT: Failure = failBroken('it does not show all matches of a search')

const NAMES: Readonly<Record<Relation, readonly string[]>> = {
  next: ['next'],
  previous: ['previous', 'prev'],
  first: ['first'],
  last: ['last'],
}

/** The links of a page to others. */
export function readLinks(
  context: GatewayContext,
  page: Pick<ReceivedPage, 'bundle' | 'path'>,
): Links | Failure {
  const links = new Map<Relation, PageCursor>()
  for (const relation of ['next', 'previous', 'first', 'last'] as const) {
    const url = findLink(page.bundle, relation)
    const cursor = url === undefined ? undefined : toCursor(context, page, url)
    if (isFailure(cursor)) return cursor
    if (cursor) links.set(relation, cursor)
  }
  return links
}

function findLink({ link = [] }: Resource, relation: Relation | 'self'): string | undefined {
  const names = relation === 'self' ? ['self'] : NAMES[relation]
  const found = Array.isArray(link)
    ? link.filter(isRecord).find(it => names.some(name => name === it.relation))
    : undefined
  return typeof found?.url === 'string' ? found.url : undefined
}

function readOffset(url: string): number | undefined {
  const offset = Number(URL.parse(url, 'http://upstream.invalid')?.searchParams.get('_offset') ?? Number.NaN)
  return Number.isInteger(offset) && offset > 0 ? offset : undefined
}

function toCursor(
  { urls }: GatewayContext,
  { bundle, path: sent }: Pick<ReceivedPage, 'bundle' | 'path'>,
  url: string,
): PageCursor | Failure {
  const reader = createLinkReader(urls, sent)
  const self = findLink(bundle, 'self')
  if (self !== undefined) reader.learn(self)
  const path = reader.toPath(url)
  if (path === undefined) return failBroken('its paging links are not below its base')
  return { link: path }
}

/**
 * Reads the links in the response to a request. An upstream may name itself by another URL than the one that the gateway sends
 * requests to: the link of a page to itself shows it. Only the path below that URL is used, below the known one.
 */
export function createLinkReader(urls: UrlRewriter, sentPath: string) {
  let own: string | undefined
  // The client has replaced the upstream's base URL in the text already.
  const readPath = (url: string) => urls.getPathBelowBase(urls.toUpstream(url))
  return {
    learn(self: string): void {
      if (readPath(self) === undefined) own = findBase(self, sentPath)
    },
    toPath(url: string): string | undefined {
      const rest = own !== undefined && url.startsWith(own) ? url.slice(own.length) : undefined
      return readPath(url) ?? (rest !== undefined && /^[/?]/.test(rest) ? rest : undefined)
    },
  }
}

/** The URL of the server, from the URL of a request to it and the path of the request. */
function findBase(self: string, sentPath: string): string | undefined {
  const url = URL.parse(self)
  const path = sentPath.replace(/(?:\/_search)?(?:\?.*)?$/s, '')
  const base = url && `${url.origin}${url.pathname.replace(/\/_search$/, '')}`
  return base?.endsWith(path) ? base.slice(0, base.length - path.length) : undefined
}
