import type { Transaction } from 'kysely'
import type { Schema } from '../store/index.ts'
import type { AuditRecord, Delivery } from './record.ts'

/** Every server that has an auditor records a request before it responds (AUDIT-2). */
export interface Auditor {
  /**
   * Resolves when the records are on disk: only then may the response be sent. Rejects with `AuditUnavailable` if
   * they cannot be stored, unless the settings allow the request anyway.
   */
  record(...records: readonly AuditRecord[]): Promise<void>
  /**
   * Adds the records to a transaction. Rejects with `AuditUnavailable` if they cannot be added, which rolls back
   * the change that they record.
   */
  recordIn(trx: Transaction<Schema>, ...records: readonly AuditRecord[]): Promise<void>
  /** Rejects while the trail is known to be unavailable: no change may start then. */
  prepare(): Promise<void>
  /**
   * Announces a change that another server is about to make, and resolves when the announcement is durable. Rejects
   * with `AuditUnavailable` if it cannot be stored: then nothing may be sent. Undefined if the settings allow the
   * change anyway.
   */
  intend(record: AuditRecord): Promise<string | undefined>
  /**
   * Records the outcome. Never rejects, because the change is made: records that cannot be written now are written
   * later, and after a restart the change is reported with an unknown outcome.
   */
  complete(intent: string | undefined, ...records: readonly AuditRecord[]): Promise<void>
  /** Adds records that are durable elsewhere. Returns false if they could not be added now: see `redeliver`. */
  deliver(deliveries: readonly Delivery[]): Promise<boolean>
  /** Adds records that may already be in the trail, each once. Rejects while the trail is unavailable. */
  redeliver(deliveries: readonly Delivery[]): Promise<void>
  readonly keeps: boolean
}

export interface StoreAuditor extends Auditor {
  /** Call before the store closes. */
  flush(): Promise<void>
}

/** The store does not accept audit records: the request gets 503 and may be retried. */
export class AuditUnavailable extends Error {
  readonly statusCode = 503
  constructor(cause: unknown) {
    super('Cannot store the audit record, so the request was refused', { cause })
  }
}

/** `smart.server.audit=false`. */
export const noAudit: Auditor = {
  keeps: false,
  record: async () => {},
  recordIn: async () => {},
  prepare: async () => {},
  intend: async () => undefined,
  complete: async () => {},
  deliver: async () => true,
  redeliver: async () => {},
}
