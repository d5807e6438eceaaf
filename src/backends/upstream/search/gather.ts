import { formatExact, limits } from '../../../fhir/index.ts'
import { type Failure, isFailure } from '../../../fhir-api/index.ts'
import { UPSTREAM_PAGES } from '../limits.ts'
import type { Links, PageCursor } from './page-links.ts'

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
export interface Shown<Item> {
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
