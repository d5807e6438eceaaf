import { Transform } from 'node:stream'
import { formatExact, isRecord, limits, type Resource } from '../../../fhir/index.ts'
import {
  type Cursor,
  createPages,
  type Failure,
  isFailure,
  type Pages,
  type SearchEntry,
} from '../../../fhir-api/index.ts'
import type { Sealer } from '../../../store/index.ts'
import { UPSTREAM_PAGES } from '../limits.ts'

/** The position of a page in the upstream's results. */
export interface PageCursor {
  /** The upstream's own link, below its base; empty for the first page. */
  readonly link: string
  /** The number of resources on that page that were shown already. */
  readonly skip?: number
  /** Keys of the included resources that earlier pages have shown. */
  readonly shown?: readonly string[]
}

export type Relation = 'next' | 'previous' | 'first' | 'last'
export type Links = ReadonlyMap<Relation, PageCursor>

/** A resource that the caller may see. */
export interface CheckedResource extends SearchEntry {
  readonly resource: Resource
}

/** The entries of an upstream's page that the caller may see. */
export interface CheckedPage {
  readonly matches: readonly CheckedResource[]
  readonly includes: readonly CheckedResource[]
  /** The number of matches that the caller may see and that do not match the query. */
  readonly strays: number
  /** The number of the upstream's matches that are left out: a short page would reveal it. */
  readonly omitted: number
  /** The latest `meta.lastUpdated` of all entries, also of those that are left out; empty if one has none. */
  findNewest(): string
}

/** A cached page, on which all entries are matches. */
export interface KeptPage extends CheckedPage {
  /** The members of the Bundle after its entries. */
  readonly rest: Readonly<Record<string, unknown>>
}

/** The part of an upstream's page that the caller may see. */
export interface UpstreamPage extends CheckedPage {
  readonly links: Links
  /** Whether the upstream has no other page. */
  readonly isWhole: boolean
}

export function findNewest(resources: readonly Resource[]): string {
  const times = resources.map(it => Date.parse(it.meta?.lastUpdated ?? ''))
  const newest = times.length === 0 ? Number.NaN : Math.max(...times)
  return Number.isNaN(newest) ? '' : new Date(newest).toISOString()
}

/** The parameter that carries a page; its name differs from that of an upstream that is a Sallyport itself. */
export const PAGE = '_gateway-page'

/** Gateways with the same secret open each other's links. */
export function openPages(sealer: Sealer): Pages {
  return createPages(sealer, PAGE, 'paging link of the gateway')
}

export function parseCursor(cursor: Cursor | undefined): PageCursor | undefined {
  if (!isRecord(cursor) || typeof cursor.link !== 'string') return undefined
  const { link, skip, shown } = cursor
  return {
    link,
    ...(typeof skip === 'number' && { skip }),
    ...(Array.isArray(shown) && { shown }),
  }
}

/** Returns the URL that replaces a link of the upstream. */
type LinkSealing = (relation: string, url: string) => string

// R4 Bundle.link: these two members and no others, in either order.
const LINK =
  /\{\s*(?:"relation"\s*:\s*"([a-z]+)"\s*,\s*"url"\s*:\s*"((?:[^"\\]|\\.)*)"|"url"\s*:\s*"((?:[^"\\]|\\.)*)"\s*,\s*"relation"\s*:\s*"([a-z]+)")\s*\}/g

// Links are before the entries or after them: no more than this is held back.
const HEAD = 64 * 1024
const TAIL = 16 * 1024

/** Seals the links of a Bundle while it is streamed. Latin 1 keeps every byte. */
export function createLinkSealer(seal: LinkSealing): Transform {
  let kept = ''
  let inHead = true
  const pass = (text: string): string => {
    const all = kept + text
    if (inHead && !all.includes('"entry"') && all.length < HEAD) {
      kept = all
      return ''
    }
    const ready = inHead ? sealLinks(all, seal) : all
    inHead = false
    const end = Math.max(ready.length - TAIL, 0)
    kept = ready.slice(end)
    return ready.slice(0, end)
  }
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) =>
      done(null, Buffer.from(pass(chunk.toString('latin1')), 'latin1')),
    flush: done => done(null, Buffer.from(sealLinks(kept, seal), 'latin1')),
  })
}

/** Seals the links of a Bundle in memory. */
export function sealLinks(text: string, seal: LinkSealing): string {
  return text.replace(LINK, (_all, first?: string, url?: string, other?: string, last?: string) => {
    const relation = first ?? last ?? ''
    return JSON.stringify({ relation, url: seal(relation, JSON.parse(`"${url ?? other ?? ''}"`)) })
  })
}

/** The items of an upstream's page that the caller may see. */
export interface UpstreamItems<Item> {
  readonly items: readonly Item[]
  readonly next: PageCursor | undefined
}

/** A page that the gateway composes itself. */
export interface Gathered<Item> {
  readonly items: readonly Item[]
  readonly links: Links
  /** Whether there is no other page. */
  readonly isWhole: boolean
  /** Whether the limit of upstream pages ended the page: then it may be short. */
  readonly isEndless: boolean
}

/** The items of earlier pages, which are not shown again. */
interface Shown<Item> {
  has(item: Item): boolean
  add(item: Item): void
}

const NONE: Shown<unknown> = { has: () => false, add: () => undefined }

/**
 * Composes a page of the items that the caller may see, where the upstream cannot filter exactly: its own pages would
 * reveal how many items are left out. There is a next page only if it has an item
 * (docs/decisions/0136-pages-through-the-gateway.md). A page ends with `count` items or `PAGE_CHARACTERS` characters.
 */
export async function gather<Item>(
  from: PageCursor | undefined,
  count: number,
  fetch: (link: string) => Promise<UpstreamItems<Item> | Failure>,
  shown: Shown<Item> = NONE,
  getSize: (item: Item) => number = item => formatExact(item).length,
): Promise<Gathered<Item> | Failure> {
  const items: Item[] = []
  let size = 0
  const finish = (next: PageCursor | undefined, isEndless = false): Gathered<Item> => ({
    items,
    links: new Map(next && [['next', next]]),
    isWhole: next === undefined && from === undefined,
    isEndless,
  })
  let cursor = from ?? { link: '' }
  for (let pages = 1; ; pages++) {
    const { link, skip = 0 }: PageCursor = cursor
    const page = await fetch(link)
    if (isFailure(page)) return page
    for (const [at, it] of page.items.entries()) {
      if (at < skip || shown.has(it)) continue
      size += getSize(it)
      const isFull = size > limits.PAGE_CHARACTERS && items.length > 0
      if (isFull || items.length === count) return finish({ link, skip: at })
      items.push(it)
      shown.add(it)
    }
    if (!page.next) return finish(undefined)
    if (pages === UPSTREAM_PAGES) return finish(page.next, true)
    cursor = page.next
  }
}
