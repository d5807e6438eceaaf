import { isFailure, isRecord } from '../../../core/index.ts'
import type { Resource } from '../../../fhir/index.ts'
import { type AccessCheck, type Failure, type FhirRequest, failBroken } from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import { type BundleEntry, failTooCostly, parseEntry } from '../http/response.ts'
import {
  buildPage,
  findStatedCount,
  requestTotal,
  setParam,
  type UpstreamSearch,
} from '../http/upstream-search.ts'
import { UPSTREAM_PAGES } from '../limits.ts'
import type { CheckedPage, CheckedResource, PageCursor, UpstreamPage } from '../paging.ts'
import { createContentCheck } from '../read/access.ts'
import { CUT, readContinuation } from './continuation.ts'
import { requestPage } from './send-search.ts'

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

/** The first page of a search. */
export const FIRST: PageCursor = { link: '' }

/**
 * Fetches a page of a search and leaves out the entries that the caller must not see. If the upstream does not say how the
 * results go on, the page is requested again with the total, and then says it.
 */
export async function fetchPage(
  context: GatewayContext,
  request: FhirRequest,
  first: UpstreamSearch,
  pageCheck: PageCheck,
  from = FIRST,
): Promise<UpstreamPage | Failure> {
  const outgoing = from.link === '' ? limitCount(first, from) : buildPage(request, from.link)
  const page = await fetchOnce(context, request, outgoing, pageCheck, from)
  if (page !== 'unstated') return page
  const counted = await fetchOnce(context, request, requestTotal(outgoing), pageCheck, from, true)
  return counted === 'unstated' ? CUT : counted
}

/** Large resources are requested in small numbers, in addition to those that were shown before. */
function limitCount(outgoing: UpstreamSearch, { fits, skip = 0 }: PageCursor): UpstreamSearch {
  const count = findStatedCount(outgoing)
  return fits === undefined || (count !== undefined && count <= skip + fits)
    ? outgoing
    : setParam(outgoing, '_count', String(skip + fits))
}

async function fetchOnce(
  context: GatewayContext,
  request: FhirRequest,
  outgoing: UpstreamSearch,
  pageCheck: PageCheck,
  from: PageCursor,
  isCounted = false,
): Promise<UpstreamPage | 'unstated' | Failure> {
  const response = await requestPage(context, request, outgoing, from.offset)
  if (isFailure(response)) return response
  const { entries } = response
  if (!entries) return failBroken('it did not answer a search with a Bundle')
  const { path } = outgoing
  const continuation = readContinuation(context, { ...response, entries, path, from, isCounted })
  if (continuation === undefined) return 'unstated'
  if (isFailure(continuation)) return continuation
  const page = await checkEntries(context, request, entries, pageCheck)
  if (isFailure(page)) return page
  const { positions, ...checked } = page
  return {
    ...checked,
    continuation,
    isShortened: response.fits !== undefined,
    cursorAt: index => {
      const position = positions[index]
      return response.paging === 'links' || position === undefined
        ? undefined
        : { link: '', offset: (from.offset ?? 0) + position }
    },
  }
}

/** Leaves out the entries that the caller must not see: fhir-api/access/access-check.ts decides about each. */
async function checkEntries(
  context: GatewayContext,
  request: FhirRequest,
  entries: readonly BundleEntry[],
  pageCheck: PageCheck,
): Promise<PickedPage | Failure> {
  const parsed = await parseEntries(request, entries)
  if (isFailure(parsed)) return parsed
  const resources = parsed.map(it => it.checked.resource)
  const check = await createContentCheck(context, request, resources)
  if (isFailure(check)) return check
  const lacksIncludes =
    parsed.filter(({ mode }) => mode === 'include').length >= context.profile().mostIncludes
  return { ...pick(parsed, pageCheck, check), lacksIncludes }
}

interface PickedPage extends CheckedPage {
  /** The index of each shown match among all matches of the page. */
  readonly positions: readonly number[]
}

interface ParsedEntry {
  readonly checked: CheckedResource
  readonly mode: unknown
}

// Parsed in about a tenth of `TURN_MS`.
const CHARACTERS_AT_ONCE = 500_000

/** Parses the resources of a page. Other requests may run in between. */
async function parseEntries(
  { work }: FhirRequest,
  entries: readonly BundleEntry[],
): Promise<readonly ParsedEntry[] | Failure> {
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
    if (characters > CHARACTERS_AT_ONCE) await work.pause()
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
  first: UpstreamSearch,
  pageCheck: PageCheck,
  max: number,
  take: TakePage,
): Promise<number | 'too-many' | Failure> {
  let count = 0
  let from = FIRST
  for (let pages = 0; pages < UPSTREAM_PAGES; pages++) {
    const page = await fetchPage(context, request, first, pageCheck, from)
    if (isFailure(page)) return page
    count += page.matches.length
    if (count > max) return 'too-many'
    if (take(page) === 'enough') return count
    const { continuation } = page
    if (continuation.kind === 'end') return count
    if (continuation.kind === 'cut') return CUT
    from = continuation.cursor
  }
  return failTooCostly(UPSTREAM_PAGES * PAGE_SIZE)
}

function pick(entries: readonly ParsedEntry[], pageCheck: PageCheck, check: AccessCheck) {
  const matches: CheckedResource[] = []
  const candidates: CheckedResource[] = []
  const positions: number[] = []
  let omitted = 0
  let position = -1
  for (const { checked, mode } of entries) {
    const { resource } = checked
    const mayMatch = mode !== 'include' && mode !== 'outcome'
    if (mayMatch) position += 1
    const isMatch = mayMatch && pageCheck.isMatch(resource, check)
    const isStray = isMatch && pageCheck.matchesQuery?.(resource) === false
    if (isMatch && !isStray) {
      matches.push(checked)
      positions.push(position)
    } else {
      const isCandidate = mode !== 'match' && mode !== 'outcome' && pageCheck.isInclude(resource, check)
      if (isCandidate) candidates.push(checked)
      // `search.mode` is optional: an entry that may have been a match counts as one.
      if (mayMatch && (isStray || !isCandidate)) omitted += 1
    }
  }
  return { matches, positions, omitted, includes: pageCheck.includes(matches, candidates) }
}
