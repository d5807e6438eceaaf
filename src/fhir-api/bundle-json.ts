import type { Params } from '../fhir/index.ts'

/** Parts of a Bundle. Resources stay the text that is stored: parsing them would be most of the cost. */
export interface BundleParts {
  readonly type:
    | 'searchset'
    | 'history'
    | 'batch-response'
    | 'transaction-response'
    | 'document'
    | 'collection'
  readonly identifier?: object | undefined
  readonly timestamp?: string | undefined
  readonly total?: number | undefined
  readonly links?: readonly Link[]
  /** JSON of each entry. */
  readonly entries: readonly string[]
}

export interface Link {
  readonly relation: string
  readonly url: string
}

export function bundleJson(bundle: BundleParts): string {
  const { type, identifier, timestamp, total, links = [], entries } = bundle
  let json = '{"resourceType":"Bundle"'
  if (identifier) json += `,"identifier":${JSON.stringify(identifier)}`
  json += `,"type":"${type}"`
  if (timestamp !== undefined) json += `,"timestamp":${JSON.stringify(timestamp)}`
  if (total !== undefined) json += `,"total":${total}`
  if (links.length > 0) json += `,"link":${JSON.stringify(links)}`
  if (entries.length === 0) return `${json}}`
  json += ',"entry":['
  // Not joined: V8 copies what is concatenated once, when the response is written.
  for (const [at, entry] of entries.entries()) json += at === 0 ? entry : `,${entry}`
  return `${json}]}`
}

/** JSON of one entry: `resource` is JSON, the rest are values. */
export function entryJson(entry: {
  readonly fullUrl?: string | undefined
  readonly resource?: string | undefined
  readonly search?: { readonly mode: 'match' | 'include' | 'outcome' }
  readonly request?: object
  readonly response?: object
}): string {
  const parts: string[] = []
  if (entry.fullUrl !== undefined) parts.push(`"fullUrl":${JSON.stringify(entry.fullUrl)}`)
  if (entry.resource !== undefined) parts.push(`"resource":${entry.resource}`)
  if (entry.search) parts.push(`"search":{"mode":"${entry.search.mode}"}`)
  if (entry.request) parts.push(`"request":${JSON.stringify(entry.request)}`)
  if (entry.response) parts.push(`"response":${JSON.stringify(entry.response)}`)
  return `{${parts.join(',')}}`
}

/** A URL with its parameters. */
export function buildUrl(base: string, params: Params): string {
  if (params.length === 0) return base
  return `${base}?${params.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&')}`
}

// Colons and commas, which are frequent in FHIR names and values, are allowed in a query (RFC 3986, 3.4).
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll('%3A', ':').replaceAll('%2C', ',').replaceAll('%24', '$')
}
