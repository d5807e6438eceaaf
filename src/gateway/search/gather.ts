import { type AnyProblem, isProblem } from '../../fhir/index.ts'
import { PAGES } from './every-page.ts'
import type { Links, Spot } from './fetch-page.ts'

/** A page of the upstream's, as far as it may be seen. */
export interface Part<Item> {
  readonly items: readonly Item[]
  readonly next: Spot | undefined
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

/**
 * A page made here, of what the caller may see, where the upstream could not be told all of it: by its own pages one
 * could count what is left out. There is a next page if there is something on it (docs/decisions/0136).
 */
export async function gather<Item, P extends AnyProblem>(
  from: Spot | undefined,
  count: number,
  fetch: (link: string) => Promise<Part<Item> | P>,
): Promise<Gathered<Item> | P> {
  const items: Item[] = []
  const pageOf = (next: Spot | undefined, isEndless = false): Gathered<Item> => ({
    items,
    links: new Map(next && [['next', next]]),
    isWhole: next === undefined && from === undefined,
    isEndless,
  })
  let spot = from ?? { link: '' }
  for (let pages = 1; ; pages++) {
    const { link, skip = 0 }: Spot = spot
    const part = await fetch(link)
    if (isProblem(part)) return part
    const seen = part.items.slice(skip)
    const room = count - items.length
    // One by one: so many as an upstream may send are too many arguments.
    for (const it of seen.slice(0, room)) items.push(it)
    if (seen.length > room) return pageOf({ link, skip: skip + room })
    if (!part.next) return pageOf(undefined)
    if (pages === PAGES) return pageOf(part.next, true)
    spot = part.next
  }
}
