import type { AuditRecord } from './record.ts'

/** How long anonymous requests of one kind and source are counted before the count is stored. */
const COUNTED_MS = 60_000

/** Kinds and sources of anonymous requests that are counted separately in that time, for each kind of event. */
export const KINDS_COUNTED = 5

/** Clinicians with a separate count among the rest, for each kind of event. */
export const SUBJECTS_COUNTED = 20

interface AnonymousCounts {
  /** The records that must be stored: all of authenticated requests, the first of anonymous ones. */
  select(records: readonly AuditRecord[]): Selected
  /** Stores the counts so far. If that fails, they are logged. */
  flush(): Promise<void>
}

interface Selected {
  readonly kept: readonly AuditRecord[]
  /** Call if they could not be stored: the next request is the first again. */
  forget(): void
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
  store: (records: readonly AuditRecord[]) => Promise<void>,
  {
    clock,
    fullRecords,
    kinds,
  }: { readonly clock: () => number; readonly fullRecords: number; readonly kinds: number },
): AnonymousCounts {
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
    await store(counted.map(counter => countRecord(counter, at))).catch(() => {})
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
    if (!counters.has(key) && hasRoom(event, kinds)) {
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
    return [...counters.values()].reduce((sum, counter) => sum + (counter.group === group ? 1 : 0), 0) < most
  }

  return {
    flush,
    select(records) {
      const kept: AuditRecord[] = []
      const firsts: string[] = []
      for (const record of records) {
        const key = record.anonymous ? count(record) : ''
        if (key !== undefined) kept.push(record)
        if (key) firsts.push(key)
      }
      return {
        kept,
        forget() {
          for (const key of firsts) counters.delete(key)
        },
      }
    },
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
