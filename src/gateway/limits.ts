/** What one request may ask of the gateway beyond `src/fhir/limits.ts` (docs/limits.md). */

/** Requests to the upstream for one request of a client. */
export const UPSTREAM_REQUESTS = 2_000
/** And for each entry of a Bundle. */
export const UPSTREAM_REQUESTS_PER_ENTRY = 20
/** Characters that the upstream may answer with for one request of a client. */
export const UPSTREAM_CHARACTERS = 64 * 1024 * 1024
/** Bytes of a response of the upstream that is looked into, unless a setting says otherwise. */
export const RESPONSE_BYTES = 16 * 1024 * 1024
