import { fail, isFailure, isRecord } from '../../../core/index.ts'
import type { Resource } from '../../../fhir/index.ts'
import { type AccessCheck, createTurns, type Failure, type FhirRequest } from '../../../fhir-api/index.ts'
import { createContentCheck } from '../access.ts'
import type { GatewayContext } from '../context.ts'
import { buildGet, NO_CACHE, NO_STORE, setCacheControl } from '../http/build-request.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { type BundleEntry, failTooCostly, parseEntry } from '../http/response.ts'
import { UPSTREAM_PAGES } from '../limits.ts'
import type {
  CheckedPage,
  CheckedResource,
  Links,
  PageCursor,
  PagePlace,
  Relation,
  UpstreamPage,
} from '../paging.ts'
import { isFullPage, requestPage, requestTotal } from './send-search.ts'

/** The page size where many matches may be left out. */
export const PAGE_SIZE = 100

export class ParsedResource implements CheckedResource {
  readonly resource: Resource
  readonly text: string
  readonly isPartial: boolean

  constructor(resource: Resource, text: string, isPartial: boolean) {
    this.resource = resource
    this.text = text
    this.isPartial = isPartial
  }

  get type(): string {
    return this.resource.resourceType
  }

  get id(): string {
    return this.resource.id ?? ''
  }

  get order(): number {
    return Date.parse(this.resource.meta?.lastUpdated ?? '')
  }

  parse(): Resource {
    return this.resource
  }
}

/** Decides which entries of an upstream's page the caller sees. `createPageCheck` (plan.ts) makes that of a search. */
export interface PageCheck {
  /** Whether a match has the properties that were searched for: an upstream may ignore a parameter. */
  matchesQuery?(resource: Resource): boolean
  isMatch(resource: Resource, check: AccessCheck): boolean
  isInclude(resource: Resource, check: AccessCheck): boolean
  /** The candidates that the shown matches include. */
  includes(
    matches: readonly CheckedResource[],
    candidates: readonly CheckedResource[],
  ): readonly CheckedResource[]
}

/**
 * Fetches a page and leaves out the entries that the caller must not see.
 *
 * HAPI leaves out the link to the next page of some results, and of results that it does not store. Another request, which
 * asks for the total, has it. It is sent only if the next page is needed.
 */
export async function fetchPage(
  context: GatewayContext,
  request: FhirRequest,
  outgoing: UpstreamRequest,
  pageCheck: PageCheck,
  /** Whether a full page need not be followed by another one: the upstream then stores nothing. */
  mayBePart = false,
): Promise<UpstreamPage | Failure> {
  const page = await fetchOnce(context, request, outgoing, pageCheck, mayBePart)
  if (isFailure(page)) return page
  const { place, mayLackNext, ...checked } = page
  return {
    ...checked,
    async locate() {
      const { linksEveryPage, cachedSearches } = context.profile()
      if (!mayLackNext || (linksEveryPage && !(mayBePart && cachedSearches))) return place
      const stored =
        outgoing.headers['cache-control'] === NO_STORE ? setCacheControl(outgoing, NO_CACHE) : outgoing
      const again = linksEveryPage ? stored : requestTotal(stored)
      const counted = await fetchOnce(context, request, again, pageCheck, false)
      return isFailure(counted) ? place : counted.place
    },
  }
}

async function fetchOnce(
  context: GatewayContext,
  request: FhirRequest,
  outgoing: UpstreamRequest,
  pageCheck: PageCheck,
  mayBePart: boolean,
): Promise<(CheckedPage & { readonly place: PagePlace; readonly mayLackNext: boolean }) | Failure> {
  const response = await requestPage(context, request, outgoing, mayBePart)
  if (isFailure(response)) return response
  const { bundle, entries } = response
  const links = readLinks(context, bundle)
  if (isFailure(links)) return links
  if (!entries) return fail({ problem: 'upstream-broken', why: 'it did not answer a search with a Bundle' })
  const page = await checkEntries(context, request, entries, pageCheck)
  if (isFailure(page)) return page
  const isFull = links.size === 0 && isFullPage(outgoing, entries.length, mayBePart)
  return {
    ...page,
    place: { links, isWhole: isOnlyPage(bundle, entries.length, links) },
    // The total of a part is the number of its entries.
    mayLackNext: isFull && (mayBePart || bundle.total === undefined),
  }
}

/** Leaves out the entries that the caller must not see: fhir-api/access/access-check.ts decides about each. */
async function checkEntries(
  context: GatewayContext,
  request: FhirRequest,
  entries: readonly BundleEntry[],
  pageCheck: PageCheck,
): Promise<CheckedPage | Failure> {
  const parsed = await parseEntries(entries)
  if (isFailure(parsed)) return parsed
  const resources = parsed.map(it => it.checked.resource)
  const check = await createContentCheck(context, request, resources)
  if (isFailure(check)) return check
  return pick(parsed, pageCheck, check)
}

interface ParsedEntry {
  readonly checked: CheckedResource
  readonly mode: unknown
}

// Parsed in about a tenth of `TURN_MS`.
const CHARACTERS_AT_ONCE = 500_000

/** Parses the resources of a page. Other requests may run in between. */
async function parseEntries(entries: readonly BundleEntry[]): Promise<readonly ParsedEntry[] | Failure> {
  const takeTurns = createTurns()
  const parsed: ParsedEntry[] = []
  let characters = 0
  for (const entry of entries) {
    const resource = parseEntry(entry)
    if (!resource) continue
    if (isFailure(resource)) return resource
    const { text = '', search, partial } = entry
    parsed.push({
      checked: new ParsedResource(resource, text, partial !== undefined),
      mode: readMode(search),
    })
    characters += text.length
    if (characters > CHARACTERS_AT_ONCE) await takeTurns()
  }
  return parsed
}

function readMode(search: unknown): unknown {
  return isRecord(search) ? search.mode : undefined
}

/** Uses a page; no other page is fetched after `enough`. */
export type TakePage = (page: UpstreamPage) => 'enough' | undefined

/** Visits all pages of a search and counts the matches that the caller may see, up to a number. */
export async function visitPages(
  context: GatewayContext,
  request: FhirRequest,
  first: UpstreamRequest,
  pageCheck: PageCheck,
  max: number,
  take: TakePage,
): Promise<number | 'too-many' | Failure> {
  let count = 0
  let outgoing = first
  for (let pages = 0; pages < UPSTREAM_PAGES; pages++) {
    const page = await fetchPage(context, request, outgoing, pageCheck, outgoing === first)
    if (isFailure(page)) return page
    count += page.matches.length
    if (count > max) return 'too-many'
    if (take(page) === 'enough') return count
    const place = await page.locate()
    if (isFailure(place)) return place
    const next = place.links.get('next')
    if (!next) return count
    outgoing = buildGet(request, next.link)
  }
  return failTooCostly(UPSTREAM_PAGES * PAGE_SIZE)
}

/** An upstream may count more matches than it shows, and not link to the others. */
function isOnlyPage({ total }: Resource, entries: number, links: Links): boolean {
  return !links.has('next') && !links.has('previous') && !(typeof total === 'number' && total > entries)
}

function pick(entries: readonly ParsedEntry[], pageCheck: PageCheck, check: AccessCheck) {
  const matches: CheckedResource[] = []
  const candidates: CheckedResource[] = []
  let omitted = 0
  for (const { checked, mode } of entries) {
    const { resource } = checked
    const isMatch = mode !== 'include' && mode !== 'outcome' && pageCheck.isMatch(resource, check)
    const isStray = isMatch && pageCheck.matchesQuery?.(resource) === false
    if (isMatch && !isStray) matches.push(checked)
    else {
      const isCandidate = mode !== 'match' && mode !== 'outcome' && pageCheck.isInclude(resource, check)
      if (isCandidate) candidates.push(checked)
      // `search.mode` is optional: an entry that may have been a match counts as one.
      if (mode !== 'include' && mode !== 'outcome' && (isStray || !isCandidate)) omitted += 1
    }
  }
  return { matches, omitted, includes: pageCheck.includes(matches, candidates) }
}

const RELATIONS = ['next', 'previous', 'first', 'last'] as const satisfies readonly Relation[]

export function readLinks(context: GatewayContext, { link = [] }: Resource): Links | Failure {
  const links = new Map<Relation, PageCursor>()
  for (const { relation: stated, url } of Array.isArray(link) ? link.filter(isRecord) : []) {
    const relation = RELATIONS.find(known => known === stated || (known === 'previous' && stated === 'prev'))
    if (!relation || typeof url !== 'string') continue
    // The client has replaced the upstream's base URL in the text already.
    const path = context.urls.getPathBelowBase(context.urls.toUpstream(url))
    if (path === undefined)
      return fail({ problem: 'upstream-broken', why: 'its paging links are not below its base' })
    links.set(relation, { link: path })
  }
  return links
}
