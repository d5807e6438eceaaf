/** An HTTP request as the interceptor and the router see it. */
export interface FhirRequest {
  readonly method: string
  /** The FHIR base, without a trailing slash, where it is known: If-None-Exist may name it. */
  readonly baseUrl?: string | undefined
  /** Raw, below the FHIR base: empty or with a leading slash. */
  readonly path: string
  /** Raw, without the question mark. */
  readonly query: string
  /** Names in any case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The raw `application/x-www-form-urlencoded` body of a `_search`. */
  readonly form?: string | undefined
}

/** On what version of a resource an interaction depends (R4 http.html#cread, #concurrency). */
export interface Preconditions {
  readonly ifMatch?: string | undefined
  readonly ifNoneMatch?: string | undefined
  readonly ifModifiedSince?: string | undefined
}

/** The headers that change what a request means. */
export interface Headers {
  readonly override: boolean
  readonly contentType: string | undefined
  readonly ifNoneExist: string | undefined
}

const OVERRIDES = new Set(['x-http-method-override', 'x-http-method', 'x-method-override'])

export function readHeaders(headers: FhirRequest['headers']): Headers {
  let override = false
  let contentType: string | undefined
  let ifNoneExist: string | undefined
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value === undefined) continue
    const known = name.toLowerCase()
    if (OVERRIDES.has(known)) override = true
    // Sent twice, a header is a list: it then matches nothing that we understand.
    else if (known === 'content-type') contentType = String(value)
    else if (known === 'if-none-exist') ifNoneExist = Array.isArray(value) ? '' : String(value)
  }
  return { override, contentType, ifNoneExist }
}
