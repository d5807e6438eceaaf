import { setImmediate as yieldTurn } from 'node:timers/promises'
import {
  findFirstOAuthEvents,
  findPage,
  type KeptRecord,
  type RecordFilter,
  type TrailPosition,
} from '../../../audit/index.ts'
import { PORTAL_CLIENT } from '../../../smart/index.ts'
import type { Store } from '../../../store/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { findPurpose } from '../../base/purposes.ts'
import { classify } from '../../pages/parts/access-log/visits.ts'
import type { Admin } from '../base/action.ts'

/**
 * `opened`: also changed; `list`: shown among others; `lookup`: in the administration; `server`: by the server for itself.
 */
export type AccessUse = 'opened' | 'list' | 'lookup' | 'server'

/** The FHIR requests of one person with one app from one place. */
export interface AccessRow {
  readonly use: AccessUse
  /** The newest one. */
  readonly record: KeptRecord
  /** The address of the browser, if it is known from the authorization of the app. */
  readonly workstation: string | undefined
  readonly requests: number
  readonly hasChanged: boolean
  readonly firstAt: number
}

export interface AccessSummary {
  /** The last used first. */
  readonly accesses: readonly AccessRow[]
  /** The accounts and apps of them that still exist. */
  readonly existing: ReadonlySet<string>
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
  const found = new Map<string, AccessRow>()
  let after: TrailPosition | undefined
  for (let left = MOST; left > 0; left -= AT_ONCE) {
    const page = await findPage(store, {
      ...filter,
      events: [{ kind: 'fhir' }],
      allowed: true,
      outcomes: ['0'],
      after,
      limit: AT_ONCE,
    })
    const workstations = await findWorkstations(store, page.records)
    for (const record of page.records) add(found, record, workstations.get(record.launch_id))
    after = page.records.length === AT_ONCE ? page.records.at(-1) : page.next
    if (!after) break
    await yieldTurn()
  }
  const accesses = [...found.values()]
  return { accesses, existing: await findExisting(store, accesses), isCut: after !== undefined }
}

function add(found: Map<string, AccessRow>, record: KeptRecord, workstation: string | undefined): void {
  const use = chooseUse(record)
  const who = record.subject ?? record.fhir_user
  const place = findPurpose(record)?.place
  const key = JSON.stringify([use, who, record.client_id, place, record.address, workstation])
  const known = found.get(key) ?? { use, record, workstation, requests: 0, hasChanged: false }
  found.set(key, {
    ...known,
    requests: known.requests + (record.repeats ?? 1),
    hasChanged: known.hasChanged || classify(record) === 'changed',
    firstAt: record.at,
  })
}

function chooseUse(record: KeptRecord): AccessUse {
  const use = findPurpose(record)?.use
  if (use === 'administration') return 'lookup'
  if (use === 'service' || record.subject === PORTAL_CLIENT) return 'server'
  return classify(record) === 'list' ? 'list' : 'opened'
}

/** Launches that are looked up at once. */
const LAUNCHES = 250

/** The addresses of the browsers in which apps were authorized, by launch. An app's server has its own address. */
export async function findWorkstations(
  store: Store,
  records: readonly KeptRecord[],
): Promise<ReadonlyMap<string | null, string>> {
  const launches = [...new Set(records.flatMap(record => record.launch_id ?? []))]
  const found = new Map<string | null, string>()
  for (let at = 0; at < launches.length; at += LAUNCHES) {
    const some = launches.slice(at, at + LAUNCHES)
    const events = await findFirstOAuthEvents(store, some, LIMITS.activityFirstEvents)
    for (const { kind, allowed, launch_id, address } of events)
      if (kind === 'authorize' && allowed && address !== null) found.set(launch_id, address)
  }
  return found
}

async function findExisting({ db }: Store, accesses: readonly AccessRow[]): Promise<ReadonlySet<string>> {
  const subjects = [...new Set(accesses.flatMap(({ record }) => record.subject ?? []))]
  const clients = [...new Set(accesses.flatMap(({ record }) => record.client_id ?? []))]
  const [users, apps] = await Promise.all([
    subjects.length === 0
      ? []
      : db.selectFrom('clinician').select('id').where('id', 'in', subjects).execute(),
    clients.length === 0
      ? []
      : db.selectFrom('client').select('client_id as id').where('client_id', 'in', clients).execute(),
  ])
  return new Set([...users, ...apps].map(({ id }) => id))
}
