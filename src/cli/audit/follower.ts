import { findRecords, type KeptRecord, type RecordFilter } from '../../audit/index.ts'
import type { Store } from '../../store/index.ts'

/** Records of other instances may come late by this much. */
const LATE_MS = 5000

/** Looks for what came since the last look, oldest first. */
export type Look = () => Promise<readonly KeptRecord[]>

/** Goes on after the newest of what was shown: what was there before and not shown, as of a limit, is not made up for. */
export async function followTrail(
  store: Store,
  filter: RecordFilter,
  newestShown: KeptRecord | undefined,
  now: number,
): Promise<Look> {
  let newest = newestShown?.at ?? now
  const since = () => Math.max(filter.since ?? 0, newest - LATE_MS)
  const recent = () => findRecords(store, { ...filter, since: since(), order: 'oldest', limit: 10_000 })
  const before = (await recent()).filter(record => newestShown && !isAfter(record, newestShown))
  let seen = new Map(before.map(({ id, at }) => [id, at]))
  return async () => {
    const found = await recent()
    const fresh = found.filter(({ id }) => !seen.has(id))
    newest = Math.max(newest, ...found.map(({ at }) => at))
    seen = new Map(
      [...seen, ...found.map(({ id, at }) => [id, at] as const)].filter(([, at]) => at >= since()),
    )
    return fresh
  }
}

function isAfter(record: KeptRecord, other: KeptRecord): boolean {
  return record.at > other.at || (record.at === other.at && record.id > other.id)
}
