/** Limits of all three servers (docs/limits.md). */

/** Bytes of the request line and the headers. */
export const HEADER_BYTES = 16 * 1024
/** Characters of `traceparent` and of `tracestate`. */
export const TRACE_CHARACTERS = 512
/** Bytes of a form, and the default for other bodies. */
export const FORM_BYTES = 64 * 1024
export const BODY_BYTES = 1024 * 1024
/**
 * Bytes for reading the rest of a request after its response, and the time without any, before the connection is closed: more
 * bytes where larger bodies are accepted.
 */
export const DRAIN_BYTES = 64 * 1024 * 1024
export const DRAIN_MS = 10_000
/** Time in which a client sends a whole request. */
export const REQUEST_MS = 120_000
