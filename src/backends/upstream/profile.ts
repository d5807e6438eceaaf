import { isRecord } from '../../fhir/index.ts'

/**
 * How an upstream behaves where servers differ. The gateway relies on nothing in FHIR R4 that a server is known to do
 * differently without a trait here or a check of the response.
 */
export interface UpstreamProfile {
  /** Whether `GET Patient/[id]/[type]` works. If not, the gateway sends a search parameter. */
  readonly compartmentSearches: 'yes' | 'no' | 'as-stated'
  /**
   * The precondition of a PUT that must not overwrite: `If-None-Match: *` (RFC 9110), or `If-Match: W/"0"` in addition. A
   * server that honours `If-None-Match` refuses the second one for an absent resource. With `none`, a limited caller has to
   * use POST.
   */
  readonly createOnlyPut: 'if-none-match' | 'if-match-zero' | 'none'
  /** How a DELETE is bound to the checked version: by `If-Match`, or by a conditional delete with `_lastUpdated`. */
  readonly boundDelete: 'if-match' | 'last-updated'
  /**
   * Whether the server reads dates of a year or month, quantities, modifiers and repeated parameters as R4 defines. If
   * not, the gateway evaluates such clauses of scopes and policies itself and does not send them.
   */
  readonly exactSearches: boolean
  /** Whether searches are answered from earlier results. The gateway sends `Cache-Control: no-cache` in any case. */
  readonly cachedSearches: boolean
  /** Whether a reference with the server's own base URL is local. The gateway sends `Type/id` in any case. */
  readonly ownUrls: boolean
  /** Whether a history is complete right after a delete. The gateway reads the version before the deletion first. */
  readonly currentHistory: boolean
  /** Whether a PUT may create a resource with a numeric id. If not, the server refuses it, and the gateway passes that on. */
  readonly numericIds: boolean
  /** Whether the server may refuse a reference to an absent resource, which would reveal what exists (WRITE-11). */
  readonly checksReferences: boolean
}

/** A server that behaves as R4 defines. */
const STRICT: UpstreamProfile = {
  compartmentSearches: 'as-stated',
  createOnlyPut: 'if-none-match',
  boundDelete: 'if-match',
  exactSearches: true,
  cachedSearches: false,
  ownUrls: true,
  currentHistory: true,
  numericIds: true,
  checksReferences: false,
}

/** HAPI FHIR JPA with its default settings (measured with 8.8.0). */
const HAPI: UpstreamProfile = {
  compartmentSearches: 'no',
  createOnlyPut: 'if-match-zero',
  boundDelete: 'last-updated',
  exactSearches: false,
  cachedSearches: true,
  ownUrls: false,
  currentHistory: false,
  numericIds: false,
  checksReferences: true,
}

/** An unknown server: nothing is assumed that only a conformant one does, if there is another way. */
const CAREFUL: UpstreamProfile = {
  ...STRICT,
  exactSearches: false,
  cachedSearches: true,
  ownUrls: false,
  currentHistory: false,
  checksReferences: true,
}

/** A server on which a PUT may overwrite a resource, whatever its preconditions are. */
const POST_ONLY: UpstreamProfile = { ...CAREFUL, createOnlyPut: 'none' }

export type ProfileName = 'auto' | 'hapi' | 'post-only' | 'strict'

/** The profile of a setting; `auto` recognises the server by its CapabilityStatement, where that could be read. */
export function chooseProfile(
  name: ProfileName,
  statement: Readonly<Record<string, unknown>> | undefined,
): UpstreamProfile {
  switch (name) {
    case 'hapi':
      return HAPI
    case 'post-only':
      return POST_ONLY
    case 'strict':
      return STRICT
    case 'auto':
      return recognise(statement)
  }
}

function recognise(statement: Readonly<Record<string, unknown>> | undefined): UpstreamProfile {
  const name = isRecord(statement?.software) ? String(statement.software.name) : ''
  if (/\bHAPI\b/i.test(name)) return HAPI
  return { ...CAREFUL, checksReferences: name !== 'Sallyport' }
}
