import type { KeptRecord } from '../../../audit/index.ts'
import { MINUTE_MS } from '../../../core/index.ts'
import { PORTAL_CLIENT } from '../../../smart/index.ts'
import { findDayStart } from '../../../web/index.ts'
import { isPatientUser } from '../../base/user.ts'

/** How a record was used: opened, changed, or only shown among those of others. */
export const ACCESS_KINDS = {
  opened: 'Opened the record',
  changed: 'Changed the record',
  list: 'Appeared in a list',
} as const

export type AccessKind = keyof typeof ACCESS_KINDS

/** Accesses of one person or app with short pauses between them, newest first. */
export type Visit = readonly [KeptRecord, ...KeptRecord[]]

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
export function groupByDay(records: readonly KeptRecord[], zone: string): readonly Day[] {
  let current = Number.POSITIVE_INFINITY
  const findStart = ({ at }: KeptRecord) => {
    if (at < current) current = findDayStart(at, zone)
    return current
  }
  return [...Map.groupBy(records, findStart)].map(([start, ofDay]) => {
    const isList = (record: KeptRecord) => classify(record) === 'list'
    return {
      start,
      visits: groupByVisit(ofDay.filter(record => !isList(record))),
      lists: groupByVisit(ofDay.filter(isList)),
    }
  })
}

function groupByVisit(records: readonly KeptRecord[]): readonly Visit[] {
  const visits: [KeptRecord, ...KeptRecord[]][] = []
  const current = new Map<string, [KeptRecord, ...KeptRecord[]]>()
  for (const record of records) {
    // Access that ended and was allowed again is two visits of an app: it did not look in between.
    const actor = identifyActor(record) + (isOfPatientUser(record) ? record.launch_id : '')
    const visit = current.get(actor)
    if (visit && (visit.at(-1) ?? record).at - record.at <= PAUSE_MS) visit.push(record)
    else {
      const begun: [KeptRecord, ...KeptRecord[]] = [record]
      current.set(actor, begun)
      visits.push(begun)
    }
  }
  return visits
}

/** A clinician is the same in every app. The apps of patients and relatives act on their own, so each is another one. */
export function identifyActor({ subject, fhir_user, client_id }: KeptRecord): string {
  const isApp = isOfPatientUser({ fhir_user }) || (subject ?? fhir_user) === null
  return JSON.stringify([subject ?? fhir_user, isApp ? client_id : ''])
}

/** Whether a patient or a relative acted, or an app for them. */
export function isOfPatientUser({ fhir_user }: Pick<KeptRecord, 'fhir_user'>): boolean {
  return fhir_user !== null && isPatientUser({ fhirUserId: fhir_user })
}

const CHANGES = ['create', 'update', 'update-conditional', 'patch', 'patch-conditional'] as const
const REMOVALS = ['delete', 'delete-conditional'] as const

/** The interactions that change a record. */
export const CHANGING = [...CHANGES, ...REMOVALS] as const

export function classify(record: KeptRecord): AccessKind {
  if (CHANGING.some(interaction => interaction === record.interaction)) return 'changed'
  return isInList(record) ? 'list' : 'opened'
}

/** A search for patients finds this one among others, unless it names its id. Portal pages name the ids of their lists. */
const NAMES_ONE = /[?&]_id=[^,&]+(?:&|$)/

function isInList({ decided_by, patients, interaction, resource_type, client_id, request }: KeptRecord) {
  // Such a token opens one record.
  if (decided_by?.startsWith('patient/')) return false
  if (patients !== null) return true
  const isSearch = resource_type === 'Patient' && interaction === 'search-type'
  return isSearch && (client_id === PORTAL_CLIENT || !NAMES_ONE.test(request ?? ''))
}

const WHOLE: ReadonlySet<string | null> = new Set(['batch', 'transaction', 'bundle'])

/** A Bundle is recorded by its entries too. The requests of these pages for their own reader are no news to them. */
export function isShown({ client_id, subject, interaction }: KeptRecord, readerId: string): boolean {
  const isOwnPage = client_id === PORTAL_CLIENT && (subject === readerId || subject === PORTAL_CLIENT)
  return !isOwnPage && !WHOLE.has(interaction)
}
