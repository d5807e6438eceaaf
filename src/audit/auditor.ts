import type { Transaction } from 'kysely'
import type { Schema } from '../store/index.ts'
import type { Delivery } from './delivery.ts'
import type { AuditRecord } from './record.ts'

/** Stores audit records. Every server that has an auditor records a request before it answers (AUDIT-2). */
export interface Auditor {
  /**
   * Resolves when the records are on the disk: only then may the response go out. Rejects with `AuditUnavailable` when
   * they cannot be kept, unless the settings let requests pass all the same.
   */
  record(...records: readonly AuditRecord[]): Promise<void>
  /**
   * Adds the records to a transaction, so that they are kept if it commits. Rejects with `AuditUnavailable` when they
   * cannot be added, which rolls back the change that they are about.
   */
  recordIn(trx: Transaction<Schema>, ...records: readonly AuditRecord[]): Promise<void>
  /** Rejects while the trail is known to be unavailable: no change is begun then. */
  prepare(): Promise<void>
  /**
   * Announces a change that another server is asked to make, and resolves when the announcement is durable. Rejects with
   * `AuditUnavailable` when it cannot be: then nothing may be sent. Undefined where it may be sent all the same.
   */
  intend(record: AuditRecord): Promise<string | undefined>
  /**
   * Records what became of it. Never rejects, for the change is made: what cannot be written now is written later, and
   * after a restart the change is reported as one whose outcome is not known.
   */
  complete(intent: string | undefined, ...records: readonly AuditRecord[]): Promise<void>
  /** Adds records that are durable elsewhere. False when they could not be added now: see `redeliver`. */
  deliver(deliveries: readonly Delivery[]): Promise<boolean>
  /** Adds records that may have been added before, each once. Rejects while the trail is unavailable. */
  redeliver(deliveries: readonly Delivery[]): Promise<void>
  /** Whether records are kept at all. */
  readonly keeps: boolean
}

/** An auditor with work that is done a little later. */
export interface StoreAuditor extends Auditor {
  /** Does that work now; to be called before the store is closed. */
  flush(): Promise<void>
}

/** The store cannot take audit records: the request is refused with 503, worth trying again. */
export class AuditUnavailable extends Error {
  readonly statusCode = 503
  constructor(cause: unknown) {
    super('Cannot keep the audit record, so the request was refused', { cause })
  }
}

/** Keeps nothing (`smart.server.audit=false`). */
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
