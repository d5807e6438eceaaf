import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { failFor, type Interaction, type Params, readPageParams } from '../fhir/index.ts'
import { grantFingerprint } from '../smart/index.ts'
import { buildUrl, type Link } from './bundle-json.ts'
import type { FhirRequest } from './request.ts'
import { type Failure, failRefused } from './response.ts'

/** The position in a search or history. Only the backend that created it knows its meaning. */
export type Cursor = object

/** A page, and who may open it. */
export interface Page {
  /** The path of the interaction: a page of one is not a page of another. */
  readonly path: string
  /** As first requested; decided again with every page. */
  readonly params: Params
  /** Null for the first page. */
  readonly cursor: Cursor | null
  /** The pages before this one. */
  readonly before?: PageTrail
  /** The fingerprint of the grant that received the link. */
  readonly grant: string
}

/** Encrypts page links, so that they reveal nothing about the search and cannot be forged. */
export interface Pages {
  /** The name of the parameter that carries a page. */
  readonly parameter: string
  seal(page: Page): string
  /** Undefined for a text that was not sealed here. */
  open(text: string): Page | undefined
}

interface TextSealer {
  seal(text: string, purpose: string): string
  tryOpen(text: string, purpose: string): string | undefined
}

/**
 * The length of a link depends on the request alone: positions depend on resources outside the access, and take the same
 * room, whatever they are. `room` is the number of bytes for them.
 */
export function createPages(sealer: TextSealer, parameter: string, purpose: string, room: number): Pages {
  return {
    parameter,
    seal({ cursor, before, ...request }) {
      const shown = padTo(JSON.stringify(request), BLOCK)
      return sealer.seal(shown + formatPositions(cursor, before ?? [], room), purpose)
    },
    open(text) {
      const [shown, separator, hidden] = sealer.tryOpen(text, purpose)?.split(SEPARATOR) ?? []
      // Releases up to 0.3.0 sealed one part.
      if (shown === undefined || hidden === undefined) return undefined
      const [cursor, before] = separator === PACKED ? unpack(hidden) : JSON.parse(hidden)
      return { ...JSON.parse(shown), cursor, ...(before.length > 0 && { before }) }
    },
  }
}

const BLOCK = 256

function padTo(text: string, multiple: number): string {
  return text.padEnd(Math.ceil(text.length / multiple) * multiple)
}

type Positions = readonly [cursor: Cursor | null, before: PageTrail]

/** Before positions: as they are, or compressed. JSON contains neither, and 0.3.1 opens only compressed ones. */
const PLAIN = '\t'
const PACKED = '\n'
const SEPARATOR = /([\t\n])/

/** Compresses positions only if they have no room otherwise: it takes longer than everything else about a link. */
function formatPositions(cursor: Cursor | null, before: PageTrail, room: number): string {
  const plain = JSON.stringify([cursor, before])
  const bytes = Buffer.byteLength(plain)
  if (bytes <= room) return PLAIN + plain + ' '.repeat(room - bytes)
  return PACKED + padTo(packPositions(cursor, before, room), room)
}

/** Leaves out the oldest pages that have no room. The links of some upstreams are long and cannot be compressed. */
function packPositions(cursor: Cursor | null, before: PageTrail, room: number): string {
  const packed = deflateRawSync(JSON.stringify([cursor, before])).toString('base64url')
  return packed.length > room && before.length > 1 ? packPositions(cursor, before.slice(1), room) : packed
}

function unpack(packed: string): Positions {
  return JSON.parse(inflateRawSync(Buffer.from(packed, 'base64url')).toString())
}

export type Relation = 'next' | 'previous' | 'first' | 'last'

export type Cursors = ReadonlyMap<Relation, Cursor>

/** Positions of pages in the order in which they were opened. The first page has none. */
export type PageTrail = readonly (Cursor | null)[]

// A link carries the pages before it, so that a backend that only finds the next page has a previous one too.
const TRAIL_PAGES = 10

/** The links to this page as requested, and to other pages, which only the same grant can open. */
export function createLinks(
  { baseUrl, pages }: { readonly baseUrl: string; readonly pages: Pages },
  { interaction, authenticated }: FhirRequest<Paged>,
  path: string,
  used: Params,
  cursors: Cursors,
  /** The pages before this one, and this one. */
  trail: PageTrail = [],
): readonly Link[] {
  const links: Link[] = [{ relation: 'self', url: buildUrl(baseUrl + path, used) }]
  const { params } = interaction
  const grant = grantFingerprint(authenticated.grant)
  const add = (relation: Relation, cursor: Cursor | null, before: PageTrail) => {
    const page = { path, params, cursor, grant, ...(before.length > 0 && { before }) }
    links.push({ relation, url: `${baseUrl}${path}?${pages.parameter}=${pages.seal(page)}` })
  }
  for (const [relation, cursor] of cursors)
    add(relation, cursor, relation === 'next' ? trail.slice(-TRAIL_PAGES) : [])
  const previous = cursors.has('previous') ? undefined : trail.at(-2)
  if (previous !== undefined) add('previous', previous, trail.slice(0, -2))
  return links
}

export type Paged = Extract<Interaction, { readonly params: Params }>

/** A search or history as first requested, and the position of the page. */
interface Resumed<I extends Paged> {
  readonly request: FhirRequest<I>
  readonly cursor: Cursor | undefined
  /** The pages before this one, and this one. */
  readonly trail: PageTrail
}

/** Opens the page of a link, for the grant that received the link. The search or history is decided again. */
export function resumePage<I extends Paged>(
  { pages }: { readonly pages: Pages },
  request: FhirRequest<I>,
  path: string,
): Resumed<I> | Failure {
  const link = request.interaction.params.find(([name]) => name === pages.parameter)
  if (!link) return { request, cursor: undefined, trail: [null] }
  const page = pages.open(link[1])
  const params = page && readPageParams(request.interaction, pages.parameter, page.params)
  if (!params || page.path !== path) return failFor('page-link-changed')
  if (page.grant !== grantFingerprint(request.authenticated.grant)) return failFor('outside-access')
  const interaction: I = { ...request.interaction, params }
  const decision = request.authenticated.decide(interaction, request.work)
  if (!decision.allowed) return failRefused(decision)
  const { access, chains, lacks } = decision
  return {
    request: { ...request, interaction, access, chains, lacks },
    cursor: page.cursor ?? undefined,
    trail: [...(page.before ?? []), page.cursor],
  }
}
