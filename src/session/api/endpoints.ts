import { type Static, Type } from 'typebox'
import { isFailure } from '../../core/index.ts'
import { NONE } from '../../endpoint/index.ts'
import { parseReference } from '../../fhir/index.ts'
import {
  Condition,
  failUnexpected,
  fitsSchema,
  MedicationRequest,
  Patient,
  readFhir,
} from '../records/resources.ts'
import type { Session } from '../session.ts'
import { checkSession } from '../sessions/renew-session.ts'
import { defineEndpoint, type SessionEndpoint } from './endpoint.ts'
import { conditionsEndpoint, medicationsEndpoint, vitalsEndpoint } from './lists.ts'

const SessionMetadata = Type.Object(
  {
    sessionId: Type.String({
      description:
        'Public id of the session, as in the URL `/s/<sessionId>`. Send it as X-Session-Id with every request of the same page.',
    }),
    patientId: Type.String(),
    encounterId: Type.Optional(Type.String({ description: 'Omitted if the launch has no encounter.' })),
    needPatientBanner: Type.Boolean(),
    fhirBaseUrl: Type.String({ format: 'uri' }),
    scopes: Type.Array(Type.String(), { description: 'The granted scopes.' }),
    expiresAt: Type.String({ format: 'date-time', description: 'When the session ends, in UTC.' }),
    secondsRemaining: Type.Integer({ minimum: 0 }),
  },
  { additionalProperties: false },
)

/** Session metadata (API-2). A request does not extend the session, because a countdown polls it. */
const sessionEndpoint = defineEndpoint({
  path: '/session',
  title: 'Session',
  description: 'Patient, encounter, scopes and end of the session. This request does not extend it.',
  query: NONE,
  scopes: [],
  result: SessionMetadata,
  extendsSession: false,
  answer: async sessionRequest => {
    const living = await checkSession(sessionRequest.context, sessionRequest.session)
    return isFailure(living) ? living : readMetadata(living, sessionRequest.context.clock())
  },
})

function readMetadata(session: Session, now: number): Static<typeof SessionMetadata> {
  return {
    sessionId: session.sessionId,
    patientId: session.patientId,
    ...(session.encounterId === null ? {} : { encounterId: session.encounterId }),
    needPatientBanner: session.needPatientBanner,
    fhirBaseUrl: session.fhirBaseUrl,
    scopes: session.scope.split(' ').filter(scope => scope !== ''),
    expiresAt: new Date(session.endsAt).toISOString(),
    secondsRemaining: Math.max(0, Math.floor((session.endsAt - now) / 1000)),
  }
}

const Profile = Type.Object(
  {
    subject: Type.String({ description: 'Subject of the id_token.' }),
    fhirUser: Type.Optional(Type.String({ description: 'For example Practitioner/<id>.' })),
    name: Type.Optional(Type.String()),
    practitionerId: Type.Optional(Type.String({ description: 'Omitted if the user is not a Practitioner.' })),
  },
  { additionalProperties: false },
)

/** The profile of the user (API-3), from the ID token that was validated at the launch. */
export const meEndpoint = defineEndpoint({
  path: '/me',
  title: 'User',
  description: 'The signed-in user.',
  query: NONE,
  scopes: ['openid', 'fhirUser'],
  result: Profile,
  answer: async sessionRequest => {
    const living = await checkSession(sessionRequest.context, sessionRequest.session)
    return isFailure(living) ? living : toProfile(living)
  },
})

function toProfile(session: Session): Static<typeof Profile> {
  return {
    subject: session.subject ?? '',
    ...readUser(session),
    ...(session.name === null ? {} : { name: session.name }),
  }
}

/** `fhirUser` is a URL: absolute, or relative to the FHIR base. */
function readUser({ fhirUser, fhirBaseUrl }: Session): { fhirUser?: string; practitionerId?: string } {
  const user = fhirUser === null ? undefined : parseReference(fhirUser, fhirBaseUrl)
  if (!user) return {}
  return {
    fhirUser: `${user.type}/${user.id}`,
    ...(user.type === 'Practitioner' ? { practitionerId: user.id } : {}),
  }
}

export const patientEndpoint = defineEndpoint({
  path: '/patient',
  title: 'Patient',
  description: 'The patient of the launch.',
  query: NONE,
  scopes: ['patient/Patient.rs'],
  result: Patient,
  answer: async sessionRequest => {
    const { fhirBaseUrl, patientId } = sessionRequest.session
    const read = await readFhir(sessionRequest, `${fhirBaseUrl}/Patient/${patientId}`)
    if (isFailure(read)) return read
    if (!fitsSchema(Patient, read) || read.id !== patientId)
      return failUnexpected('it is not the launched patient')
    return read
  },
})

/** The arrays hold the resources that `/api/conditions` and `/api/medications` return by default (API-7). */
const summaryEndpoint = defineEndpoint({
  path: '/summary',
  title: 'Summary',
  description:
    'The patient with active conditions and active medications, as the three endpoints return them by default.',
  query: NONE,
  scopes: [...patientEndpoint.scopes, ...conditionsEndpoint.scopes, ...medicationsEndpoint.scopes],
  result: Type.Object({
    patient: Patient,
    conditions: Type.Array(Condition),
    medications: Type.Array(MedicationRequest),
  }),
  answer: async sessionRequest => {
    const [patient, conditions, medications] = await Promise.all([
      patientEndpoint.answer(sessionRequest, {}),
      conditionsEndpoint.answer(sessionRequest, { status: 'active', _count: 50 }),
      medicationsEndpoint.answer(sessionRequest, {}),
    ])
    if (isFailure(patient)) return patient
    if (isFailure(conditions)) return conditions
    if (isFailure(medications)) return medications
    return {
      patient,
      conditions: conditions.entry.map(({ resource }) => resource),
      medications: medications.entry.map(({ resource }) => resource),
    }
  },
})

/** All endpoints of the session API (API-2 to API-8). */
export const endpoints: readonly SessionEndpoint[] = [
  sessionEndpoint,
  meEndpoint,
  patientEndpoint,
  conditionsEndpoint,
  medicationsEndpoint,
  summaryEndpoint,
  vitalsEndpoint,
]
