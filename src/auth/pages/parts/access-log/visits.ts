import type { KeptRecord } from '../../../../audit/index.ts'
import { MINUTE_MS } from '../../../../core/index.ts'
import { PORTAL_CLIENT } from '../../../../smart/index.ts'
import { findDayStart } from '../../../../web/ui/index.ts'
import { findPurpose } from '../../../base/purposes.ts'
import { isPatientUser } from '../../../base/user.ts'
import type { AccessRecord } from './people.ts'

/** How a record was used: opened, changed, looked up in the administration, or only shown among those of others. */
export const ACCESS_KINDS = {
  opened: 'Opened the record',
  changed: 'Changed the record',
  checked: 'Checked in the administration',
  list: 'Appeared in a list',
} as const

export type AccessKind = keyof typeof ACCESS_KINDS

/** Accesses of one person or app with short pauses between them, newest first. */
export type Visit = readonly [AccessRecord, ...AccessRecord[]]

export interface Day {
  /** The start of the day, in the reader's time zone. */
  readonly start: number
  readonly visits: readonly Visit[]
  /** Visits in which the record only appeared in lists. */
  readonly lists: readonly Visit[]
}

/** A longer pause begins another visit. */
const PAUSE_MS = 30 * MINUTE_MS

/** Groups records, which are newest first, by day of the zone and by visit. */
export function groupByDay(records: readonly AccessRecord[], zone: string): readonly Day[] {
  let current = Number.POSITIVE_INFINITY
  const findStart = ({ at }: AccessRecord) => {
    if (at < current) current = findDayStart(at, zone)
    return current
  }
  return [...Map.groupBy(records, findStart)].map(([start, ofDay]) => {
    const isList = (record: AccessRecord) => classify(record) === 'list'
    return {
      start,
      visits: groupByVisit(ofDay.filter(record => !isList(record))),
      lists: groupByVisit(ofDay.filter(isList)),
    }
  })
}

function groupByVisit(records: readonly AccessRecord[]): readonly Visit[] {
  const visits: [AccessRecord, ...AccessRecord[]][] = []
  const current = new Map<string, [AccessRecord, ...AccessRecord[]]>()
  for (const record of records) {
    // Access that ended and was allowed again is two visits of an app: it did not look in between.
    const actor = identifyActor(record) + (isOfPatientUser(record) ? record.launch_id : '')
    const visit = current.get(actor)
    if (visit && (visit.at(-1) ?? record).at - record.at <= PAUSE_MS) visit.push(record)
    else {
      const begun: [AccessRecord, ...AccessRecord[]] = [record]
      current.set(actor, begun)
      visits.push(begun)
    }
  }
  return visits
}

/**
 * A clinician is the same in every app, and another one in the administration. The apps of patients and relatives act on their
 * own, so each is another one.
 */
export function identifyActor(record: AccessRecord): string {
  const { subject, person, client_id } = record
  const isApp = isOfPatientUser(record) || (subject ?? person) === null
  return JSON.stringify([subject ?? person, isApp ? client_id : '', isOfAdministration(record)])
}

/** Whether a patient or a relative acted, or an app for them. */
export function isOfPatientUser({ person }: Pick<AccessRecord, 'person'>): boolean {
  return person !== null && isPatientUser({ fhirUserId: person })
}

/** Whether an administrator or auditor checked something, and did not open the record. */
export function isOfAdministration(record: Pick<KeptRecord, 'client_id' | 'reason'>): boolean {
  return findPurpose(record)?.use === 'administration'
}

const CHANGES = ['create', 'update', 'update-conditional', 'patch', 'patch-conditional'] as const
const REMOVALS = ['delete', 'delete-conditional'] as const

/** The interactions that change a record. */
export const CHANGING = [...CHANGES, ...REMOVALS] as const

type Classified = Omit<KeptRecord, 'fhir_user'>

export function classify(record: Classified): AccessKind {
  if (CHANGING.some(interaction => interaction === record.interaction)) return 'changed'
  if (isOfAdministration(record)) return 'checked'
  return isInList(record) ? 'list' : 'opened'
}

/** A search for patients finds this one among others, unless it names its id. Portal pages name the ids of their lists. */
const NAMES_ONE = /[?&]_id=[^,&]+(?:&|$)/

function isInList({ decided_by, patients, interaction, resource_type, client_id, request }: Classified) {
  // Such a token opens one record.
  if (decided_by?.startsWith('patient/')) return false
  if (patients !== null) return true
  const isSearch = resource_type === 'Patient' && interaction === 'search-type'
  return isSearch && (client_id === PORTAL_CLIENT || !NAMES_ONE.test(request ?? ''))
}

const WHOLE: ReadonlySet<string | null> = new Set(['batch', 'transaction', 'bundle'])

/**
 * A Bundle is recorded by its entries too. The requests of these pages for their own reader are no news to them, and what the
 * server reads for itself nobody sees.
 */
export function isShown(record: KeptRecord, readerId: string): boolean {
  const { client_id, subject, interaction } = record
  const use = findPurpose(record)?.use ?? (subject === PORTAL_CLIENT ? 'service' : 'look')
  const isOwnPage = client_id === PORTAL_CLIENT && (subject === readerId || use === 'service')
  return !isOwnPage && !WHOLE.has(interaction)
}
