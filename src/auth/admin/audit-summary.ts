import { setImmediate as yieldTurn } from 'node:timers/promises'
import { findPage, type KeptRecord, type RecordFilter, type TrailPosition } from '../../audit/index.ts'
import type { Admin } from './action.ts'

/** The FHIR requests of one person with one app from one address. */
export interface Access {
  /** The newest one. */
  readonly record: KeptRecord
  readonly requests: number
  readonly firstAt: number
}

export interface AccessSummary {
  /** The last used first. */
  readonly accesses: readonly Access[]
  /** Whether older records were not read. */
  readonly isCut: boolean
}

/** Records that are read for a summary, and at once. */
const MOST = 5_000
const AT_ONCE = 1_000

/** Who got data of the patients of a filter, with which app, and from where. Reads a bounded number of records. */
export async function summarizeAccess(
  { store }: Pick<Admin, 'store'>,
  filter: RecordFilter,
): Promise<AccessSummary> {
  const found = new Map<string, Access>()
  let after: TrailPosition | undefined
  for (let left = MOST; left > 0; left -= AT_ONCE) {
    const page = await findPage(store, {
      ...filter,
      events: [{ kind: 'fhir' }],
      allowed: true,
      after,
      limit: AT_ONCE,
    })
    for (const record of page.records) add(found, record)
    after = page.records.length === AT_ONCE ? page.records.at(-1) : page.next
    if (!after) break
    await yieldTurn()
  }
  return { accesses: [...found.values()], isCut: after !== undefined }
}

function add(found: Map<string, Access>, record: KeptRecord): void {
  const key = JSON.stringify([record.subject ?? record.fhir_user, record.client_id, record.address])
  const known = found.get(key) ?? { record, requests: 0 }
  found.set(key, { ...known, requests: known.requests + (record.repeats ?? 1), firstAt: record.at })
}
