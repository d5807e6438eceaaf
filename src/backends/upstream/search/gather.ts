import { type AnyProblem, formatExact, isProblem, limits } from '../../../fhir/index.ts'
import { UPSTREAM_PAGES } from '../limits.ts'
import type { Links, PageCursor } from './fetch-page.ts'

/** A page of the upstream's, as far as it may be seen. */
export interface Part<Item> {
  readonly items: readonly Item[]
  readonly next: PageCursor | undefined
}

/** A page of our own. */
export interface Gathered<Item> {
  readonly items: readonly Item[]
  readonly links: Links
  /** Whether there is nothing beside this page. */
  readonly isWhole: boolean
  /** Whether so much was left out that it was not looked through to its end: then the page may be short. */
  readonly isEndless: boolean
}

/** What was shown before and is not shown again. */
export interface Shown<Item> {
  has(item: Item): boolean
  add(item: Item): void
}

const NONE: Shown<unknown> = { has: () => false, add: () => undefined }

/**
 * A page made here, of what the caller may see, where the upstream could not be told all of it: by its own pages one
 * could count what is left out. There is a next page if there is something on it (docs/decisions/0136-pages-through-the-gateway.md). It ends with
 * `count` items, or before they have more than `PAGE_CHARACTERS`.
 */
export async function gather<Item, P extends AnyProblem>(
  from: PageCursor | undefined,
  count: number,
  fetch: (link: string) => Promise<Part<Item> | P>,
  shown: Shown<Item> = NONE,
  sizeOf: (item: Item) => number = item => formatExact(item).length,
): Promise<Gathered<Item> | P> {
  const items: Item[] = []
  let size = 0
  const pageOf = (next: PageCursor | undefined, isEndless = false): Gathered<Item> => ({
    items,
    links: new Map(next && [['next', next]]),
    isWhole: next === undefined && from === undefined,
    isEndless,
  })
  let spot = from ?? { link: '' }
  for (let pages = 1; ; pages++) {
    const { link, skip = 0 }: PageCursor = spot
    const part = await fetch(link)
    if (isProblem(part)) return part
    for (const [at, it] of part.items.entries()) {
      if (at < skip || shown.has(it)) continue
      size += sizeOf(it)
      const isFull = size > limits.PAGE_CHARACTERS && items.length > 0
      if (isFull || items.length === count) return pageOf({ link, skip: at })
      items.push(it)
      shown.add(it)
    }
    if (!part.next) return pageOf(undefined)
    if (pages === UPSTREAM_PAGES) return pageOf(part.next, true)
    spot = part.next
  }
}
