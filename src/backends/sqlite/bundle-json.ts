/**
 * Bundles as JSON text. What is stored is JSON already: it is put in as it is and never parsed, which is most of
 * the cost of a search.
 */
export interface BundleParts {
  readonly type: 'searchset' | 'history' | 'batch-response' | 'transaction-response'
  readonly total?: number | undefined
  readonly links?: readonly Link[]
  /** JSON of each entry. */
  readonly entries: readonly string[]
}

export interface Link {
  readonly relation: 'self' | 'next'
  readonly url: string
}

export function bundleJson({ type, total, links = [], entries }: BundleParts): string {
  const parts = [`"resourceType":"Bundle"`, `"type":"${type}"`]
  if (total !== undefined) parts.push(`"total":${total}`)
  if (links.length > 0) parts.push(`"link":${JSON.stringify(links)}`)
  if (entries.length > 0) parts.push(`"entry":[${entries.join(',')}]`)
  return `{${parts.join(',')}}`
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

/** An address below the base with its parameters. */
export function addressOf(base: string, params: readonly (readonly [string, string])[]): string {
  if (params.length === 0) return base
  return `${base}?${params.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&')}`
}

// Colons and commas, which FHIR names and values are full of, may stand in a query (RFC 3986, 3.4).
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll('%3A', ':').replaceAll('%2C', ',').replaceAll('%24', '$')
}
