import { BATCH_ENTRIES, BODY_BYTES, JSON_VALUES, TRANSACTION_ENTRIES } from './limits.ts'

/** The limits of a request body, which settings change together. */
export interface BodyLimits {
  readonly bytes: number
  /** Values in JSON. */
  readonly values: number
  readonly entries: EntryLimits
}

/** The largest number of entries of a Bundle. */
export interface EntryLimits {
  readonly batch: number
  readonly transaction: number
}

export const ENTRY_LIMITS: EntryLimits = { batch: BATCH_ENTRIES, transaction: TRANSACTION_ENTRIES }

/** For a Bundle that is within its limits already. */
export const ANY_ENTRIES: EntryLimits = {
  batch: Number.POSITIVE_INFINITY,
  transaction: Number.POSITIVE_INFINITY,
}

/** With more values, the parsed body would take more than 64 MB. */
const MAX_VALUES = 500_000

/** The number of values, and of entries of a batch, grow with the entries of a transaction: long strings cost little. */
export function createBodyLimits(bytes = BODY_BYTES, transaction = TRANSACTION_ENTRIES): BodyLimits {
  const share = transaction / TRANSACTION_ENTRIES
  const values = Math.min(MAX_VALUES, Math.ceil(JSON_VALUES * Math.max(1, share)))
  const batch = Math.ceil(BATCH_ENTRIES * share)
  return { bytes, values, entries: { batch, transaction } }
}
