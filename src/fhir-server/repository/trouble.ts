// SQLite's result codes for what is the machine's fault and may pass: busy, locked, no memory, read-only, I/O error,
// full disk, cannot open.
const PASSING: ReadonlySet<number> = new Set([5, 6, 7, 8, 10, 13, 14])

/** Whether the data could not be reached or written for now, through no fault of the request. */
export function isStorageTrouble(error: unknown): boolean {
  if (!(error instanceof Error) || !('errcode' in error)) return false
  // The low byte is the kind; the rest says more about it.
  return PASSING.has(Number(error.errcode) & 0xff)
}
