import type { FastifyReply, FastifyRequest } from 'fastify'
import { isFailure } from '../../core/index.ts'
import { getAuthorizationHeader, isPublic } from '../../fhir/index.ts'
import type { Authenticated, AuthFailure } from '../../smart/index.ts'
import { answerPreflight, setCors } from '../../web/http/index.ts'
import { failRefused } from '../response.ts'
import { recordOutcome } from './audit-request.ts'
import { type ApiRequest, type FhirApi, findInteraction } from './fhir-api.ts'
import { sendResponse } from './send-response.ts'

declare module 'fastify' {
  interface FastifyRequest
    extends Pick<ApiRequest, 'work' | 'authenticated' | 'interaction' | 'content' | 'bodyProblem'> {}
}

type Done = (error?: Error) => void

/** Verifies the token before a byte of the body is read. */
export function authenticate(api: FhirApi, request: FastifyRequest, reply: FastifyReply, done: Done): void {
  request.work = api.createWork()
  if (request.method !== 'POST') request.interaction = findInteraction(request, api)
  const open = request.interaction !== undefined && isPublic(request.interaction)
  setCors(request, reply, api.origins, open)
  if (request.method === 'OPTIONS') answerPreflight(reply)
  else if (open) done()
  else authenticateCaller(api, request, reply, done)
}

/** Sets the caller of the request, or sends 401. */
export function authenticateCaller(
  api: FhirApi,
  request: FastifyRequest,
  reply: FastifyReply,
  done: Done,
): void {
  const result = api.guard.authenticate(getAuthorizationHeader(request.raw.rawHeaders))
  if (result instanceof Promise) result.then(it => continueWith(api, request, reply, it, done), done)
  else continueWith(api, request, reply, result, done)
}

function continueWith(
  api: FhirApi,
  request: FastifyRequest,
  reply: FastifyReply,
  result: AuthFailure | Authenticated,
  done: Done,
): void {
  request.authenticated = result.allowed ? result : undefined
  if (!result.allowed) sendUnauthorized(api, request, reply, result).catch(done)
  else if (mayUseBody(api, request, result)) done()
  else sendForbidden(api, request, reply, result).catch(done)
}

/** Whether a scope may permit the request. The form of a `_search` may add parameters, but never permits more. */
function mayUseBody(api: FhirApi, request: FastifyRequest, caller: Authenticated): boolean {
  if (request.body !== undefined || !hasBody(request.headers)) return true
  const interaction = findInteraction(request, api)
  return isFailure(interaction) || api.guard.mayAllow(caller, interaction, request.work)
}

function hasBody(headers: FastifyRequest['headers']): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Sends the refusal before a byte of the body is read. */
async function sendForbidden(
  api: FhirApi,
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Authenticated,
): Promise<FastifyReply> {
  const interaction = findInteraction(request, api)
  const decision = isFailure(interaction) ? undefined : caller.decide(interaction, request.work)
  if (!decision || decision.allowed) throw new Error('Cannot refuse: the decision has changed')
  const outcome = failRefused(decision)
  return sendResponse(reply, await recordOutcome(api, request, { interaction }, outcome))
}

async function sendUnauthorized(
  api: FhirApi,
  request: FastifyRequest,
  reply: FastifyReply,
  refused: AuthFailure,
): Promise<FastifyReply> {
  const { interaction = findInteraction(request, api) } = request
  return sendResponse(
    reply,
    await recordOutcome(
      api,
      request,
      { interaction, rejectedGrant: refused.rejectedGrant },
      failRefused(refused),
    ),
  )
}
