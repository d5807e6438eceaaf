import type { FastifyInstance, FastifyReply } from 'fastify'
import { readBearer, sendBearerFault } from '../access/bearer.ts'
import { auditEvent } from '../audit.ts'
import { readJson, sendRefused } from '../client/request.ts'
import { type Clinician, clinicianOf } from '../clinician/clinician.ts'
import type { AuthContext } from '../context.ts'
import { hasScope } from '../grant/grant.ts'
import {
  type IssuedLaunch,
  issueLaunch,
  type LaunchProblem,
  prepareLaunch,
  type ReadyLaunch,
} from '../launch/prepare.ts'
import { LIFETIME } from '../lifetimes.ts'
import { paths } from '../paths.ts'
import { fhirReader } from '../portal/fhir-reader.ts'
import { Refusal } from '../refusal.ts'
import { type LaunchOrder, readLaunchOrder } from './read-body.ts'

const SCOPE = '__launch-contexts.c'

type Problem =
  | LaunchProblem
  | { readonly kind: 'bad-body'; readonly fault: string }
  | { readonly kind: 'unknown-user' }

/**
 * `POST /launch-contexts`: a real EHR in the portal's place. Its back end says which user opens which app for whom, and
 * sends that user's browser to the `launch_url` that it gets. The user logs in here as ever: the launch is theirs alone.
 */
export function launchContextRoutes(app: FastifyInstance, context: AuthContext): void {
  app.post(paths.launchContexts, async (request, reply) => {
    const bearer = await readBearer(context, request.headers.authorization)
    if (typeof bearer === 'string') return sendBearerFault(reply, bearer, SCOPE)
    if (bearer.grant || !hasScope(bearer.scope, SCOPE))
      return sendBearerFault(reply, 'insufficient-scope', SCOPE)
    const json = readJson(request)
    if (json instanceof Refusal) return sendRefused(request, reply, json)
    const order = readLaunchOrder(json.body)
    const result: ReadyLaunch | Problem =
      typeof order === 'string' ? { kind: 'bad-body', fault: order } : await carryOut(context, order)
    const event = { ...eventOf(result), subject: bearer.clientId }
    if (result.kind === 'ready')
      return sendLaunch(
        reply,
        await issueLaunch(context, result, trx => auditEvent(context, request, event, trx)),
      )
    await auditEvent(context, request, event)
    return sendProblem(reply, result)
  })
}

async function carryOut(
  context: AuthContext,
  { username, wish }: LaunchOrder,
): Promise<ReadyLaunch | Problem> {
  const clinician = await findClinician(context, username)
  if (!clinician) return { kind: 'unknown-user' }
  return prepareLaunch(context, clinician, await fhirReader(context, clinician), wish)
}

async function findClinician({ store }: AuthContext, username: string): Promise<Clinician | undefined> {
  const row = await store.db
    .selectFrom('clinician')
    .select(['id', 'username', 'display_name', 'fhir_user_id'])
    .where('username', '=', username)
    .where('disabled', '=', false)
    .executeTakeFirst()
  return row && clinicianOf(row)
}

function sendLaunch(reply: FastifyReply, { token, address }: IssuedLaunch): FastifyReply {
  return reply.code(201).send({
    launch: token,
    launch_url: address,
    expires_in: LIFETIME.launchToken / 1000,
  })
}

function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { status, error, text } = wordsOf(problem)
  if (status === 503) reply.header('retry-after', '2')
  return reply.code(status).send({ error, error_description: text })
}

function eventOf(result: ReadyLaunch | Problem) {
  if (result.kind !== 'ready') {
    const { status, text } = wordsOf(result)
    return { kind: 'launch', allowed: status === 503, status, reason: text } as const
  }
  const { patientId, clientId, id } = result.launch
  return { kind: 'launch', status: 201, patient: patientId, client: clientId, launch: id } as const
}

/** An error in the form of RFC 6749, 5.2; what is not there is 404, as in the portal. */
function wordsOf(problem: Problem) {
  switch (problem.kind) {
    case 'bad-body':
    case 'bad-options':
      return { status: 400, error: 'invalid_request', text: `${problem.fault}.` }
    case 'unreadable':
    case 'no-patient':
      return { status: 400, error: 'invalid_request', text: 'The body cannot be read.' }
    case 'unknown-user':
      return { status: 400, error: 'invalid_request', text: 'There is no such username.' }
    case 'unknown-app':
      return {
        status: 400,
        error: 'invalid_request',
        text: 'There is no such client_id with a launch address.',
      }
    case 'unknown-patient':
      return { status: 404, error: 'not_found', text: 'There is no such patient for this user.' }
    case 'unknown-encounter':
      return { status: 404, error: 'not_found', text: 'There is no such encounter of this patient.' }
    case 'away':
      return { status: 503, error: 'temporarily_unavailable', text: 'The FHIR server does not answer.' }
  }
}
