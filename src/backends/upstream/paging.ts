import { Transform } from 'node:stream'
import { isRecord } from '../../core/index.ts'
import type { Resource } from '../../fhir/index.ts'
import { createPages, type Pages, type Relation, type SearchEntry } from '../../fhir-api/index.ts'
import type { Sealer } from '../../store/index.ts'

/** The position of a page in the upstream's results. */
export interface PageCursor {
  /** The upstream's own link, below its base; empty for the first page. */
  readonly link: string
  /** The number of matches before the page, if the upstream counts them (`_offset`). The link is empty then. */
  readonly offset?: number
  /** The number of resources on that page that were shown already. */
  readonly skip?: number
  /** The number of resources that are requested, because a page has room for no more of them: they are large. */
  readonly fits?: number
  /** Keys of the included resources that earlier pages have shown. */
  readonly shown?: readonly string[]
  /** The positions in several searches, whose results make up one: null after the end. Searches that have not begun are missing. */
  readonly parts?: readonly (PageCursor | null)[]
}

export type Links = ReadonlyMap<Relation, PageCursor>

/** A resource that the caller may see. */
export interface CheckedResource extends SearchEntry {
  readonly resource: Resource
}

/** The entries of an upstream's page that the caller may see. */
export interface CheckedPage {
  readonly matches: readonly CheckedResource[]
  readonly includes: readonly CheckedResource[]
  /** Whether the upstream may have left out included resources. */
  readonly lacksIncludes: boolean
  /** The number of the upstream's matches that are left out: a short page would reveal it. */
  readonly omitted: number
}

/** How the upstream's results go on after a page: as it says itself, never as the number of entries suggests. */
export type Continuation =
  | { readonly kind: 'end' }
  | { readonly kind: 'next'; readonly cursor: PageCursor }
  /** The upstream says that matches are missing, or counts more of them than it shows. */
  | { readonly kind: 'cut'; readonly cursor?: PageCursor }

/** How much of the results a page has: all, a part whose links lead to the others, or a part without the others. Only the first has a total. */
export type Extent = 'whole' | 'part' | 'cut'

/** The part of an upstream's page that the caller may see. */
export interface UpstreamPage extends CheckedPage {
  readonly continuation: Continuation
  /** Whether fewer resources were requested than the page has, because they are large: the next page has the others. */
  readonly isShortened: boolean
  /** The page that begins with a match of this one, by its index, if the upstream can begin there. */
  cursorAt(index: number): PageCursor | undefined
}

/** The parameter that carries a page; its name differs from that of an upstream that is a Sallyport itself. */
export const PAGE = '_gateway-page'

// Two links of an upstream that is a Sallyport itself.
const POSITION_CHARACTERS = 2_048

/** Gateways with the same secret open each other's links. */
export function openPages(sealer: Sealer): Pages {
  return createPages(sealer, PAGE, 'paging link of the gateway', POSITION_CHARACTERS)
}

export function parseCursor(cursor: unknown): PageCursor | undefined {
  if (!isRecord(cursor) || typeof cursor.link !== 'string') return undefined
  const { link, offset, skip, fits, shown, parts } = cursor
  return {
    link,
    ...(typeof offset === 'number' && { offset }),
    ...(typeof skip === 'number' && { skip }),
    ...(typeof fits === 'number' && { fits }),
    ...(Array.isArray(shown) && { shown }),
    ...(Array.isArray(parts) && { parts: parts.map(it => parseCursor(it) ?? null) }),
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
