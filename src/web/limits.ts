/** What the three servers have in common (docs/limits.md). */

/** Bytes of the request line and the headers. */
export const HEADER_BYTES = 16 * 1024
/** Bytes of a form, and of any other body unless a server says otherwise. */
export const FORM_BYTES = 64 * 1024
export const BODY_BYTES = 1024 * 1024
/** What is still read of a request that has been answered, and for how long, before its connection is closed. */
export const DRAIN_BYTES = 64 * 1024 * 1024
export const DRAIN_MS = 10_000
