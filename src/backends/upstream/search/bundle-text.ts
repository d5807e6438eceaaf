import { exactText, type Params } from '../../../fhir/index.ts'

export interface Link {
  readonly relation: string
  readonly url: string
}

export interface BundleParts {
  readonly type:
    | 'searchset'
    | 'history'
    | 'batch-response'
    | 'transaction-response'
    | 'document'
    | 'collection'
  readonly identifier?: object
  readonly timestamp?: string
  readonly total?: number | undefined
  readonly link?: readonly Link[]
  readonly entry: readonly object[]
}

/** A Bundle of our own: of the upstream's there is nothing in it but resources that were judged. */
export function bundleText({ type, identifier, timestamp, total, link = [], entry }: BundleParts): string {
  return exactText({
    resourceType: 'Bundle',
    ...(identifier && { identifier }),
    type,
    ...(timestamp !== undefined && { timestamp }),
    ...(total !== undefined && { total }),
    ...(link.length > 0 && { link }),
    ...(entry.length > 0 && { entry }),
  })
}

/** A Bundle of entries that are JSON already. */
export function bundleOfTexts(type: BundleParts['type'], entries: readonly string[]): string {
  const entry = entries.length === 0 ? '' : `,"entry":[${entries.join(',')}]`
  return `{"resourceType":"Bundle","type":"${type}"${entry}}`
}

/** An address with its parameters. */
export function addressOf(base: string, params: Params): string {
  if (params.length === 0) return base
  return `${base}?${params.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&')}`
}

// Colons and commas, which FHIR names and values are full of, may stand in a query (RFC 3986, 3.4).
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll('%3A', ':').replaceAll('%2C', ',').replaceAll('%24', '$')
}
