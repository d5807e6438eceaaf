import { createHash } from 'node:crypto'
import { isRecord, parseExact, toPlain } from '../../../fhir/index.ts'

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
  return typeof type === 'string' ? NOT_IMPORTED[type] : undefined
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
export type Replacements = ReadonlyMap<string, string>

/** Every reference of a resource, and every URL of an attachment, which may be that of an entry too. */
export function* findReferences(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  for (const [key, below] of Object.entries(value)) {
    if (typeof below === 'object') yield* findReferences(below)
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

/** The exact JSON of some bytes (`parseExact`), or why there is none. The reason never quotes them. */
export function parseJson(bytes: Uint8Array): { readonly value: unknown } | { readonly fault: string } {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return { fault: 'Not UTF-8 text' }
  }
  try {
    return { value: parseExact(text) }
  } catch {
    return { fault: 'Not JSON' }
  }
}
