import { createHash } from 'node:crypto'
import { type Failed, fail, findOwn, isFailure, isRecord } from '../core/index.ts'
import { parseExact, toPlain } from '../fhir/index.ts'
import { parseConditionalReference } from '../fhir-api/index.ts'
import type { InputFile } from './find-files.ts'
import type { Candidate } from './loader.ts'
import { isReadFailure, readBytes } from './read-bytes.ts'
import { splitDocument } from './split-document.ts'

/** The result of reading a document once, before any of it is imported. */
export interface Survey {
  readonly kind: 'bundle' | 'array' | 'resource'
  /** `Type/id` by `fullUrl` and, once they are found, by conditional reference. */
  readonly names: Map<string, string>
  /** Conditional references, to be resolved. */
  readonly conditionals: Set<string>
  /** Why none of the document is imported, if so. */
  readonly fault?: string
}

/**
 * Reads a document to its end to collect the `fullUrl`s of its entries: an entry may refer to a later one. Memory holds
 * these names, not the entries.
 */
export async function surveyDocument(file: InputFile, limit: number): Promise<Survey> {
  const names = new Map<string, string>()
  const conditionals = new Set<string>()
  try {
    for await (const part of splitDocument(readBytes(file.path), limit)) {
      if (part.kind === 'item') surveyEntry(part.bytes, names, conditionals)
      if (part.kind === 'frame') return { ...readFrame(part.bytes), names, conditionals }
    }
  } catch (error) {
    if (!isReadFailure(error)) throw error
  }
  // The document ends early: the complete entries are imported, and the second reading reports where it ends.
  return { kind: 'bundle', names, conditionals }
}

function readFrame(frame: Buffer): Pick<Survey, 'kind' | 'fault'> {
  const parsed = parseBytes(frame)
  if (isFailure(parsed)) return { kind: 'bundle', fault: parsed.fault }
  if (Array.isArray(parsed.value)) return { kind: 'array' }
  if (!isRecord(parsed.value) || parsed.value.resourceType !== 'Bundle') return { kind: 'resource' }
  const fault = findBundleFault(parsed.value.type)
  return fault === undefined ? { kind: 'bundle' } : { kind: 'bundle', fault }
}

function surveyEntry(bytes: Buffer, names: Map<string, string>, conditionals: Set<string>): void {
  const parsed = parseBytes(bytes)
  if (isFailure(parsed)) return
  const entry = readEntry(parsed.value)
  if (entry.kind !== 'resource') return
  const { resource, fullUrl } = entry
  if (fullUrl !== undefined) names.set(fullUrl, `${resource.resourceType}/${resource.id}`)
  for (const reference of listReferenceTexts(resource))
    if (parseConditionalReference(reference)) conditionals.add(reference)
}

/** The resources of a document, each with the line on which it begins. */
export async function* readDocument(
  file: InputFile,
  survey: Survey,
  by: Replacements,
  limit: number,
  onRead: (bytes: number) => void,
): AsyncGenerator<Candidate> {
  if (survey.kind === 'resource') return yield* readWhole(file, limit, onRead)
  const place = (line: number) => ({ file: file.label, line })
  for await (const part of splitDocument(readBytes(file.path, onRead), limit)) {
    if (part.kind === 'broken') yield { kind: 'broken', place: place(part.line), reason: part.reason }
    else if (part.kind === 'too-long')
      yield { kind: 'fault', place: place(part.line), fault: describeTooLong(limit) }
    else if (part.kind === 'item' && survey.fault === undefined)
      yield* readItem(part.bytes, survey.kind, by, place(part.line))
  }
  if (survey.fault !== undefined) yield { kind: 'fault', place: place(1), fault: survey.fault }
}

function* readItem(
  bytes: Buffer,
  kind: Survey['kind'],
  by: Replacements,
  place: Candidate['place'],
): Generator<Candidate> {
  const parsed = parseBytes(bytes)
  if (isFailure(parsed)) return yield { kind: 'fault', place, fault: parsed.fault }
  if (kind === 'array')
    return yield { kind: 'resource', place, resource: withId(parsed.value), bytes: bytes.length }
  const entry = readEntry(parsed.value)
  if (entry.kind === 'fault') yield { kind: 'fault', place, fault: entry.fault }
  if (entry.kind === 'resource')
    yield { kind: 'resource', place, resource: replaceReferences(entry.resource, by), bytes: bytes.length }
}

/** A file with one resource. (A List has an `entry` too, so that only the whole document decides.) */
async function* readWhole(
  file: InputFile,
  limit: number,
  onRead: (bytes: number) => void,
): AsyncGenerator<Candidate> {
  const place = { file: file.label, line: 1 }
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of readBytes(file.path, onRead)) {
    length += chunk.length
    if (length <= limit) chunks.push(chunk)
  }
  if (length > limit) return yield { kind: 'fault', place, fault: describeTooLong(limit) }
  const parsed = parseBytes(Buffer.concat(chunks))
  if (isFailure(parsed)) yield { kind: 'fault', place, fault: parsed.fault }
  else yield { kind: 'resource', place, resource: withId(parsed.value), bytes: length }
}

export function describeTooLong(limit: number): string {
  return `Longer than ${Math.round(limit / 1024 / 1024)} MiB`
}

type Fields = Readonly<Record<string, unknown>>

/** An entry of a Bundle: a resource to import, nothing, or something that cannot be imported. */
export type BundleEntry =
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

export function readEntry(value: unknown): BundleEntry {
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
export function withId(resource: unknown): unknown {
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
