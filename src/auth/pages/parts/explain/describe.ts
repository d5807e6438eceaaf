import { findFirstOAuthEvents, type KeptRecord } from '../../../../audit/index.ts'
import { type FhirReason, isFhirReason, isFor } from '../../../../fhir/index.ts'
import { PORTAL_CLIENT } from '../../../../smart/index.ts'
import type { Store } from '../../../../store/index.ts'
import { readDetails } from '../../../base/audit.ts'
import { LIMITS } from '../../../base/limits.ts'
import { findPurpose, PURPOSES } from '../../../base/purposes.ts'
import { isPatientUser } from '../../../base/user.ts'
import type { Hooks } from '../../../oauth/hooks.ts'
import { findKnownAccounts, findKnownApps, type KnownAccount } from '../../../users/known.ts'
import { nameOldRefusal } from '../../../words/old-texts.ts'
import type { ComparedValue } from '../../../words/reason.ts'

/** The scope that decided on a request, and why, for app developers. */
interface DecisionText {
  readonly scope?: string
  readonly title?: string
  readonly why: string
}

/** The kinds of events on the activity page, with their names. */
export const KINDS = {
  fhir: 'FHIR request',
  launch: 'Launch',
  authorize: 'Authorize',
  token: 'Token',
  refresh: 'Refresh',
  introspect: 'Introspect',
  revoke: 'Revoke',
  register: 'Register',
} as const

/** Names of users and apps by their ids. */
export interface KnownNames {
  readonly user: (id: string) => string | undefined
  readonly app: (id: string) => string | undefined
}

export function describeDecision(record: KeptRecord, names: KnownNames, hooks?: Hooks): DecisionText {
  const { kind, allowed, decided_by: by, reason } = record
  if (kind !== 'fhir') return { why: reason ?? describeOutcome(record) }
  if (!allowed)
    return {
      ...(!hooks?.explainRecord(record) && describeRefusal(record)),
      why: reason ?? 'Refused',
    }
  if (by === 'public') return { title: 'No scope needed', why: 'Public: needs no token' }
  if (by === 'entries') return { title: 'Each entry separately', why: 'A batch or transaction' }
  if (by === 'fhirUser') return { scope: 'fhirUser', why: 'A token may read its own user' }
  if (by === null && findPurpose(record)) return { title: 'By a command', why: reason ?? '' }
  if (by === null) return { title: 'No access control', why: 'This server needs no token' }
  const access = describeAccess(record, by, names)
  return { scope: by, why: findPurpose(record) ? `${access}: ${reason}` : (reason ?? access) }
}

function describeOutcome({ kind, details }: KeptRecord): string {
  const { compared = [] } = readDetails(details)
  if (kind === 'authorize' && isWithoutState(compared)) return 'The app got a code, but sent no state'
  const scope = compared.find(({ name }) => name === 'scope')
  const isLess = kind === 'authorize' && scope && scope.sent !== scope.expected[0]
  return isLess ? 'The app got a code, but not all requested scopes' : (DONE[kind] ?? '')
}

export function isWithoutState(compared: readonly ComparedValue[]): boolean {
  return compared.some(({ name, sent }) => name === 'state' && sent === undefined)
}

/**
 * Whether the server permitted a request, but could not complete it. That a resource is absent or was changed is no mistake of
 * an app.
 */
export function isFailed({
  kind,
  allowed,
  status,
}: Pick<KeptRecord, 'kind' | 'allowed' | 'status'>): boolean {
  return kind === 'fhir' && allowed && status >= 400 && !EXPECTED_STATUSES.includes(status)
}

export const EXPECTED_STATUSES: readonly number[] = [404, 409, 410, 412]

/** The outcome of an OAuth event without a reason. */
const DONE: Readonly<Record<string, string>> = {
  launch: 'The app was launched for a patient',
  authorize: 'The app got a code',
  token: 'The app got an access token',
  refresh: 'The app got a new access token',
  revoke: 'The user removed the access',
  register: 'The app registered itself',
}

function describeRefusal(record: KeptRecord): Pick<DecisionText, 'scope' | 'title'> {
  const { status, decided_by: by } = record
  if (by !== null && by !== 'entries') return { scope: by }
  if (status === 401) return { title: 'Token not accepted' }
  if (status === 403)
    return {
      title: isFor('insufficient-scope', nameFhirReason(record)) ? 'No granted scope' : 'Outside the grant',
    }
  return { title: status === 503 ? 'Not decided' : 'Invalid request' }
}

/** Why the FHIR server refused a request by the scopes of its token. */
export function nameFhirReason({ reason, details }: Pick<KeptRecord, 'reason' | 'details'>): FhirReason {
  const { reason: named } = readDetails(details)
  return named !== undefined && isFhirReason(named) ? named : nameOldRefusal(reason)
}

function describeAccess(record: KeptRecord, scope: string, names: KnownNames): string {
  const verb = chooseVerb(record.interaction ?? '')
  if (scope.startsWith('patient/')) {
    return record.resource_type === 'Patient' && record.resource_id === record.patient_id
      ? `${verb} of the patient in the token`
      : `${verb} inside this patient’s record`
  }
  if (scope.startsWith('system/')) return `${verb} by the app itself`
  const name = record.subject === null ? undefined : names.user(record.subject)
  return `${verb} by ${name ?? 'a user'}`
}

export function chooseVerb(interaction: string): string {
  if (interaction.startsWith('search')) return 'Search'
  if (interaction.startsWith('history') || interaction === 'vread') return 'Earlier versions'
  if (interaction.startsWith('update') || interaction.startsWith('patch')) return 'Change'
  if (interaction.startsWith('delete')) return 'Removal'
  if (interaction === 'create') return 'New record'
  return interaction === 'operation' ? 'Operation' : 'Read'
}

export function nameKind({ kind }: Pick<KeptRecord, 'kind'>): string {
  return KINDS[kind as keyof typeof KINDS] ?? OTHER_KINDS[kind] ?? kind
}

/** Kinds that only a reference finds. */
const OTHER_KINDS: Readonly<Record<string, string>> = {
  login: 'Login',
  'session-open': 'Session of the app',
  api: 'Session API request',
}

/** The requests that no app made. */
export const PORTAL_PAGES = 'Pages of this server'

/** Names the app of a record, or the page of this server. */
export function describeApp(
  record: Pick<KeptRecord, 'client_id' | 'reason' | 'fhir_user'>,
  names: KnownNames,
): string {
  const { client_id: client, fhir_user: user } = record
  if (client !== PORTAL_CLIENT) return nameApp(client, names)
  // Before version 0.4, records did not say why.
  const old = user !== null && isPatientUser({ fhirUserId: user }) ? 'own-pages' : 'patient-list'
  const { place } = findPurpose(record) ?? PURPOSES[old]
  const alone = place.replace(/^the /, '')
  return alone.slice(0, 1).toUpperCase() + alone.slice(1)
}

export function nameApp(client: string | null, names: KnownNames): string {
  if (client === null) return 'No app'
  return client === PORTAL_CLIENT ? PORTAL_PAGES : (names.app(client) ?? client)
}

interface FindNamesOptions {
  /** Further apps. */
  readonly clients?: readonly string[]
  /** Whether patients and their relatives are named by their resources: `Patient/1`. */
  readonly hidesPatients?: boolean
}

/** Finds the names of the users and apps in the records, also of those that were removed. */
export async function findNames(
  { db }: Store,
  records: readonly Pick<KeptRecord, 'subject' | 'client_id'>[],
  { clients = [], hidesPatients = false }: FindNamesOptions = {},
): Promise<KnownNames> {
  const [users, apps] = await Promise.all([
    findKnownAccounts(
      db,
      records.map(record => record.subject),
    ),
    findKnownApps(db, [...records.map(record => record.client_id), ...clients]),
  ])
  const nameUser = ({ display_name, fhir_user_id }: KnownAccount) =>
    hidesPatients && isPatientUser({ fhirUserId: fhir_user_id }) ? fhir_user_id : display_name
  return {
    user(id) {
      const user = users.get(id)
      return user && nameUser(user)
    },
    app: id => apps.get(id)?.name,
  }
}

/** The events of a launch, oldest first; or of the portal itself or without a launch, newest first. */
export interface LaunchGroup {
  readonly key: string
  readonly title: string
  readonly launch: string | undefined
  readonly events: readonly KeptRecord[]
  /** Its first OAuth events, even if they are not shown. */
  readonly first: readonly KeptRecord[]
}

/** Finds the first OAuth events of the launches of the records. */
export function findFirstEvents(
  store: Store,
  records: readonly KeptRecord[],
): Promise<readonly KeptRecord[]> {
  const launches = new Set(records.flatMap(record => record.launch_id ?? []))
  return findFirstOAuthEvents(store, [...launches], LIMITS.activityFirstEvents)
}

/** The records of the first launches, so that a page has a limited size. */
export function limitLaunches(records: readonly KeptRecord[]): readonly KeptRecord[] {
  const keys = new Set<string>()
  const end = records.findIndex(record => keys.add(chooseKey(record)).size > LIMITS.activityLaunches)
  return end < 0 ? records : records.slice(0, end)
}

interface GroupOptions {
  readonly first: readonly KeptRecord[]
  readonly addsFirst: boolean
  /** Whether the events of a launch are newest first too. */
  readonly isNewestFirst: boolean
  readonly names: KnownNames
}

/** Groups records, which are newest first, by their launch. The launch with the newest record comes first. */
export function groupByLaunch(
  records: readonly KeptRecord[],
  { first, addsFirst, isNewestFirst, names }: GroupOptions,
): readonly LaunchGroup[] {
  const firstByLaunch = Map.groupBy(first, record => record.launch_id)
  return [...Map.groupBy(records, chooseKey)].map(([key, own]) => {
    const launch = own[0]?.launch_id ?? undefined
    const of = (launch !== undefined && firstByLaunch.get(launch)) || []
    const events = new Map([...own, ...(addsFirst ? of : [])].map(record => [record.id, record]))
    const sorted = [...events.values()].sort((a, b) => a.at - b.at || a.id - b.id)
    if (isNewestFirst || launch === undefined) sorted.reverse()
    return { key, launch, events: sorted, first: of, title: chooseTitle(key, [...of, ...own], names) }
  })
}

function chooseKey({ launch_id, client_id }: KeptRecord): string {
  return launch_id ?? (client_id === PORTAL_CLIENT ? 'portal' : 'none')
}

function chooseTitle(key: string, events: readonly KeptRecord[], names: KnownNames): string {
  if (key === 'none') return 'Without a launch'
  return nameApp(events.find(({ client_id }) => client_id !== null)?.client_id ?? null, names)
}

/** How the app got its access. */
export function describeOrigin(
  { key, launch, first }: LaunchGroup,
  hooks: Hooks | undefined,
): string | undefined {
  if (key === 'portal') return 'Requests that no app made'
  if (launch === undefined) return undefined
  if (launch.startsWith('client-')) return 'Backend service'
  const [start] = first
  if (start === undefined) return undefined
  const named = hooks?.nameOrigin(start)
  return named ?? (start.kind === 'launch' ? 'EHR launch' : 'Standalone launch')
}

/** The scopes that the launch had at the time of a record. */
export function findScope({ first }: LaunchGroup, { at }: KeptRecord): string | undefined {
  const issued = first.filter(({ kind, allowed }) => allowed && (kind === 'token' || kind === 'refresh'))
  return (issued.findLast(record => record.at <= at) ?? issued[0])?.decided_by ?? undefined
}
