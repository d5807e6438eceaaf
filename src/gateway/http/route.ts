import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AuditUnavailable, type FhirAudit, type Finished, isAboutAudit } from '../../audit/index.ts'
import { type Admitted, type Guard, noAccess } from '../../consent/index.ts'
import {
  acceptsJson,
  authorizationOf,
  formOf,
  type Interaction,
  isProblem,
  isPublic,
  type Misunderstood,
  parseInteraction,
  preconditionsOf,
  preferencesOf,
  type Refused,
  readBody,
} from '../../fhir/index.ts'
import { answerPreflight, type Origins, setCors } from '../../web/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { handle } from '../handle.ts'
import { answerOf, type Problem } from '../problem.ts'
import { parseExact } from '../upstream/exact.ts'
import { send } from './send.ts'

export interface RouteOptions {
  readonly context: Context
  readonly guard: Guard
  readonly audit: FhirAudit | undefined
  readonly clock: () => number
  readonly basePath: string
  readonly bodyLimit: number
  readonly origins: Origins
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller, once the guard has admitted it; undefined for what is public. */
    admitted: Admitted | undefined
    /** What the request means. That of a POST may depend on its form, and is told when the body has been read. */
    interaction: Interaction | Misunderstood | undefined
  }
}

// What is public is answered to everybody alike, and touches nobody's data.
const nobody: Admitted = { allowed: true, decide: () => ({ allowed: true, access: noAccess, by: 'public' }) }

/** Serves every address below the FHIR base by one route: what an address means is told by `parseInteraction` alone. */
export function serveGateway(app: FastifyInstance, options: RouteOptions): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: options.bodyLimit }, (_request, body, done) =>
    done(null, body),
  )
  app.decorateRequest('admitted', undefined)
  app.decorateRequest('interaction', undefined)
  // With a callback: a token that was seen before is judged at once, and a promise would only cost.
  app.addHook('onRequest', (request, reply, done) => admit(options, request, reply, done))
  const answer = async (request: FastifyRequest, reply: FastifyReply) =>
    send(reply, await answerTo(options, request))
  app.all('/', answer)
  app.all('/*', answer)
}

/** Judges the token before a byte of the body is read. */
function admit(
  options: RouteOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  done: (error?: Error) => void,
): void {
  const { guard, origins, basePath } = options
  if (request.method !== 'POST') request.interaction = interactionOf(request, basePath)
  const open = request.interaction !== undefined && isPublic(request.interaction)
  setCors(request, reply, origins, open)
  if (request.method === 'OPTIONS') answerPreflight(reply)
  else if (open) done()
  else {
    const enter = (judged: Refused | Admitted) => {
      request.admitted = judged.allowed ? judged : undefined
      if (judged.allowed) done()
      else turnAway(options, request, reply, judged).catch(done)
    }
    const judged = guard.admit(authorizationOf(request.raw.rawHeaders))
    if (judged instanceof Promise) judged.then(enter, done)
    else enter(judged)
  }
}

async function turnAway(
  options: RouteOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  refused: Refused,
): Promise<FastifyReply> {
  const interaction = request.interaction ?? interactionOf(request, options.basePath)
  return send(reply, await recorded(options, request, { interaction, problem: refusedBy(refused) }))
}

async function answerTo(options: RouteOptions, request: FastifyRequest): Promise<Answer> {
  const { admitted, interaction = interactionOf(request, options.basePath) } = request
  if (interaction.kind === 'misunderstood')
    return recorded(options, request, { interaction, problem: { ...interaction, problem: 'misunderstood' } })
  const caller = isPublic(interaction) ? nobody : admitted
  if (!caller) throw new Error('Cannot decide: the caller was not admitted')
  const call = callOf(interaction, request, caller, options.audit !== undefined)
  if (isProblem(call)) return recorded(options, request, { interaction, problem: call })
  if (!options.audit) return answered(await handle(options.context, call))
  try {
    const outcome = await perform(options.context, options.audit, call)
    return await recorded(options, request, {
      ...call,
      ...(isProblem(outcome) ? { problem: outcome } : { answer: outcome }),
    })
  } catch (error) {
    if (!(error instanceof AuditUnavailable)) await recorded(options, request, { ...call, answer: FAILED })
    throw error
  }
}

/** What is answered when the work itself throws; the error handler says it. */
const FAILED: Answer = { status: 500, headers: {} }

async function perform(context: Context, audit: FhirAudit, call: Call): Promise<Answer | Problem> {
  const { interaction, access, preferences } = call
  if (isAboutAudit(interaction)) {
    const found = await audit.answer({ interaction, access, lenient: preferences.lenient })
    return isProblem(found) ? found : { ...found, headers: {} }
  }
  if (isWriting(interaction)) await audit.prepare()
  return handle(context, call)
}

const WRITING = /^(?:create|update|patch|delete|bundle)/

function isWriting({ kind }: Interaction): boolean {
  return WRITING.test(kind)
}

function answered(outcome: Answer | Problem): Answer {
  return isProblem(outcome) ? answerOf(outcome) : outcome
}

interface Came extends Pick<Finished, 'interaction' | 'by'> {
  readonly body?: unknown
  readonly answer?: Answer
  readonly problem?: Problem
}

/** The response, which may go out: what was asked, decided and answered is in the audit trail. */
async function recorded(options: RouteOptions, request: FastifyRequest, came: Came): Promise<Answer> {
  const { interaction, by, problem, body } = came
  const answer = came.answer ?? (problem ? answerOf(problem) : FAILED)
  if (!options.audit) return answer
  await options.audit.record({
    ...{ interaction, by, problem, sent: body },
    at: options.clock(),
    method: request.method,
    address: (request.raw.url ?? '').slice(options.basePath.length),
    admitted: request.admitted,
    status: answer.status,
    answer: typeof answer.body === 'string' ? answer.body : undefined,
    location: answer.headers.location,
    before: answer.before,
    requestId: String(request.id),
    clientAddress: request.ip,
  })
  return answer
}

function refusedBy(refused: Refused): Problem {
  return { problem: 'refused', refused }
}

function callOf(
  interaction: Interaction,
  request: FastifyRequest,
  admitted: Admitted,
  recorded: boolean,
): Call | Problem {
  const { headers } = request
  const decision = admitted.decide(interaction)
  if (!decision.allowed) return { problem: 'refused', refused: decision }
  if (!acceptsJson(headers, interaction)) return { problem: 'not-acceptable' }
  const read = readBody(interaction, headers['content-type'], bytesOf(request))
  if (isProblem(read)) return read
  return {
    interaction,
    body: read.body,
    exactBody: read.text === undefined ? undefined : parseExact(read.text),
    preconditions: preconditionsOf(headers),
    preferences: preferencesOf(headers),
    access: decision.access,
    by: decision.by,
    admitted,
    requestId: String(request.id),
    mayStream: true,
    recorded,
  }
}

function interactionOf(request: FastifyRequest, basePath: string): Interaction | Misunderstood {
  const { url = '' } = request.raw
  const at = url.indexOf('?')
  return parseInteraction({
    method: request.method,
    path: (at < 0 ? url : url.slice(0, at)).slice(basePath.length),
    query: at < 0 ? '' : url.slice(at + 1),
    headers: request.headers,
    form: formOf(request.headers['content-type'], bytesOf(request)),
  })
}

function bytesOf(request: FastifyRequest): Uint8Array | undefined {
  return request.body instanceof Uint8Array ? request.body : undefined
}
