import { randomUUID } from 'node:crypto'
import type { Transaction } from 'kysely'
import type { Settings } from '../../../config/index.ts'
import { type Failed, fail, isFailure } from '../../../core/index.ts'
import type { Schema } from '../../../store/index.ts'
import { type Person, readPerson } from '../../../web/person/index.ts'
import type { FhirReader, Unavailable } from '../../base/fhir-reader.ts'
import type { AuthUser } from '../../base/user.ts'
import { hasNamesake } from '../../patients/namesakes.ts'
import { toEncounter } from '../../patients/picked.ts'
import type { PageReason } from '../../words/reasons.ts'
import { type Client, isConfigured } from '../clients/client.ts'
import type { AuthContext } from '../context.ts'
import { findApp } from './apps.ts'
import { createLaunchToken, type Launch } from './launch-token.ts'
import type { FormFault, LaunchFormOptions } from './options.ts'

export interface LaunchRequest {
  readonly patientId: string | undefined
  readonly encounterId: string | undefined
  /** The app, if it is not the default one. */
  readonly clientId: string | undefined
  readonly repeated: boolean
  readonly options: LaunchFormOptions | FormFault
}

interface PlainProblem<Reason extends PageReason> extends Failed {
  readonly reason: Reason
}

/** Why there is no patient for a launch. */
export type PatientProblem = PlainProblem<'launch-patient-unknown' | 'launch-encounter-unknown'> | Unavailable

export type LaunchProblem =
  | PlainProblem<'launch-form-repeated' | 'launch-patient-missing' | 'launch-app-unknown'>
  | FormFault
  | PatientProblem

export interface ReadyLaunch {
  readonly launch: Launch
  readonly launchUrl: string
}

/** The launch token, and the URL that the browser goes to. */
export interface IssuedLaunch {
  readonly token: string
  readonly url: string
}

/** Creates the launch token and its audit record in one transaction. */
export function issueLaunch(
  { store, clock }: AuthContext,
  { launch, launchUrl }: ReadyLaunch,
  record: (trx: Transaction<Schema>) => Promise<void>,
): Promise<IssuedLaunch> {
  return store.db.transaction().execute(async trx => {
    const token = await createLaunchToken(trx, launch, clock())
    await record(trx)
    return { token, url: buildLaunchUrl(launchUrl, launch.fhirBaseUrl, token) }
  })
}

/** Checks a launch request against the FHIR server with this user's access. */
export async function prepareLaunch(
  context: AuthContext,
  user: AuthUser,
  read: FhirReader,
  { patientId, encounterId, clientId, repeated, options }: LaunchRequest,
): Promise<ReadyLaunch | LaunchProblem> {
  if (repeated) return fail({ reason: 'launch-form-repeated' })
  if (patientId === undefined) return fail({ reason: 'launch-patient-missing' })
  if (isFailure(options)) return options
  const app = await findApp(context, clientId)
  if (!app) return fail({ reason: 'launch-app-unknown' })
  const person = await findLaunchPatient(context, read, { patientId, encounterId })
  if (isFailure(person)) return person
  const { fhirBaseUrl, defaultNeedPatientBanner } = context.settings
  const launch = {
    patientId,
    encounterId,
    needPatientBanner: options.needPatientBanner ?? defaultNeedPatientBanner,
    extraContext: {
      ...options.extraContext,
      ...(app.client.firstParty && (await hasNamesake(read, person)) && { similar_name: true as const }),
    },
    clientId: app.client.id,
    username: user.username,
    fhirBaseUrl,
    id: randomUUID(),
  }
  return { launch, launchUrl: app.launchUrl }
}

/** Finds the patient, if the user can see them and the encounter is theirs. */
export async function findLaunchPatient(
  context: AuthContext,
  read: FhirReader,
  { patientId, encounterId }: { readonly patientId: string; readonly encounterId: string | undefined },
): Promise<Person | PatientProblem> {
  const person = await findPatient(read, patientId)
  if (isFailure(person) || encounterId === undefined) return person
  return (await checkEncounter(context, read, encounterId, patientId)) ?? person
}

async function findPatient(read: FhirReader, patientId: string): Promise<Person | PatientProblem> {
  const response = await read.resource('Patient', patientId)
  if (response.kind === 'unavailable') return response
  return response.kind === 'found'
    ? readPerson(response.resource)
    : fail({ reason: 'launch-patient-unknown' })
}

async function checkEncounter(
  { settings }: AuthContext,
  read: FhirReader,
  encounterId: string,
  patientId: string,
): Promise<PatientProblem | undefined> {
  const response = await read.resource('Encounter', encounterId)
  if (response.kind === 'unavailable') return response
  const isOfPatient =
    response.kind === 'found' && toEncounter(response.resource, settings.fhirBaseUrl).patientId === patientId
  return isOfPatient ? undefined : fail({ reason: 'launch-encounter-unknown' })
}

/** The URL at which an app starts by itself. The app of the settings knows its server, and takes `iss` for an EHR launch. */
export function buildStandaloneUrl(settings: Settings, client: Client, launchUrl: string): string {
  return isConfigured(settings, client)
    ? launchUrl
    : buildLaunchUrl(launchUrl, settings.fhirBaseUrl, undefined)
}

/** `{launch_url}?iss=…&launch=…`, without `launch` for a standalone launch; a query or fragment of the URL is kept. */
export function buildLaunchUrl(launchUrl: string, fhirBaseUrl: string, token: string | undefined): string {
  const [url = '', ...fragment] = launchUrl.split('#')
  const launch = token === undefined ? '' : `&launch=${encodeURIComponent(token)}`
  const query = `iss=${encodeURIComponent(fhirBaseUrl)}${launch}`
  const end = fragment.length === 0 ? '' : `#${fragment.join('#')}`
  return `${url}${url.includes('?') ? '&' : '?'}${query}${end}`
}
