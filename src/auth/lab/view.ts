import { isFailure, toRecord } from '../../core/index.ts'
import { isId } from '../../fhir/index.ts'
import { type Person, readPerson } from '../../web/person/index.ts'
import { makeFault } from '../base/fault.ts'
import { createFhirReader, type FhirReader } from '../base/fhir-reader.ts'
import { joinRepeated, type Parameters, readParameters } from '../base/request.ts'
import type { AuthUser } from '../base/user.ts'
import { type Client, findClient } from '../oauth/clients/client.ts'
import type { AuthContext } from '../oauth/context.ts'
import { findPatients, listPeople } from '../patients/patients.ts'
import { type Encounters, readEncounters } from '../patients/picked.ts'
import { findSearchFault } from '../patients/queries.ts'
import { findLaunchUser } from '../users/accounts.ts'
import type { Login } from '../users/find-login.ts'
import type { LabProblem } from './access.ts'
import { findApps, findUsers, type PickerItem } from './find.ts'
import { hasContext, isLaunchKind, type LaunchKind } from './kinds.ts'
import { failLink, readLink } from './read-link.ts'

/** The lab page: what was chosen, by name, and why it makes no link. */
export interface LabView {
  readonly login: Login
  /** The settings that were sent, by the names of the link. */
  readonly form: Parameters
  readonly kind: LaunchKind
  /** The chosen app, or the app of the portal. */
  readonly client: Client | undefined
  /** The chosen user, or the one who is signed in. */
  readonly user: AuthUser | undefined
  readonly patient: Person | undefined
  readonly encounters: Encounters | undefined
  /** The patients of a name that was typed where the id belongs. */
  readonly matches: readonly Person[]
  readonly fault: LabProblem | undefined
  readonly apps: readonly PickerItem[]
  readonly users: readonly PickerItem[]
}

export async function loadView(context: AuthContext, login: Login, query: unknown): Promise<LabView> {
  const { [ANY_PATIENT]: isAny, ...sent } = toRecord(joinRepeated(query, 'scope'))
  const typed = readParameters(sent)
  const named = typed.get('kind') ?? ''
  const kind = isLaunchKind(named) ? named : 'ehr'
  const [client, user, apps, users, chosen] = await Promise.all([
    findClient(context.store.db, context, typed.get('client') ?? context.settings.defaultClientId),
    findChosenUser(context, login, typed.get('user')),
    findApps(context, ''),
    findUsers(context, ''),
    isAny !== undefined
      ? findFirstPatient(context, login)
      : findChosenPatient(context, login, hasContext(kind) ? typed.get('patient') : undefined),
  ])
  const { patient, encounters, matches } = chosen
  // A name that only one patient has is as good as the id.
  const found = patient && { patient: patient.id }
  const link = { ...keepParameters(sent, kind), ...found }
  const form = readParameters({ ...sent, ...found })
  const checked = readLink(link)
  const fault = isFailure(checked) ? checked : findMissing({ typed, client, user, patient, matches, kind })
  return { login, form, kind, client, user, patient, encounters, matches, fault, apps, users }
}

/** A form sends the fields that its kind of launch does not use too. */
function keepParameters(
  sent: Readonly<Record<string, unknown>>,
  kind: LaunchKind,
): Readonly<Record<string, unknown>> {
  const all = Object.entries(sent)
  return Object.fromEntries(
    hasContext(kind) ? all : all.filter(([name]) => ['kind', 'client', 'launch_url'].includes(name)),
  )
}

function findMissing(
  view: Pick<LabView, 'client' | 'user' | 'patient' | 'matches' | 'kind'> & { readonly typed: Parameters },
): LabProblem | undefined {
  const { typed, client, user, patient, matches, kind } = view
  if (!client && typed.get('launch_url') === undefined)
    return failLink('client', makeFault('link-app-unknown'))
  if (!hasContext(kind)) return undefined
  if (!user) return failLink('user', makeFault('link-user-unknown'))
  if (matches.length > 0) return failLink('patient', makeFault('link-patients-many'))
  return typed.get('patient') !== undefined && !patient
    ? failLink('patient', makeFault('link-patient-unknown'))
    : undefined
}

function findChosenUser(
  context: AuthContext,
  { user }: Login,
  username: string | undefined,
): Promise<AuthUser | undefined> | AuthUser {
  return username === undefined ? user : findLaunchUser(context, username)
}

type ChosenPatient = Pick<LabView, 'patient' | 'encounters' | 'matches'>

const NOBODY: ChosenPatient = { patient: undefined, encounters: undefined, matches: [] }

/** Finds the patient by id or, without scripts, by name. */
async function findChosenPatient(
  context: AuthContext,
  { user }: Login,
  text: string | undefined,
): Promise<ChosenPatient> {
  if (text === undefined || findSearchFault(text) !== undefined) return NOBODY
  const read = await createFhirReader(context, user, { purpose: 'developer' })
  const byId = isId(text) ? await read.resource('Patient', text) : undefined
  if (byId?.kind === 'found') return readChosen(context, read, readPerson(byId.resource))
  const list = await findPatients(read, { search: text, page: undefined, recent: [] })
  const [first, ...others] = list.kind === 'list' ? list.patients : []
  if (!first) return NOBODY
  return others.length === 0 ? readChosen(context, read, first) : { ...NOBODY, matches: [first, ...others] }
}

/** The parameter that asks for any patient, which does for a first launch. Nothing of a patient is read before. */
export const ANY_PATIENT = 'any'

async function findFirstPatient(context: AuthContext, { user }: Login): Promise<ChosenPatient> {
  const read = await createFhirReader(context, user, { purpose: 'developer' })
  const list = await findPatients(read, { search: undefined, page: undefined, recent: [] })
  const [first] = list.kind === 'list' ? listPeople(list) : []
  return first ? readChosen(context, read, first) : NOBODY
}

async function readChosen(
  { settings: { fhirBaseUrl } }: AuthContext,
  read: FhirReader,
  patient: Person,
): Promise<ChosenPatient> {
  const encounters = await readEncounters(read, patient.id, { fhirBaseUrl })
  return { ...NOBODY, patient, encounters: isFailure(encounters) ? undefined : encounters }
}
