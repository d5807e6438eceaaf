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

/** How long anonymous requests of one kind and source are counted before the count is stored. */
const COUNTED_MS = 60_000

/** Kinds and sources of anonymous requests that are counted separately in that time, for each kind of event. */
export const KINDS_COUNTED = 5

/** Clinicians with a separate count among the rest, for each kind of event. */
export const SUBJECTS_COUNTED = 20

export interface CountingAuditor extends StoreAuditor {
  /** Also stores the counts so far. If that fails, they are logged. */
  flush(): Promise<void>
}

interface Counter {
  readonly group: string
  readonly record: AuditRecord
  /** The records that are stored in full. */
  full: number
  repeats: number
}

/**
 * Stores the first anonymous requests of a kind and source in full and counts those that follow within a minute, so
 * that an unauthenticated caller cannot fill the disk. The number of kinds and sources is limited for each kind of
 * event; the rest is counted together, separately for each clinician that it names.
 */
export function countAnonymous(
  auditor: StoreAuditor,
  { clock, fullRecords }: { readonly clock: () => number; readonly fullRecords: number },
): CountingAuditor {
  let counters = new Map<string, Counter>()
  let endsAt = 0
  let timer: NodeJS.Timeout | undefined

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const counted = [...counters.values()].filter(({ repeats }) => repeats > 0)
    counters = new Map()
    if (counted.length === 0) return
    const at = clock()
    // The auditor has reported the failure, with the counts.
    await auditor.record(...counted.map(counter => countRecord(counter, at))).catch(() => {})
  }

  function beginMinute(at: number): void {
    if (at < endsAt && timer) return
    if (timer) void flush()
    endsAt = at + COUNTED_MS
    timer = setTimeout(flush, COUNTED_MS)
    timer.unref()
  }

  function count(record: AuditRecord): string | undefined {
    beginMinute(record.at)
    const key = computeKey(record)
    const event = `${record.server} ${record.kind}`
    if (!counters.has(key) && hasRoom(event, KINDS_COUNTED)) {
      counters.set(key, { group: event, record, full: 1, repeats: 0 })
      return key
    }
    const known = counters.get(key)
    if (known && known.full < fullRecords) {
      known.full += 1
      return key
    }
    if (!repeat(key)) countTogether(event, record)
    return undefined
  }

  /** A flood may use up all groups, but must not hide its target: each clinician keeps a separate count. */
  function countTogether(event: string, record: AuditRecord): void {
    const { subject, fhirUser } = record
    const group = `${event} of clinicians`
    const key = JSON.stringify([event, subject])
    const isNamed = subject !== undefined && (counters.has(key) || hasRoom(group, SUBJECTS_COUNTED))
    if (isNamed) add(key, { group, record: { ...summarizeRest(record), subject, fhirUser } })
    else add(event, { group: 'rest', record: summarizeRest(record) })
  }

  function add(key: string, counter: Pick<Counter, 'group' | 'record'>): void {
    if (!repeat(key)) counters.set(key, { ...counter, full: fullRecords, repeats: 1 })
  }

  function repeat(key: string): boolean {
    const known = counters.get(key)
    if (known) known.repeats += 1
    return known !== undefined
  }

  function hasRoom(group: string, most: number): boolean {
    return counters.values().reduce((sum, counter) => sum + (counter.group === group ? 1 : 0), 0) < most
  }

  async function keepFirst(
    records: readonly AuditRecord[],
    keep: (...kept: readonly AuditRecord[]) => Promise<void>,
  ): Promise<void> {
    const kept: AuditRecord[] = []
    const firsts: string[] = []
    for (const record of records) {
      const key = record.anonymous ? count(record) : ''
      if (key !== undefined) kept.push(record)
      if (key) firsts.push(key)
    }
    if (kept.length === 0) return
    try {
      await keep(...kept)
    } catch (error) {
      // These records were not stored, so the next request is the first again.
      for (const key of firsts) counters.delete(key)
      throw error
    }
  }

  return {
    ...auditor,
    async flush() {
      await flush()
      await auditor.flush()
    },
    record: (...records) => keepFirst(records, auditor.record),
    recordIn: (trx, ...records) => keepFirst(records, (...kept) => auditor.recordIn(trx, ...kept)),
  }
}

function computeKey({
  server,
  kind,
  allowed,
  status,
  client,
  subject,
  reason,
  address,
}: AuditRecord): string {
  return JSON.stringify([server, kind, allowed, status, client, subject, reason, address])
}

function countRecord({ record, repeats }: Counter, at: number): AuditRecord {
  const { server, kind, interaction, allowed, status, client, subject, fhirUser, by, reason, address } =
    record
  return {
    at,
    server,
    kind,
    interaction,
    allowed,
    status,
    client,
    subject,
    fhirUser,
    by,
    reason,
    address,
    repeats,
  }
}

function summarizeRest({ at, server, kind, status }: AuditRecord): AuditRecord {
  return { at, server, kind, allowed: false, status, reason: 'Various reasons, from various addresses' }
}
