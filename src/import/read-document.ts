import { createHash } from 'node:crypto'
import { type Failed, fail, findOwn, isRecord } from '../core/index.ts'
import { parseExact, toPlain } from '../fhir/index.ts'
import { parseConditionalReference } from '../fhir-api/index.ts'
import type { Candidate, Place } from './loader.ts'

/** The resources of a document or of a line. */
export interface Content {
  readonly candidates: Iterable<Candidate>
  /** The number of conditional references without exactly one match. */
  readonly unresolved: number
}

/** Finds the `Type/id` that a conditional reference matches. */
export type FindConditional = (reference: string) => string | undefined

/** The resources of a document: a Bundle, an array or a single resource. */
export function readDocument(value: unknown, file: string, bytes: number, find: FindConditional): Content {
  const whole: Place = { file, unit: 'line', number: 1 }
  const placeEntry = (number: number): Place => ({ file, unit: 'entry', number })
  if (!Array.isArray(value)) return readValue(value, bytes, whole, find, placeEntry)
  const share = bytes / value.length
  return { candidates: value.map((item, at) => toCandidate(item, share, placeEntry(at + 1))), unresolved: 0 }
}

/** The resources of a Bundle, or a single resource. An entry may refer to a later one. */
export function readValue(
  value: unknown,
  bytes: number,
  whole: Place,
  find: FindConditional,
  placeEntry: (number: number) => Place = () => whole,
): Content {
  if (!isRecord(value) || value.resourceType !== 'Bundle')
    return { candidates: [toCandidate(value, bytes, whole)], unresolved: 0 }
  const fault = findBundleFault(value.type)
  if (fault !== undefined) return { candidates: [{ kind: 'fault', place: whole, fault }], unresolved: 0 }
  const entries = Array.isArray(value.entry) ? value.entry.map(readEntry) : []
  const { by, unresolved } = nameEntries(entries, find)
  return { candidates: listCandidates(entries, bytes / entries.length, by, placeEntry), unresolved }
}

function toCandidate(value: unknown, bytes: number, place: Place): Candidate {
  return { kind: 'resource', place, resource: withId(value), bytes }
}

/** One by one, because their references are replaced in copies. */
function* listCandidates(
  entries: readonly ImportedEntry[],
  bytes: number,
  by: Replacements,
  placeEntry: (number: number) => Place,
): Generator<Candidate> {
  for (const [at, entry] of entries.entries()) {
    const place = placeEntry(at + 1)
    if (entry.kind === 'fault') yield { ...entry, place }
    if (entry.kind === 'resource')
      yield { kind: 'resource', place, resource: replaceReferences(entry.resource, by), bytes }
  }
}

function nameEntries(
  entries: readonly ImportedEntry[],
  find: FindConditional,
): { readonly by: Replacements; readonly unresolved: number } {
  const by = new Map<string, string>()
  const conditionals = new Set<string>()
  for (const entry of entries) {
    if (entry.kind !== 'resource') continue
    const { resource, fullUrl } = entry
    if (fullUrl !== undefined) by.set(fullUrl, `${resource.resourceType}/${resource.id}`)
    for (const reference of listReferenceTexts(resource))
      if (parseConditionalReference(reference)) conditionals.add(reference)
  }
  let unresolved = 0
  for (const reference of conditionals) {
    const target = find(reference)
    if (target === undefined) unresolved++
    else by.set(reference, target)
  }
  return { by, unresolved }
}

type Fields = Readonly<Record<string, unknown>>

/** An entry of a Bundle: a resource to import, nothing, or something that cannot be imported. */
export type ImportedEntry =
  | { readonly kind: 'resource'; readonly resource: Fields; readonly fullUrl: string | undefined }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'fault'; readonly fault: string }

const NOT_IMPORTED: Readonly<Record<string, string>> = {
  history: 'Bundle: A history is not imported, only the present state',
  'batch-response': 'Bundle: A response is not imported',
  'transaction-response': 'Bundle: A response is not imported',
}

/** Why no entry of a Bundle of this type is imported; undefined if they are. */
export function findBundleFault(type: unknown): string | undefined {
  return typeof type === 'string' ? findOwn(NOT_IMPORTED, type) : undefined
}

export function readEntry(value: unknown): ImportedEntry {
  if (!isRecord(value)) return { kind: 'fault', fault: 'Bundle.entry: Expected an object' }
  const { resource, fullUrl, request, search } = value
  if (isRecord(search) && search.mode === 'outcome') return { kind: 'nothing' }
  const method = isRecord(request) ? request.method : undefined
  if (method !== undefined && method !== 'POST' && method !== 'PUT')
    return { kind: 'fault', fault: 'Bundle.entry: Only POST and PUT are imported' }
  if (!isRecord(resource)) return { kind: 'fault', fault: 'Bundle.entry: Expected a resource' }
  const id = findEntryId(resource, fullUrl, isRecord(request) && method === 'PUT' ? request.url : undefined)
  return {
    kind: 'resource',
    resource: resource.id === undefined ? { ...resource, id } : resource,
    fullUrl: typeof fullUrl === 'string' ? fullUrl : undefined,
  }
}

const ID_IN = {
  urn: /^urn:(?:uuid|oid):([A-Za-z0-9\-.]{1,64})$/,
  url: /^https?:\/\/.*\/[A-Z][A-Za-z]+\/([A-Za-z0-9\-.]{1,64})$/,
  request: /^[A-Z][A-Za-z]+\/([A-Za-z0-9\-.]{1,64})$/,
}

/** The resource's own id, else the one in the request, else the one in `fullUrl`. */
function findEntryId(resource: Fields, fullUrl: unknown, requestUrl: unknown): string {
  if (typeof resource.id === 'string') return resource.id
  const named =
    ID_IN.request.exec(String(requestUrl))?.[1] ??
    ID_IN.urn.exec(String(fullUrl))?.[1] ??
    ID_IN.url.exec(String(fullUrl))?.[1]
  return named ?? computeId(resource)
}

/** An id made from the content, so that a second import finds the resource of the first. */
function computeId(resource: Fields): string {
  return createHash('sha256')
    .update(JSON.stringify(toPlain(resource)))
    .digest('hex')
    .slice(0, 32)
}

/** The resource, with an id if it has none. A value that is not a resource stays as it is, and is refused later. */
function withId(resource: unknown): unknown {
  if (!isRecord(resource) || typeof resource.resourceType !== 'string' || resource.id !== undefined)
    return resource
  return { ...resource, id: computeId(resource) }
}

/** `Type/id` by the `fullUrl`s of a Bundle's entries and by its conditional references. */
type Replacements = ReadonlyMap<string, string>

/** Every reference of a resource, and every URL of an attachment, which may be that of an entry too. */
export function* listReferenceTexts(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  for (const [key, below] of Object.entries(value)) {
    if (typeof below === 'object') yield* listReferenceTexts(below)
    else if (isReference(key, below)) yield below
  }
}

/** The value with its references replaced. Parts that need no change are shared with the original. */
export function replaceReferences(value: unknown, by: Replacements): unknown {
  if (by.size === 0 || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(item => replaceReferences(item, by))
  return Object.fromEntries(
    Object.entries(value).map(([key, below]) => [
      key,
      isReference(key, below) ? (by.get(below) ?? below) : replaceReferences(below, by),
    ]),
  )
}

function isReference(key: string, value: unknown): value is string {
  return (key === 'reference' || key === 'url') && typeof value === 'string'
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Why a part of a file is not a resource. It never quotes the content. */
interface NotResource extends Failed {
  readonly fault: string
}

/** The exact JSON of some bytes (`parseExact`). */
export function parseBytes(bytes: Uint8Array): { readonly value: unknown } | NotResource {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return fail({ fault: 'Not UTF-8 text' })
  }
  try {
    return { value: parseExact(text) }
  } catch {
    return fail({ fault: 'Not JSON' })
  }
}
