import type { AuditRecord } from './record.ts'

/** A record that is durable under an id of its own, and is on its way to the trail. */
export interface Delivery {
  readonly id: string
  readonly record: AuditRecord
}

/** The status of a record of a change whose outcome is unknown. */
export const OUTCOME_UNKNOWN = 0

/** When a change that was begun and not completed is reported: longer than one can take, at an upstream or in a batch. */
export const UNKNOWN_AFTER_MS = 10 * 60_000
