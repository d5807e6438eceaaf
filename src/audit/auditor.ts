import { sql, type Transaction } from 'kysely'
import {
  type AuditRecord,
  countAnonymous,
  createPatientRecord,
  createRecordsInTurns,
  type FinishedRequest,
  KINDS_COUNTED,
} from '../audit-record/index.ts'
import type { Work } from '../fhir/index.ts'
import { isDatabaseUnavailable, type Schema, type Store } from '../store/index.ts'
import { type AuditEventServer, serveAuditEvents } from './fhir/serve-events.ts'
import { doLater } from './later.ts'
import { toRow } from './to-row.ts'
import {
  createIntent,
  type Delivery,
  deliverOnce,
  removeIntents,
  toDeliveries,
  withUnknownOutcome,
} from './trail/intents.ts'

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
  /** Stores the counts of anonymous requests and the outcomes of changes. Call it before the store closes. */
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

export interface AuditorOptions {
  readonly store: Store
  /** `smart.server.audit-failure`: how requests are handled while the store does not accept their records. */
  readonly failure?: 'refuse' | 'allow'
  /** Receives the records that were not stored. They contain no secret and may be logged. */
  readonly onError?: (error: unknown, records: readonly AuditRecord[]) => void
  readonly clock?: () => number
  /** The anonymous requests of one kind and source that are stored in full in a minute; the others are counted. */
  readonly fullRecords?: number
  /** The kinds and sources of anonymous requests that are told apart in a minute, for each kind of event. */
  readonly kinds?: number
}

/** How long the store is left alone after a failure. */
const REST_MS = 1000
const RETRY_MS = 2000
const REMOVE_MS = 1000

/** Stores records in the audit trail, and counts repeated anonymous requests. */
export function createAuditor(options: AuditorOptions): StoreAuditor {
  const { store, failure = 'refuse', onError = () => {}, clock = Date.now } = options
  const { fullRecords = 1, kinds = KINDS_COUNTED } = options
  const { trail } = store
  const anonymous = countAnonymous(add, { clock, fullRecords, kinds })
  const completions = doLater(redeliver, { everyMs: RETRY_MS })
  const completed = doLater<string>(ids => removeIntents(store, ids), { everyMs: REMOVE_MS })
  let away: { readonly until: number; readonly cause: unknown } | undefined

  async function write(attempt: () => Promise<void>): Promise<void> {
    if (away && clock() < away.until) throw away.cause
    try {
      await attempt()
      away = undefined
    } catch (cause) {
      if (isDatabaseUnavailable(cause)) away = { until: clock() + REST_MS, cause }
      throw cause
    }
  }

  function refuse(cause: unknown, records: readonly AuditRecord[]): void {
    onError(cause, records)
    if (failure === 'refuse') throw new AuditUnavailable(cause)
  }

  /** A record that the database refuses is logged and dropped: it must not delay the others. */
  async function redeliver(deliveries: readonly Delivery[]): Promise<void> {
    try {
      await deliverOnce(store, deliveries)
    } catch (cause) {
      const [first] = deliveries
      if (isDatabaseUnavailable(cause) || !first) throw cause
      if (deliveries.length === 1) return onError(cause, [first.record])
      for (const delivery of deliveries) await redeliver([delivery])
    }
  }

  async function deliver(delivered: readonly Delivery[]): Promise<boolean> {
    try {
      await write(() => trail.append(delivered.map(({ id, record }) => toRow(record, id))))
      return true
    } catch (cause) {
      const records = delivered.map(({ record }) => record)
      onError(cause, records)
      return false
    }
  }

  /**
   * Resolves when the rows are on disk. The trail (`store/trail.ts`) collects them for one commit; the writer of SQLite is
   * `addRow` in `store/sqlite/trail.ts`, that of PostgreSQL is in `store/postgres.ts`.
   */
  async function add(records: readonly AuditRecord[]): Promise<void> {
    const rows = records.map(record => toRow(record))
    try {
      await write(() => trail.append(rows))
    } catch (cause) {
      refuse(cause, records)
    }
  }

  async function addIn(trx: Transaction<Schema>, records: readonly AuditRecord[]): Promise<void> {
    try {
      await (failure === 'allow' ? insertOrSkip(trail, trx, records) : insert(trail, trx, records))
    } catch (cause) {
      refuse(cause, records)
    }
  }

  /** Records that were not stored are not counted as stored. */
  async function keep(
    records: readonly AuditRecord[],
    store: (kept: readonly AuditRecord[]) => Promise<void>,
  ): Promise<void> {
    const { kept, forget } = anonymous.select(records)
    try {
      if (kept.length > 0) await store(kept)
    } catch (error) {
      forget()
      throw error
    }
  }

  return {
    keeps: true,
    record: (...records) => keep(records, add),
    recordIn: (trx, ...records) => keep(records, kept => addIn(trx, kept)),
    deliver,
    redeliver,
    async prepare() {
      if (failure === 'allow') return
      try {
        if (away && clock() < away.until) throw away.cause
        await store.ping()
      } catch (cause) {
        throw new AuditUnavailable(cause)
      }
    },
    async intend(about) {
      const { id, record: unknown } = createIntent(about)
      try {
        await write(() => trail.announce([{ id, at: about.at, record: JSON.stringify(unknown) }]))
        return id
      } catch (cause) {
        refuse(cause, [about])
        return undefined
      }
    },
    async complete(intent, ...records) {
      if (intent === undefined) return add(records)
      const deliveries = toDeliveries(intent, records)
      if (await deliver(deliveries)) completed.add(intent)
      else completions.add(...deliveries)
    },
    async flush() {
      await anonymous.flush()
      await completions.flush()
      await completed.flush()
    },
  }
}

async function insert(
  trail: Store['trail'],
  trx: Transaction<Schema>,
  records: readonly AuditRecord[],
): Promise<void> {
  for (const record of records) await trail.appendIn(trx, toRow(record))
}

/** A savepoint protects the transaction: PostgreSQL aborts all of it if one statement fails. */
async function insertOrSkip(
  trail: Store['trail'],
  trx: Transaction<Schema>,
  records: readonly AuditRecord[],
): Promise<void> {
  await sql`savepoint audit`.execute(trx)
  try {
    await insert(trail, trx, records)
  } catch (error) {
    await sql`rollback to savepoint audit`.execute(trx)
    throw error
  } finally {
    await sql`release savepoint audit`.execute(trx)
  }
}

/** The audit of a FHIR server: it makes records of requests (`audit-record/finished.ts`), and serves AuditEvents. */
export interface FhirAudit extends AuditEventServer, Pick<Auditor, 'prepare' | 'deliver' | 'redeliver'> {
  /** Await before sending the response. Rejects if the record cannot be stored: then the response must not be sent. */
  record(finished: FinishedRequest, work: Work): Promise<void>
  /** Records the patients of a response that was too long to be read before it was sent. */
  recordPatients(finished: FinishedRequest, patients: readonly string[], reason?: string): Promise<void>
  /** For a server that stores the records with the change and delivers them. */
  createRecords(finished: FinishedRequest, work: Work): Promise<readonly AuditRecord[]>
  /** The record of a change whose outcome is not yet known. */
  createBegunRecords(begun: FinishedRequest, work: Work): Promise<readonly AuditRecord[]>
  /** Before and after a change at another server: see `Auditor`. */
  intend(begun: FinishedRequest, work: Work): Promise<string | undefined>
  complete(intent: string | undefined, finished: FinishedRequest, work: Work): Promise<void>
}

export interface FhirAuditOptions {
  readonly auditor: Auditor
  readonly store: Store
  readonly fhirBaseUrl: string
}

export function createFhirAudit({ auditor, store, fhirBaseUrl }: FhirAuditOptions): FhirAudit {
  // That of a Bundle is filed under the patients of its entries.
  const create = (finished: FinishedRequest, work: Work) => createRecordsInTurns(finished, fhirBaseUrl, work)
  return {
    ...serveAuditEvents(store, fhirBaseUrl),
    prepare: auditor.prepare,
    deliver: auditor.deliver,
    redeliver: auditor.redeliver,
    record: async (finished, work) => auditor.record(...(await create(finished, work))),
    recordPatients: (finished, patients, reason) =>
      auditor.record(createPatientRecord(finished, patients, fhirBaseUrl, reason)),
    createRecords: async (finished, work) => (auditor.keeps ? create(finished, work) : []),
    createBegunRecords: async (begun, work) =>
      auditor.keeps ? [withUnknownOutcome((await create(begun, work))[0])] : [],
    intend: async (begun, work) => auditor.intend((await create(begun, work))[0]),
    complete: async (intent, finished, work) => auditor.complete(intent, ...(await create(finished, work))),
  }
}
