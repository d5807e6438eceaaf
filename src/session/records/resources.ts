import { type Static, type TSchema, Type } from 'typebox'
import { Value } from 'typebox/value'
import { failApp } from '../../app-reasons/index.ts'
import { isFailure } from '../../core/index.ts'
import { type Decimal as ExactDecimal, toPlain } from '../../fhir/index.ts'
import { fetchJson, type JsonResponse, type Result, type SessionFailure } from '../failure.ts'
import type { AppContext } from '../oauth/context.ts'
import { openTokens, type Session } from '../session.ts'
import { refreshSession, renewSession } from '../sessions/renew-session.ts'

export function Decimal(schema: TSchema = Type.Number()) {
  return Type.Unsafe<ExactDecimal>(schema)
}

export function fitsSchema<Schema extends TSchema>(schema: Schema, value: unknown): value is Static<Schema> {
  return Value.Check(schema, toPlain(value))
}

// In R4, an array of primitives contains null where only an extension is known.
const Text = Type.Union([Type.String(), Type.Null()])

const Coding = Type.Object({
  system: Type.Optional(Type.String()),
  code: Type.Optional(Type.String()),
  display: Type.Optional(Type.String()),
})

export const CodeableConcept = Type.Object({
  coding: Type.Optional(Type.Array(Coding)),
  text: Type.Optional(Type.String()),
})

const Reference = Type.Object({
  reference: Type.Optional(Type.String()),
  display: Type.Optional(Type.String()),
})

export const Patient = Type.Object(
  {
    resourceType: Type.Literal('Patient'),
    id: Type.String(),
    name: Type.Optional(
      Type.Array(
        Type.Object({ family: Type.Optional(Type.String()), given: Type.Optional(Type.Array(Text)) }),
      ),
    ),
    birthDate: Type.Optional(
      Type.String({ description: 'A FHIR date; may be only a year, or a year and month.' }),
    ),
    gender: Type.Optional(Type.String()),
  },
  { description: 'A FHIR R4 Patient, as the FHIR server has it.' },
)

export const Condition = Type.Object(
  {
    resourceType: Type.Literal('Condition'),
    id: Type.Optional(Type.String()),
    code: Type.Optional(CodeableConcept),
    recordedDate: Type.Optional(Type.String()),
    clinicalStatus: Type.Optional(CodeableConcept),
    verificationStatus: Type.Optional(CodeableConcept),
  },
  { description: 'A FHIR R4 Condition.' },
)

export const MedicationRequest = Type.Object(
  {
    resourceType: Type.Literal('MedicationRequest'),
    id: Type.Optional(Type.String()),
    status: Type.Optional(Type.String()),
    medicationCodeableConcept: Type.Optional(CodeableConcept),
    medicationReference: Type.Optional(Reference),
    authoredOn: Type.Optional(Type.String()),
    contained: Type.Optional(Type.Array(Type.Unknown())),
    dosageInstruction: Type.Optional(Type.Array(Type.Object({ text: Type.Optional(Type.String()) }))),
  },
  { description: 'A FHIR R4 MedicationRequest.' },
)

const Quantity = Type.Object({
  value: Type.Optional(Decimal()),
  unit: Type.Optional(Type.String()),
  code: Type.Optional(Type.String()),
})

export const Observation = Type.Object(
  {
    resourceType: Type.Literal('Observation'),
    id: Type.Optional(Type.String()),
    status: Type.Optional(Type.String()),
    code: Type.Optional(CodeableConcept),
    effectiveDateTime: Type.Optional(Type.String()),
    effectiveInstant: Type.Optional(Type.String()),
    effectivePeriod: Type.Optional(
      Type.Object({ start: Type.Optional(Type.String()), end: Type.Optional(Type.String()) }),
    ),
    valueQuantity: Type.Optional(Quantity),
    component: Type.Optional(
      Type.Array(
        Type.Object({ code: Type.Optional(CodeableConcept), valueQuantity: Type.Optional(Quantity) }),
      ),
    ),
  },
  { description: 'A FHIR R4 Observation of the category vital-signs.' },
)

export type Patient = Static<typeof Patient>
export type CodeableConcept = Static<typeof CodeableConcept>
export type Condition = Static<typeof Condition>
export type MedicationRequest = Static<typeof MedicationRequest>
export type Observation = Static<typeof Observation>

export function formatConcept(concept: CodeableConcept | undefined): string | undefined {
  const named = concept?.coding?.find(({ display }) => display !== undefined)
  const text = concept?.text ?? named?.display ?? concept?.coding?.[0]?.code
  return text === undefined || text.trim() === '' ? undefined : text.trim()
}

export interface SessionRequest {
  readonly context: AppContext
  readonly session: Session
  /** Sent to the FHIR server, so that its log lines can be correlated. */
  readonly requestId: string
}

/**
 * A server that does not support `patient` returns records of every patient. Resources that reference another
 * patient are dropped, even if the reference is an absolute URL with another host name.
 */
export function isOfPatient(resource: object, { patientId }: Pick<Session, 'patientId'>): boolean {
  const subject: unknown =
    'subject' in resource ? resource.subject : 'patient' in resource ? resource.patient : undefined
  if (typeof subject !== 'object' || subject === null || !('reference' in subject)) return false
  const [, id] =
    /(?:^|\/)Patient\/([A-Za-z0-9.-]{1,64})(?:\/_history\/[^/]+)?$/.exec(String(subject.reference)) ?? []
  return id === patientId
}

/** The content of a response. */
type Json = NonNullable<unknown> | null

/** After a 401, the tokens are renewed once and the request is repeated. */
export async function readFhir(sessionRequest: SessionRequest, url: string): Promise<Result<Json>> {
  const fresh = await refreshSession(sessionRequest.context, sessionRequest.session)
  if (isFailure(fresh)) return fresh
  const first = await ask(sessionRequest, fresh, url)
  if (!isFailure(first) || first.reason !== 'token-refused') return first
  const renewed = await renewSession(sessionRequest.context, fresh)
  return isFailure(renewed) ? renewed : ask(sessionRequest, renewed, url)
}

async function ask(sessionRequest: SessionRequest, session: Session, url: string): Promise<Result<Json>> {
  const { context, requestId } = sessionRequest
  const tokens = openTokens(context.sealer, session)
  if (!tokens) return failApp('session-ended')
  const answer = await fetchJson(context.fetch, url, {
    timeoutMs: context.timeoutMs,
    headers: {
      accept: 'application/fhir+json',
      // Compression costs both servers more than the transfer between them.
      'accept-encoding': 'identity',
      authorization: `Bearer ${tokens.accessToken}`,
      'x-request-id': requestId,
    },
  })
  noteOutage(sessionRequest, answer)
  return isFailure(answer) ? answer : toResult(answer)
}

/** Remembers the start of an outage: a clinician who reads an old page must know. */
function noteOutage({ context, session }: SessionRequest, answer: Result<JsonResponse>): void {
  const away = isFailure(answer) || answer.status >= 500
  if (!away) context.unreachableSince.delete(session.fhirBaseUrl)
  else if (!context.unreachableSince.has(session.fhirBaseUrl))
    context.unreachableSince.set(session.fhirBaseUrl, context.clock())
}

function toResult({ status, json }: JsonResponse): Result<Json> {
  if (status === 200 && json !== undefined) return json
  if (status === 401) return failApp('token-refused')
  if (status === 403) return failApp('access-refused')
  if (status === 404 || status === 410) return failApp('record-not-found')
  if (status === 504) return failApp('records-slow')
  if (status >= 500 || status === 429) return failApp('records-unreachable')
  return failUnexpected(status === 200 ? 'it is not JSON' : `status ${status}`)
}

export function failUnexpected(problem: string): SessionFailure {
  return failApp('records-response-invalid', { problem, check: problem })
}
