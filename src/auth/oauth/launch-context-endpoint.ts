import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Transaction } from 'kysely'
import type { StoredFacts } from '../../core/index.ts'
import { type Failed, fail, isFailure, isRecord } from '../../core/index.ts'
import type { Schema } from '../../store/index.ts'
import { auditEvent } from '../base/audit.ts'
import { type Fault, makeFault } from '../base/fault.ts'
import { createFhirReader } from '../base/fhir-reader.ts'
import { LIFETIME, LIMITS } from '../base/limits.ts'
import { paths } from '../base/paths.ts'
import { readJson, sendOAuthError } from '../base/request.ts'
import { findLaunchUser } from '../users/accounts.ts'
import { describePage, PAGE_REASONS } from '../words/reasons.ts'
import { authenticateBearer, sendBearerError } from './access-token.ts'
import type { AuthContext } from './context.ts'
import { hasScope } from './grants/grant.ts'
import { isShortText, makeExtraContext, readFhirContext } from './launch/options.ts'
import {
  type IssuedLaunch,
  issueLaunch,
  type LaunchProblem,
  type LaunchRequest,
  prepareLaunch,
  type ReadyLaunch,
} from './launch/prepare.ts'

/** An EHR's request to launch an app for a patient and a user. */
interface LaunchContextRequest {
  readonly username: string
  readonly launch: LaunchRequest
}

const isOptional = (check: (value: unknown) => boolean) => (value: unknown) =>
  value === undefined || check(value)

/** Each member, what its value must be, and the fault of another value. */
const MEMBERS: Readonly<Record<string, readonly [check: (value: unknown) => boolean, fault: MemberFault]>> = {
  client_id: [isShortText, 'member-not-text'],
  username: [isShortText, 'member-not-text'],
  patient: [isShortText, 'patient-not-an-id'],
  encounter: [isOptional(isShortText), 'encounter-not-an-id'],
  need_patient_banner: [isOptional(value => typeof value === 'boolean'), 'member-not-boolean'],
  intent: [isOptional(isShortText), 'member-too-long'],
  tenant: [isOptional(isShortText), 'member-too-long'],
}

type MemberFault =
  | 'member-not-text'
  | 'patient-not-an-id'
  | 'encounter-not-an-id'
  | 'member-not-boolean'
  | 'member-too-long'

/** Faults that a response names. */
const NAMED_FAULTS = 20

/** Reads the JSON of `POST /launch-contexts`. Unknown members are errors. Every fault is named. */
function readLaunchContextRequest(body: unknown): LaunchContextRequest | RequestProblem {
  if (!isRecord(body)) return failBody([makeFault('body-not-an-object')])
  const { fhirContext = [], ...members } = body
  const items = readFhirContext(fhirContext)
  const faults = [
    ...Object.keys(members)
      .filter(name => !Object.hasOwn(MEMBERS, name))
      .map(name => makeFault('member-unknown', { name: JSON.stringify(name.slice(0, 40)) })),
    ...Object.entries(MEMBERS)
      .filter(([name, [isValid]]) => !isValid(body[name]))
      .map(([name, [, fault]]) => makeFault(fault, { name, longest: LIMITS.contextTextCharacters })),
    ...(isFailure(items) ? [items] : []),
  ]
  const { client_id, username, patient, need_patient_banner: banner } = body
  const isWrong = faults.length > 0 || isFailure(items)
  if (isWrong || !isShortText(client_id) || !isShortText(username) || !isShortText(patient))
    return failBody(faults)
  const text = (value: unknown) => (isShortText(value) ? value : undefined)
  return {
    username,
    launch: {
      clientId: client_id,
      patientId: patient,
      encounterId: text(body.encounter),
      options: {
        needPatientBanner: typeof banner === 'boolean' ? banner : undefined,
        extraContext: makeExtraContext(text(body.intent), text(body.tenant), items),
      },
      repeated: false,
    },
  }
}

const SCOPE = '__launch-contexts.c'

function failBody(faults: readonly Fault[]): RequestProblem {
  const named = faults.slice(0, NAMED_FAULTS)
  const { sentence: text } = describePage('launch-body-invalid', { fault: named })
  return fail({ reason: 'launch-body-invalid', faults: named, text })
}

interface RequestProblem extends Failed {
  readonly reason: 'launch-body-invalid' | 'launch-user-unknown'
  readonly faults?: readonly Fault[]
  readonly text: string
}

type Problem = LaunchProblem | RequestProblem

/**
 * `POST /launch-contexts`: an EHR creates a launch instead of the portal. Its backend names the user, the app and the
 * patient, and sends the user's browser to the returned `launch_url`. The user still logs in here, and only this user can
 * use the launch.
 */
export function addLaunchContextRoutes(app: FastifyInstance, context: AuthContext): void {
  app.post(paths.launchContexts, async (request, reply) => {
    const bearer = await authenticateBearer(context, request.headers.authorization)
    if (isFailure(bearer)) return sendBearerError(reply, bearer.reason, SCOPE)
    if (bearer.grant || !hasScope(bearer.scope, SCOPE))
      return sendBearerError(reply, 'insufficient-scope', SCOPE)
    const json = readJson(request)
    if (isFailure(json)) return sendOAuthError(request, reply, json)
    const launchRequest = readLaunchContextRequest(json.body)
    const result = isFailure(launchRequest) ? launchRequest : await prepareForUser(context, launchRequest)
    const event = { ...describeEvent(result), subject: bearer.clientId }
    const record = (trx?: Transaction<Schema>) => auditEvent(context, request, event, trx)
    if (!isFailure(result)) return sendLaunch(reply, await issueLaunch(context, result, record))
    await record()
    return sendProblem(reply, result)
  })
}

async function prepareForUser(
  context: AuthContext,
  { username, launch }: LaunchContextRequest,
): Promise<ReadyLaunch | Problem> {
  const user = await findLaunchUser(context, username)
  if (!user) return UNKNOWN_USER
  const read = await createFhirReader(context, user, { purpose: 'launch-request' })
  return prepareLaunch(context, user, read, launch)
}

function sendLaunch(reply: FastifyReply, { token, url }: IssuedLaunch): FastifyReply {
  return reply.code(201).send({
    launch: token,
    launch_url: url,
    expires_in: LIFETIME.launchToken / 1000,
  })
}

function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { status, error, text } = describeLaunchProblem(problem)
  if (status === 503) reply.header('retry-after', '2')
  return reply.code(status).send({ error, error_description: text })
}

function describeEvent(result: ReadyLaunch | Problem) {
  if (isFailure(result)) {
    const { status, text } = describeLaunchProblem(result)
    return {
      kind: 'launch',
      allowed: status === 503,
      status,
      reason: text,
      details: nameProblem(result),
    } as const
  }
  const { patientId, clientId, id } = result.launch
  return { kind: 'launch', status: 201, patient: patientId, client: clientId, launch: id } as const
}

export const UNKNOWN_USER: RequestProblem = fail({
  reason: 'launch-user-unknown',
  text: PAGE_REASONS['launch-user-unknown'].sentence,
})

/** The reason of a launch problem in the audit trail. */
export function nameProblem(problem: Problem): Pick<Problem, 'reason'> & { readonly facts?: StoredFacts } {
  const { reason } = problem
  switch (reason) {
    case 'launch-body-invalid':
      return { reason, facts: { fault: problem.faults ?? [] } }
    case 'launch-option-invalid':
      return { reason, facts: { field: problem.field, fault: problem.fault } }
    default:
      return { reason }
  }
}

/** Errors have the format of RFC 6749, 5.2. */
export function describeLaunchProblem(problem: Problem) {
  switch (problem.reason) {
    case 'launch-body-invalid':
    case 'launch-option-invalid':
    case 'launch-encounter-missing':
    case 'launch-user-unknown':
      return describeInvalid(problem.text)
    case 'launch-form-repeated':
    case 'launch-patient-missing':
      return describeInvalid('The body cannot be read.')
    case 'launch-app-unknown':
      return describeInvalid('The client_id is unknown or has no launch URL.')
    case 'launch-patient-unknown':
      return describeMissing('The patient does not exist, or this user may not see it.')
    case 'launch-encounter-unknown':
      return describeMissing('The encounter does not exist, or belongs to another patient.')
    case 'records-unavailable':
      return { status: 503, error: 'temporarily_unavailable', text: 'The FHIR server is unreachable.' }
  }
}

function describeInvalid(text: string) {
  return { status: 400, error: 'invalid_request', text }
}

function describeMissing(text: string) {
  return { status: 404, error: 'not_found', text }
}
