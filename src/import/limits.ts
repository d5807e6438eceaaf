const MIB = 1024 * 1024

/** Bytes of a line of NDJSON. */
export const MAX_LINE_BYTES = 32 * MIB

/** Bytes of a Bundle, of an array or of a resource on several lines, unpacked. Parsing takes about five times as much memory. */
export const MAX_DOCUMENT_BYTES = 128 * MIB

export function formatMib(bytes: number): string {
  return `${Math.round(bytes / MIB)} MiB`
}
