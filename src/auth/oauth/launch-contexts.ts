import type { FastifyInstance, FastifyReply } from 'fastify'
import { isFailure } from '../../fhir/index.ts'
import { auditEvent } from '../base/audit.ts'
import { createFhirReader } from '../base/fhir-reader.ts'
import { LIFETIME, LIMITS } from '../base/limits.ts'
import { paths } from '../base/paths.ts'
import { readJson, sendOAuthError } from '../base/request.ts'
import { findUsableUser } from '../users/accounts.ts'
import { authenticateBearer, sendBearerError } from './access-token.ts'
import type { AuthContext } from './context.ts'
import { hasScope } from './grants/grant.ts'
import { isShortText, readFhirContext } from './launch/options.ts'
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

const MEMBERS: ReadonlySet<string> = new Set([
  'client_id',
  'username',
  'patient',
  'encounter',
  'need_patient_banner',
  'intent',
  'fhirContext',
  'tenant',
])

/** Reads the JSON of `POST /launch-contexts`, or returns the fault. Unknown members are errors. */
function readLaunchContextRequest(body: unknown): LaunchContextRequest | string {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return 'The body must be a JSON object'
  const members: Readonly<Record<string, unknown>> = { ...body }
  const unknown = Object.keys(members).find(name => !MEMBERS.has(name))
  if (unknown !== undefined) return `There is no member ${JSON.stringify(unknown.slice(0, 40))}`
  const { client_id, username, patient, encounter, need_patient_banner: banner } = members
  if (!isShortText(client_id)) return 'client_id is missing or not a string'
  if (!isShortText(username)) return 'username is missing or not a string'
  if (!isShortText(patient)) return 'patient is missing or not the id of a Patient'
  if (encounter !== undefined && !isShortText(encounter)) return 'encounter is not the id of an Encounter'
  if (banner !== undefined && typeof banner !== 'boolean') return 'need_patient_banner is not true or false'
  const extraContext = readExtraContext(members)
  if (typeof extraContext === 'string') return extraContext
  const options = { needPatientBanner: banner, extraContext }
  return {
    username,
    launch: { clientId: client_id, patientId: patient, encounterId: encounter, options, repeated: false },
  }
}

function readExtraContext({ intent, tenant, fhirContext = [] }: Readonly<Record<string, unknown>>) {
  if (intent !== undefined && !isShortText(intent))
    return `intent is not a string of at most ${LIMITS.contextTextCharacters} characters`
  if (tenant !== undefined && !isShortText(tenant))
    return `tenant is not a string of at most ${LIMITS.contextTextCharacters} characters`
  const items = readFhirContext(fhirContext)
  if (typeof items === 'string') return items
  return {
    ...(intent === undefined ? {} : { intent }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(items.length === 0 ? {} : { fhirContext: items }),
  }
}

const SCOPE = '__launch-contexts.c'

type Problem =
  | LaunchProblem
  | { readonly kind: 'bad-body'; readonly fault: string }
  | { readonly kind: 'unknown-user' }

/**
 * `POST /launch-contexts`: an EHR creates a launch instead of the portal. Its backend names the user, the app and the
 * patient, and sends the user's browser to the returned `launch_url`. The user still logs in here, and only this user can
 * use the launch.
 */
export function addLaunchContextRoutes(app: FastifyInstance, context: AuthContext): void {
  app.post(paths.launchContexts, async (request, reply) => {
    const bearer = await authenticateBearer(context, request.headers.authorization)
    if (typeof bearer === 'string') return sendBearerError(reply, bearer, SCOPE)
    if (bearer.grant || !hasScope(bearer.scope, SCOPE))
      return sendBearerError(reply, 'insufficient-scope', SCOPE)
    const json = readJson(request)
    if (isFailure(json)) return sendOAuthError(request, reply, json)
    const launchRequest = readLaunchContextRequest(json.body)
    const result: ReadyLaunch | Problem =
      typeof launchRequest === 'string'
        ? { kind: 'bad-body', fault: launchRequest }
        : await prepareForUser(context, launchRequest)
    const event = { ...describeEvent(result), subject: bearer.clientId }
    if (result.kind === 'ready')
      return sendLaunch(
        reply,
        await issueLaunch(context, result, trx => auditEvent(context, request, event, trx)),
      )
    await auditEvent(context, request, event)
    return sendProblem(reply, result)
  })
}

async function prepareForUser(
  context: AuthContext,
  { username, launch }: LaunchContextRequest,
): Promise<ReadyLaunch | Problem> {
  const user = await findUsableUser(context, username)
  if (!user) return { kind: 'unknown-user' }
  return prepareLaunch(context, user, await createFhirReader(context, user), launch)
}

function sendLaunch(reply: FastifyReply, { token, url }: IssuedLaunch): FastifyReply {
  return reply.code(201).send({
    launch: token,
    launch_url: url,
    expires_in: LIFETIME.launchToken / 1000,
  })
}

function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { status, error, text } = describeProblem(problem)
  if (status === 503) reply.header('retry-after', '2')
  return reply.code(status).send({ error, error_description: text })
}

function describeEvent(result: ReadyLaunch | Problem) {
  if (result.kind !== 'ready') {
    const { status, text } = describeProblem(result)
    return { kind: 'launch', allowed: status === 503, status, reason: text } as const
  }
  const { patientId, clientId, id } = result.launch
  return { kind: 'launch', status: 201, patient: patientId, client: clientId, launch: id } as const
}

/** Errors have the format of RFC 6749, 5.2. */
export function describeProblem(problem: Problem) {
  switch (problem.kind) {
    case 'bad-body':
    case 'bad-options':
      return { status: 400, error: 'invalid_request', text: `${problem.fault}.` }
    case 'unreadable':
    case 'no-patient':
      return { status: 400, error: 'invalid_request', text: 'The body cannot be read.' }
    case 'unknown-user':
      return { status: 400, error: 'invalid_request', text: 'The username is unknown.' }
    case 'unknown-app':
      return {
        status: 400,
        error: 'invalid_request',
        text: 'The client_id is unknown or has no launch URL.',
      }
    case 'unknown-patient':
      return {
        status: 404,
        error: 'not_found',
        text: 'The patient does not exist, or this user may not see it.',
      }
    case 'unknown-encounter':
      return {
        status: 404,
        error: 'not_found',
        text: 'The encounter does not exist, or belongs to another patient.',
      }
    case 'unavailable':
      return { status: 503, error: 'temporarily_unavailable', text: 'The FHIR server is unreachable.' }
  }
}
