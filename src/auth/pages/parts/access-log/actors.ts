import { LruMap } from '../../../../cache/index.ts'
import { MINUTE_MS, toRecord, toRecords } from '../../../../core/index.ts'
import { parseReference, type Resource } from '../../../../fhir/index.ts'
import { PORTAL_CLIENT } from '../../../../smart/index.ts'
import { type PersonName, readPerson } from '../../../../web/person/index.ts'
import { createNameLookup, listResources } from '../../../base/fhir-reader.ts'
import { LIMITS } from '../../../base/limits.ts'
import { findPurpose } from '../../../base/purposes.ts'
import type { AuthContext } from '../../../oauth/context.ts'
import { findKnownApps } from '../../../users/known.ts'
import { HOSPITAL_APP } from '../apps.ts'
import { findNames, type KnownNames, PORTAL_PAGES } from '../explain/describe.ts'
import type { AccessRecord } from './people.ts'
import { isOfAdministration, isOfPatientUser } from './visits.ts'

/** Who acted, for patients: never by an id. */
export interface NamedActor {
  readonly name: string
  /** The role and department of a clinician, or whose app it is. */
  readonly detail: string | undefined
}

export interface Actors {
  describe(record: AccessRecord): NamedActor
  nameApp(clientId: string): string
  /** The app or page that was used, in a sentence: `the patient list`. */
  nameMeans(record: AccessRecord & { readonly client_id: string }): string
  /** The scopes of the grant by which it was done, while that is kept. */
  findScope(record: AccessRecord): string | undefined
}

/** Finds the people and apps of records. Whatever is not known, or cannot be read now, is left out. */
export async function findActors(
  context: AuthContext,
  readerId: string,
  records: readonly AccessRecord[],
): Promise<Actors> {
  const [names, staff, hospitalApps, scopes] = await Promise.all([
    findNames(context.store, records, { clients: records.flatMap(({ subject }) => subject ?? []) }),
    findStaff(context, records),
    findHospitalApps(context, records),
    findScopes(context, records),
  ])
  const nameApp: Actors['nameApp'] = id =>
    id === PORTAL_CLIENT ? PORTAL_PAGES : (names.app(id) ?? 'An app that is no longer registered')
  return {
    nameApp,
    nameMeans(record) {
      const { client_id } = record
      if (client_id === PORTAL_CLIENT) return findPurpose(record)?.place ?? 'the patient list'
      return names.app(client_id) ?? 'an app that is no longer registered'
    },
    findScope: ({ launch_id }) => (launch_id === null ? undefined : scopes.get(launch_id)),
    describe(record) {
      const { subject, person, client_id } = record
      if (isOfAdministration(record)) return describeAdministrator(record, names)
      if (isOfPatientUser(record))
        return describePatientUser(record, { names, nameApp, readerId, hospitalApps })
      const isPerson = person !== null || (subject !== null && subject !== client_id)
      if (!isPerson)
        return {
          name: client_id === null ? 'An unknown app' : nameApp(client_id),
          detail: 'A program that works without a person',
        }
      const known = staff.get(readPractitionerId(person) ?? '')
      return {
        name: (subject === null ? undefined : names.user(subject)) ?? known?.name ?? 'A member of staff',
        detail: known?.role,
      }
    },
  }
}

/** A person of the administration, a program of its API, or whoever ran a command. */
function describeAdministrator({ subject }: AccessRecord, names: KnownNames): NamedActor {
  const known = subject === null ? undefined : (names.user(subject) ?? names.app(subject))
  return { name: known ?? 'An administrator', detail: 'In the administration' }
}

function describePatientUser(
  { subject, client_id, person, patient_id }: AccessRecord,
  options: {
    readonly names: KnownNames
    readonly nameApp: Actors['nameApp']
    readonly readerId: string
    readonly hospitalApps: ReadonlySet<string>
  },
): NamedActor {
  const { names, nameApp, readerId, hospitalApps } = options
  const user = subject === null ? undefined : names.user(subject)
  const role = person === `Patient/${patient_id}` ? 'the patient' : 'a relative'
  const who = subject === readerId ? 'you' : [user, role].filter(part => part !== undefined).join(', ')
  if (client_id === null || client_id === PORTAL_CLIENT)
    return { name: who.slice(0, 1).toUpperCase() + who.slice(1), detail: 'On these pages' }
  const detail = hospitalApps.has(client_id)
    ? `${HOSPITAL_APP}, used by ${who}`
    : who === 'you'
      ? 'An app that you allowed'
      : `An app allowed by ${who}`
  return { name: nameApp(client_id), detail }
}

/** First-party apps: nobody was asked whether to allow them. */
async function findHospitalApps(
  { store: { db } }: AuthContext,
  records: readonly AccessRecord[],
): Promise<ReadonlySet<string>> {
  const ids = [...new Set(records.filter(isOfPatientUser).flatMap(({ client_id }) => client_id ?? []))]
  const apps = await findKnownApps(db, ids)
  return new Set(ids.filter(id => apps.get(id)?.first_party))
}

/** A grant has the id of its launch. */
async function findScopes(
  { store: { db } }: AuthContext,
  records: readonly AccessRecord[],
): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(records.flatMap(({ launch_id }) => launch_id ?? []))]
  if (ids.length === 0) return new Map()
  const rows = await db.selectFrom('grant').select(['id', 'scope']).where('id', 'in', ids).execute()
  return new Map(rows.map(({ id, scope }) => [id, scope]))
}

function readPractitionerId(person: string | null): string | undefined {
  return person?.startsWith('Practitioner/') ? person.slice('Practitioner/'.length) : undefined
}

interface Clinician {
  readonly name: string | undefined
  readonly role: string | undefined
}

/** How long names and roles are kept. */
const KEPT_MS = 5 * MINUTE_MS

type Kept = LruMap<Clinician & { readonly until: number }>
const keptByContext = new WeakMap<AuthContext, Kept>()

/** The names and roles of Practitioners, as far as the FHIR server returns them in time. */
async function findStaff(
  context: AuthContext,
  records: readonly AccessRecord[],
): Promise<ReadonlyMap<string, Clinician>> {
  const kept: Kept = keptByContext.get(context) ?? new LruMap(LIMITS.staffKept)
  keptByContext.set(context, kept)
  const now = context.clock()
  const ids = [...new Set(records.flatMap(record => readPractitionerId(record.person) ?? []))]
  const found = new Map<string, Clinician>()
  for (const id of ids) {
    const known = kept.get(id)
    if (known && known.until > now) found.set(id, known)
  }
  const missing = ids.filter(id => !found.has(id)).slice(0, LIMITS.staffNamed)
  if (missing.length === 0) return found
  const [people, roles] = await Promise.all([readPeople(context, missing), readRoles(context, missing)])
  for (const id of missing) {
    const clinician = { name: people?.get(id), role: roles?.get(id) }
    // An outage is not remembered.
    if (people && roles) kept.set(id, { ...clinician, until: now + KEPT_MS })
    found.set(id, clinician)
  }
  return found
}

async function readPeople(
  context: AuthContext,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string> | undefined> {
  const read = await createNameLookup(context, 'Practitioner', 'staff-names')
  const response = await read(`Practitioner?_id=${ids.join(',')}&_count=${LIMITS.staffNamed}`)
  if (response.kind !== 'found') return undefined
  const people = listResources(response.resource, 'Practitioner')
  return new Map(people.map(one => [one.id ?? '', formatStaffName(readPerson(one).name)]))
}

function formatStaffName({ title, given, family, text }: PersonName): string {
  return text ?? [title, given, family].filter(part => part !== undefined).join(' ')
}

/** A clinician may have several roles: the first one that is in use. */
async function readRoles(
  context: AuthContext,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string> | undefined> {
  const read = await createNameLookup(context, 'PractitionerRole', 'staff-names')
  const practitioners = ids.map(id => `Practitioner/${id}`).join(',')
  const included = '_include=PractitionerRole:organization&_include=PractitionerRole:location'
  const response = await read(
    `PractitionerRole?practitioner=${practitioners}&${included}&_count=${2 * LIMITS.staffNamed}`,
  )
  if (response.kind !== 'found') return undefined
  const { resource: bundle } = response
  const { fhirBaseUrl } = context.settings
  const places = new Map(
    ['Organization', 'Location'].flatMap(type =>
      listResources(bundle, type).map(({ id, name }) => [`${type}/${id}`, readText(name)] as const),
    ),
  )
  const findTarget = (reference: unknown) =>
    typeof reference === 'string' ? parseReference(reference, fhirBaseUrl) : undefined
  const namePlace: NamePlace = ({ display, reference }) => {
    const target = findTarget(reference)
    return readText(display) ?? (target && places.get(`${target.type}/${target.id}`))
  }
  const roles = listResources(bundle, 'PractitionerRole')
    .filter(role => role.active !== false && !hasEnded(role, context.clock()))
    .flatMap(role => {
      const target = findTarget(toRecord(role.practitioner).reference)
      const text = describeRole(role, namePlace)
      return target && text !== '' ? [[target.id, text] as const] : []
    })
  return new Map(roles.toReversed())
}

type NamePlace = (reference: Readonly<Record<string, unknown>>) => string | undefined

/** "Cardiologist, Heart clinic, City hospital": the role, the department and the organization. */
function describeRole(role: Resource, namePlace: NamePlace): string {
  const place = [role.healthcareService, role.location].flatMap(toRecords).map(namePlace)
  const parts = [
    readConcept(role.code) ?? readConcept(role.specialty),
    place.find(name => name !== undefined),
    namePlace(toRecord(role.organization)),
  ]
  return [...new Set(parts.filter(part => part !== undefined))].join(', ')
}

function readConcept(concepts: unknown): string | undefined {
  const [first] = toRecords(concepts)
  const displays = toRecords(first?.coding).map(({ display }) => readText(display))
  return readText(first?.text) ?? displays.find(display => display !== undefined)
}

function readText(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

function hasEnded({ period }: Resource, now: number): boolean {
  const end = toRecord(period).end
  return typeof end === 'string' && Date.parse(end) < now
}
