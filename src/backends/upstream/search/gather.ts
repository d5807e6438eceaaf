import { isFailure } from '../../../core/index.ts'
import { formatExact, limits } from '../../../fhir/index.ts'
import type { Failure } from '../../../fhir-api/index.ts'
import { chunk } from '../chunk.ts'
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
    const source =
      findReady(sources, compare) ?? (await (compare ? findLeast(sources, compare) : findFirst(sources)))
    if (source === 'endless') return finish('endless')
    if (source === undefined) return finish('end')
    if (isFailure(source)) return source
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

type Advanced = 'item' | 'end' | 'endless' | Failure

/** The items of one search, page by page. */
class Source<Item> {
  readonly #fetch: FetchItems<Item>
  readonly #allowance: { pages: number }
  #cursor: PageCursor | null
  #page: UpstreamItems<Item> | undefined
  /** Whether the upstream has not shown all matches. */
  isCut = false

  constructor(fetch: FetchItems<Item>, start: PageCursor | null, allowance: { pages: number }) {
    this.#fetch = fetch
    this.#cursor = start
    this.#allowance = allowance
  }

  get hasEnded(): boolean {
    return this.#cursor === null
  }

  get hasBegun(): boolean {
    return this.#page !== undefined || !isStart(this.#cursor)
  }

  /** Null after the last item. */
  createCursor(fits: number | undefined): PageCursor | null {
    if (!this.#cursor) return null
    const exact = this.#cursor.skip === undefined ? undefined : this.#page?.cursorAt?.(this.#cursor.skip)
    const { fits: _, ...cursor } = exact ?? this.#cursor
    return fits === undefined ? cursor : { ...cursor, fits }
  }

  /** Whether `advance` has nothing to do. */
  get isReady(): boolean {
    return !this.#cursor || (this.#page !== undefined && (this.#cursor.skip ?? 0) < this.#page.items.length)
  }

  /** Moves on to the next page until there is an item. */
  async advance(): Promise<Advanced> {
    let wasShortened = false
    while (this.#cursor) {
      const { skip = 0 } = this.#cursor
      if (!this.#page && this.#allowance.pages === 0) return 'endless'
      if (!this.#page) {
        this.#allowance.pages -= 1
        const page = await this.#fetch(this.#cursor)
        if (isFailure(page)) return page
        this.#page = page
      }
      if (skip < this.#page.items.length) return 'item'
      const { continuation, items, isShortened } = this.#page
      this.#page = undefined
      this.isCut ||= continuation.kind === 'cut'
      const next = continuation.kind === 'end' ? undefined : continuation.cursor
      wasShortened ||= isShortened === true
      const shown = wasShortened ? skip - items.length : 0
      this.#cursor = next && shown > 0 ? { ...next, skip: shown } : (next ?? null)
    }
    return 'end'
  }

  /** The present item, after `advance`. */
  getItem(): Item {
    const item = this.#page?.items[this.#cursor?.skip ?? 0]
    if (item === undefined) throw new Error('no item: advance first')
    return item
  }

  skipItem(): void {
    if (this.#cursor) this.#cursor = { ...this.#cursor, skip: (this.#cursor.skip ?? 0) + 1 }
  }
}

/** A search of all types has more than fifty searches, most of which find nothing. */
const MANY_AT_ONCE = 8

type Found<Item> = Source<Item> | 'endless' | undefined | Failure

/** The source of the next item, if no page has to be fetched for it: most items are on the page of the one before. */
function findReady<Item>(
  sources: readonly Source<Item>[],
  compare: GatherOptions<Item>['compare'],
): Source<Item> | undefined {
  if (!compare) {
    const first = sources.find(it => !it.hasEnded)
    return first?.isReady ? first : undefined
  }
  return sources.every(it => it.isReady) ? chooseLeast(sources, compare) : undefined
}

async function findFirst<Item>(sources: readonly Source<Item>[]): Promise<Found<Item>> {
  for (const group of chunk(sources, sources.length > PORTIONS ? MANY_AT_ONCE : 1)) {
    const states = await Promise.all(group.map(it => it.advance()))
    for (const [index, state] of states.entries()) {
      if (state === 'item') return group[index]
      if (state !== 'end') return state
    }
  }
  return undefined
}

async function findLeast<Item>(
  sources: readonly Source<Item>[],
  compare: (a: Item, b: Item) => number,
): Promise<Found<Item>> {
  const states = await Promise.all(sources.map(it => it.advance()))
  const stop = states.find(it => it !== 'item' && it !== 'end')
  if (stop) return stop
  return chooseLeast(sources, compare)
}

function chooseLeast<Item>(
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
