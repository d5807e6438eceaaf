import type { StoreAuditor } from './auditor.ts'
import { COUNTED_MS, KINDS_COUNTED, SUBJECTS_COUNTED } from './limits.ts'
import type { AuditRecord } from './record.ts'

/** An auditor that holds counts for a while. */
export interface CountingAuditor extends StoreAuditor {
  /** Keeps the counts so far as well. Where that fails they are in the log. */
  flush(): Promise<void>
}

/** Requests of one kind and source: the first has a record of its own, `repeats` followed. */
interface Counter {
  /** Those that share a limit: the server and the kind of event. */
  readonly group: string
  readonly record: AuditRecord
  repeats: number
}

/**
 * Keeps the first anonymous request of a kind and source in full and counts those that follow within a minute, so that
 * nobody fills the disk without having proved who they are. Of each kind of event only so many kinds and sources are
 * told apart; the rest is counted together, for each clinician that it names and for everybody else.
 */
export function countAnonymous(auditor: StoreAuditor, clock: () => number): CountingAuditor {
  let counters = new Map<string, Counter>()
  let endsAt = 0
  let timer: NodeJS.Timeout | undefined

  /** Ends the minute: what was counted is written, and the next request of each kind is kept in full again. */
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

  /** The key by which a record must be kept, or undefined where it was counted. */
  function count(record: AuditRecord): string | undefined {
    beginMinute(record.at)
    const key = keyOf(record)
    const event = `${record.server} ${record.kind}`
    if (!counters.has(key) && hasRoom(event, KINDS_COUNTED)) {
      counters.set(key, { group: event, record, repeats: 0 })
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
    if (isNamed) add(key, { group, record: { ...restOf(record), subject, fhirUser } })
    else add(event, { group: 'rest', record: restOf(record) })
  }

  function add(key: string, counter: Omit<Counter, 'repeats'>): void {
    if (!repeat(key)) counters.set(key, { ...counter, repeats: 1 })
  }

  function repeat(key: string): boolean {
    const known = counters.get(key)
    if (known) known.repeats += 1
    return known !== undefined
  }

  function hasRoom(group: string, most: number): boolean {
    return counters.values().reduce((sum, counter) => sum + (counter.group === group ? 1 : 0), 0) < most
  }

  /** Keeps the records that are not merely counted. */
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
      // What could not be kept is not told yet: the next one is the first again.
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

function keyOf({ server, kind, allowed, status, client, subject, reason, address }: AuditRecord): string {
  return JSON.stringify([server, kind, allowed, status, client, subject, reason, address])
}

function countRecord({ record, repeats }: Counter, at: number): AuditRecord {
  const { server, kind, interaction, allowed, status, client, subject, fhirUser, by, reason, address } =
    record
  return {
    ...{ at, server, kind, interaction, allowed, status, client, subject, fhirUser, by, reason, address },
    repeats,
  }
}

/** Of several kinds, so that little can be said of them. */
function restOf({ at, server, kind, status }: AuditRecord): AuditRecord {
  return { at, server, kind, allowed: false, status, reason: 'Various reasons, from various addresses' }
}
