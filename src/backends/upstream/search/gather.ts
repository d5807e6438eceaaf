import { isFailure } from '../../../core/index.ts'
import { formatExact, limits } from '../../../fhir/index.ts'
import type { Failure } from '../../../fhir-api/index.ts'
import { PORTIONS, UPSTREAM_PAGES } from '../limits.ts'
import type { Continuation, Extent, Links, PageCursor } from '../paging.ts'

/** The items of an upstream's page that the caller may see. */
export interface UpstreamItems<Item> {
  readonly items: readonly Item[]
  readonly continuation: Continuation
  /** Whether fewer resources were requested than the page has, because they are large: the next page has the others. */
  readonly isShortened?: boolean
  /** The page that begins with one of the items, if the upstream can begin there. */
  cursorAt?(index: number): PageCursor | undefined
}

/** Fetches the page of a cursor. The link of the first page is empty. */
type FetchItems<Item> = (from: PageCursor) => Promise<UpstreamItems<Item> | Failure>

/** A page that the gateway composes itself. */
export interface Gathered<Item> {
  readonly items: readonly Item[]
  readonly links: Links
  /** `endless` if the limit of upstream pages ended the page: then it may be short. */
  readonly extent: Extent | 'endless'
}

interface GatherOptions<Item> {
  /** The items of earlier pages, which are not shown again. */
  readonly shown?: { has(item: Item): boolean; add(item: Item): void }
  readonly getSize?: (item: Item) => number
  /** The order in which several searches are merged; without it one follows the other. */
  readonly compare?: ((a: Item, b: Item) => number) | undefined
}

/**
 * Composes a page of the items that the caller may see from one search or several: the upstream's own pages would reveal how
 * many items are left out. There is a next page only if it has an item
 * (docs/decisions/0136-pages-through-the-gateway.md). A page ends with `count` items or `PAGE_CHARACTERS` characters.
 */
export async function gather<Item>(
  from: PageCursor | undefined,
  count: number,
  fetches: readonly FetchItems<Item>[],
  options: GatherOptions<Item> = {},
): Promise<Gathered<Item> | Failure> {
  const { shown, compare, getSize = item => formatExact(item).length } = options
  const items: Item[] = []
  let size = 0
  const allowance = { pages: UPSTREAM_PAGES + fetches.length - 1 }
  const sources = fetches.map((fetch, at) => new Source(fetch, findStart(from, at), allowance))
  const finish = (extent: 'end' | 'part' | 'endless', fits?: number): Gathered<Item> => ({
    items,
    links: new Map(extent === 'end' ? [] : [['next', joinCursors(sources, fits)]]),
    extent: findExtent(extent),
  })
  const findExtent = (extent: 'end' | 'part' | 'endless') => {
    if (sources.some(it => it.isCut)) return 'cut'
    if (extent !== 'end') return extent
    return from === undefined ? 'whole' : 'part'
  }
  for (;;) {
    const unread = listUnread(sources, compare !== undefined)
    if (unread.length > 0) {
      const stops = await Promise.all(unread.map(it => it.readPage()))
      // Of sources that follow each other, the first decides.
      const stop = compare ? stops.find(it => it !== undefined) : stops[0]
      if (stop === 'endless') return finish('endless')
      if (stop) return stop
      continue
    }
    const source = compare ? findLeast(sources, compare) : sources.find(it => !it.hasEnded)
    if (!source) return finish('end')
    const item = source.getItem()
    if (shown?.has(item)) {
      source.skipItem()
      continue
    }
    size += getSize(item)
    if (items.length === count) return finish('part')
    if (size > limits.PAGE_CHARACTERS && items.length > 0) return finish('part', items.length + ROOM)
    items.push(item)
    shown?.add(item)
    source.skipItem()
  }
}

/** Resources that are requested in addition to those that have filled a page: one that makes a next page, and one in case the next ones are smaller. */
const ROOM = 2

/** The items of one search, page by page. */
class Source<Item> {
  readonly #fetch: FetchItems<Item>
  readonly #allowance: { pages: number }
  /** Of the present page, or of the next one until that is read. */
  #cursor: PageCursor | null
  #page: UpstreamItems<Item> | undefined
  /** The index of the present item on its page. */
  #index: number
  /** Whether a page before the present item was shortened. */
  #wasShortened = false
  /** Whether the upstream has not shown all matches. */
  isCut = false

  constructor(fetch: FetchItems<Item>, start: PageCursor | null, allowance: { pages: number }) {
    this.#fetch = fetch
    this.#cursor = start
    this.#index = start?.skip ?? 0
    this.#allowance = allowance
  }

  get hasEnded(): boolean {
    return this.#cursor === null
  }

  get hasBegun(): boolean {
    return this.#page !== undefined || !isStart(this.#cursor)
  }

  /** Whether a page has to be read before there is an item, or the end. */
  get isUnread(): boolean {
    return this.#cursor !== null && this.#page === undefined
  }

  /** Null after the last item. */
  createCursor(fits: number | undefined): PageCursor | null {
    if (!this.#cursor) return null
    const exact = this.#index === 0 ? undefined : this.#page?.cursorAt?.(this.#index)
    const here = this.#index === 0 ? this.#cursor : { ...this.#cursor, skip: this.#index }
    const { fits: _, ...cursor } = exact ?? here
    return fits === undefined ? cursor : { ...cursor, fits }
  }

  /** Returns why there is no page. */
  async readPage(): Promise<'endless' | Failure | undefined> {
    if (!this.#cursor) return undefined
    if (this.#allowance.pages === 0) return 'endless'
    this.#allowance.pages -= 1
    const page = await this.#fetch(this.#cursor)
    if (isFailure(page)) return page
    this.#page = page
    this.#leaveEmptyPage()
    return undefined
  }

  /** The present item, if the source has not ended and no page is unread. */
  getItem(): Item {
    const item = this.#page?.items[this.#index]
    if (item === undefined) throw new Error('no item: read a page first')
    return item
  }

  skipItem(): void {
    this.#index += 1
    this.#wasShortened = false
    this.#leaveEmptyPage()
  }

  /** Moves on if the page has no further item. */
  #leaveEmptyPage(): void {
    if (!this.#page || this.#index < this.#page.items.length) return
    const { continuation, items, isShortened } = this.#page
    this.isCut ||= continuation.kind === 'cut'
    this.#wasShortened ||= isShortened === true
    const next = continuation.kind === 'end' ? undefined : continuation.cursor
    const shown = this.#wasShortened ? this.#index - items.length : 0
    this.#page = undefined
    this.#cursor = next && shown > 0 ? { ...next, skip: shown } : (next ?? null)
    this.#index = this.#cursor?.skip ?? 0
  }
}

/** A search of all types has more than fifty searches, most of which find nothing. */
const MANY_AT_ONCE = 8

/** The sources of which a page has to be read before the next item is known. */
function listUnread<Item>(sources: readonly Source<Item>[], isMerged: boolean): readonly Source<Item>[] {
  if (isMerged) return sources.filter(it => it.isUnread)
  const first = sources.findIndex(it => !it.hasEnded)
  if (first < 0 || !sources[first]?.isUnread) return []
  const atOnce = sources.length > PORTIONS ? MANY_AT_ONCE : 1
  return sources.slice(first, first + atOnce).filter(it => it.isUnread)
}

function findLeast<Item>(
  sources: readonly Source<Item>[],
  compare: (a: Item, b: Item) => number,
): Source<Item> | undefined {
  return sources
    .filter(it => !it.hasEnded)
    .reduce<Source<Item> | undefined>(
      (least, it) => (least && compare(least.getItem(), it.getItem()) <= 0 ? least : it),
      undefined,
    )
}

function findStart(from: PageCursor | undefined, at: number): PageCursor | null {
  const start = from?.parts ? from.parts[at] : at === 0 ? from : undefined
  return start === undefined ? { link: '' } : start
}

function isStart(cursor: PageCursor | null): boolean {
  return cursor?.link === '' && cursor.skip === undefined && cursor.offset === undefined
}

function joinCursors(sources: readonly Source<unknown>[], fits: number | undefined): PageCursor {
  const [first, ...others] = sources
  if (others.length === 0) return first?.createCursor(fits) ?? { link: '' }
  const begun = sources.findLastIndex(it => it.hasEnded || it.hasBegun)
  return { link: '', parts: sources.slice(0, begun + 1).map(it => it.createCursor(fits)) }
}
