import {
  type EventIds,
  findPage,
  findRecords,
  openEventIds,
  type RecordFilter,
  type TrailPosition,
} from '../../../../audit/index.ts'
import type { Person } from '../../../../web/person/index.ts'
import { parseDay } from '../../../../web/ui/index.ts'
import { createNameReader } from '../../../base/fhir-reader.ts'
import { LIMITS } from '../../../base/limits.ts'
import type { AuthUser } from '../../../base/user.ts'
import type { AuthContext } from '../../../oauth/context.ts'
import { findByIds } from '../../../patients/patients.ts'
import type { OwnRecord } from '../../../users/own-records.ts'
import type { WhoseRecord } from '../whose.ts'
import { type Actors, findActors } from './actors.ts'
import { type AccessRecord, identifyPeople } from './people.ts'
import { type AccessLogView, type DayFault, isNarrowed } from './view.ts'
import { CHANGING, classify, type Day, groupByDay, identifyActor, isShown } from './visits.ts'

/** Who looked at a record, by day and visit, newest first. */
export interface AccessLog {
  readonly view: AccessLogView
  readonly whose: WhoseRecord
  /** All records of the user, to choose from. */
  readonly people: readonly Person[]
  readonly records: readonly OwnRecord[]
  readonly fault: DayFault | undefined
  readonly days: readonly Day[]
  readonly actors: Actors
  readonly choices: AccessLogChoices
  /** Where older entries follow. */
  readonly older: string | undefined
  /** Up to when entries were compared with the filters, if others follow. */
  readonly searchedTo: number | undefined
}

/** The people and apps of the newest entries, to filter by. */
export interface AccessLogChoices {
  readonly people: readonly Choice[]
  readonly apps: readonly Choice[]
}

type Choice = readonly [value: string, text: string]

/** The people whose records a user may open. */
export async function readPeople(
  context: AuthContext,
  user: AuthUser,
  patients: readonly string[],
): Promise<readonly Person[]> {
  return findByIds(await createNameReader(context, user, { purpose: 'own-pages' }), patients)
}

/** Reads a page of the log with a bounded amount of work, however long the trail is. */
export async function readAccessLog(
  context: AuthContext,
  user: AuthUser,
  view: AccessLogView,
): Promise<Omit<AccessLog, 'people' | 'records' | 'whose' | 'fault'>> {
  const ids = await openEventIds(context.store)
  const person = await findPerson(context, ids, view)
  const page = await readDays(context, user, view, { person, after: ids.parse(view.before ?? '') })
  const isFirst = !isNarrowed(view) && view.before === undefined
  const newest = isFirst
    ? page.read
    : (await findAccesses(context, user, makeFilter(view), undefined)).records
  const candidates = person ? [person, ...newest] : newest
  const actors = await findActors(context, user.id, [...listRecords(page.days), ...candidates])
  return {
    view,
    days: page.days,
    actors,
    choices: listChoices(candidates, actors, ids),
    older: page.older && ids.format(page.older),
    searchedTo: page.older?.at,
  }
}

/** A page with so many visits needs no further records, and one with more of them ends with their day. */
const ENOUGH_VISITS = 10
const FULL_VISITS = 40

interface ReadDaysOptions {
  /** Any record of the person whose visits are wanted. */
  readonly person?: AccessRecord | undefined
  readonly after?: TrailPosition | undefined
  /** Leaves out what the user did, and the apps that the user allowed. */
  readonly withoutOwn?: boolean
  /** For a file, which has no pages. */
  readonly isUnpaged?: boolean
}

interface DaysPage {
  readonly days: readonly Day[]
  /** The last position of the page, if others follow. */
  readonly older: TrailPosition | undefined
  /** All records that were read, also for the days that are not on the page. */
  readonly read: readonly AccessRecord[]
}

/** Reads whole days, newest first. Only a day with very many visits is divided. */
export async function readDays(
  context: AuthContext,
  user: AuthUser,
  view: AccessLogView,
  { person, after, withoutOwn = false, isUnpaged = false }: ReadDaysOptions = {},
): Promise<DaysPage> {
  const filter = { ...makeFilter(view), ...narrow(view, person) }
  const isWanted = (record: AccessRecord) =>
    !(withoutOwn && record.subject === user.id) &&
    (view.kind === undefined || classify(record) === view.kind) &&
    (person === undefined || identifyActor(record) === identifyActor(person))
  const read: AccessRecord[] = []
  let position = after
  for (let round = 1; ; round++) {
    const { records, next } = await findAccesses(context, user, filter, position)
    read.push(...records.filter(isWanted))
    position = next
    const page = endWithDay(groupByDay(read, view.zone), position, { isUnpaged, zone: view.zone })
    if (!position || round === LIMITS.accessRounds || countVisits(page.days) >= ENOUGH_VISITS)
      return { ...page, read }
  }
}

function endWithDay(
  days: readonly Day[],
  next: TrailPosition | undefined,
  { isUnpaged, zone }: { readonly isUnpaged: boolean; readonly zone: string },
) {
  // More entries of the last day may follow.
  const whole = next && days.length > 1 ? days.slice(0, -1) : days
  const full = whole.findIndex((_, at) => countVisits(whole.slice(0, at + 1)) >= FULL_VISITS)
  const shown = full < 0 || isUnpaged ? whole : whole.slice(0, full + 1)
  const [only] = shown
  if (!isUnpaged && only && shown.length === 1 && countVisits(shown) > LIMITS.visitsListed)
    return divideDay(only, zone)
  return { days: shown, older: shown.length < days.length ? listRecords(shown).at(-1) : next }
}

/** The newest visits of a day, without the entries of the same time as the others. */
function divideDay({ visits, lists }: Day, zone: string) {
  const begins = [...visits, ...lists].map(([newest]) => newest).toSorted(compareNewest)
  const end = begins[LIMITS.visitsListed]
  const records = listRecords([{ start: 0, visits, lists }])
  const kept = end ? records.filter(record => compareNewest(record, end) < 0) : records
  return { days: groupByDay(kept, zone), older: kept.at(-1) }
}

function countVisits(days: readonly Day[]): number {
  return days.reduce((count, { visits, lists }) => count + visits.length + lists.length, 0)
}

/** The records of days, newest first. */
function listRecords(days: readonly Day[]): readonly AccessRecord[] {
  return days.flatMap(({ visits, lists }) => [...visits, ...lists].flat().toSorted(compareNewest))
}

function compareNewest(a: TrailPosition, b: TrailPosition): number {
  return b.at - a.at || b.id - a.id
}

/** FHIR requests about the patient that succeeded. */
function makeFilter({ patient, since, until, zone }: AccessLogView): RecordFilter {
  return {
    events: [{ kind: 'fhir' }],
    allowed: true,
    outcomes: ['0'],
    filedUnder: patient,
    since: since === undefined ? undefined : parseDay(since, zone),
    before: until === undefined ? undefined : parseDay(until, zone, 1),
  }
}

function narrow({ app, kind }: AccessLogView, person: AccessRecord | undefined): RecordFilter {
  return {
    clients: app === undefined ? undefined : [app],
    ...(person?.subject && { actor: { subjects: [person.subject] } }),
    ...(kind === 'changed' && {
      events: CHANGING.map(interaction => ({ kind: 'fhir', interaction })),
    }),
  }
}

async function findAccesses(
  { store }: AuthContext,
  { id }: AuthUser,
  filter: RecordFilter,
  after: TrailPosition | undefined,
) {
  const { records, next } = await findPage(store, { ...filter, after, limit: LIMITS.accessRecords })
  return {
    records: await identifyPeople(
      store,
      records.filter(record => isShown(record, id)),
    ),
    next: records.length === LIMITS.accessRecords ? records.at(-1) : next,
  }
}

/** The event that the filter names, if it is about this patient. */
export async function findPerson(
  { store }: AuthContext,
  ids: EventIds,
  { person, patient }: AccessLogView,
): Promise<AccessRecord | undefined> {
  const position = ids.parse(person ?? '')
  if (!position) return undefined
  const found = await findRecords(store, { ids: [position.id], filedUnder: patient, limit: 1 })
  const [record] = await identifyPeople(store, found)
  return record
}

/** Each person is named by their newest event, and each app by its id. */
function listChoices(records: readonly AccessRecord[], actors: Actors, ids: EventIds): AccessLogChoices {
  const people = new Map<string, AccessRecord>()
  for (const record of records) {
    const actor = identifyActor(record)
    if (!people.has(actor)) people.set(actor, record)
  }
  const apps = new Set(records.flatMap(({ client_id }) => client_id ?? []))
  return {
    people: [...people.values()].slice(0, LIMITS.accessChoices).map(record => {
      const { name, detail } = actors.describe(record)
      return [ids.format(record), detail === undefined ? name : `${name} (${detail})`]
    }),
    apps: [...apps].slice(0, LIMITS.accessChoices).map(id => [id, actors.nameApp(id)]),
  }
}
