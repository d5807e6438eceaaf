import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  AuditUnavailable,
  auditRefusal,
  type FhirAudit,
  type Finished,
  isAboutAudit,
} from '../../audit/index.ts'
import { type Admitted, fullAccess, type Guard } from '../../consent/index.ts'
import {
  acceptsJson,
  authorizationOf,
  formOf,
  type Interaction,
  isPublic,
  type Misunderstood,
  parseInteraction,
  preconditionsOf,
  preferencesOf,
  type Refused,
  type Resource,
  readBody,
} from '../../fhir/index.ts'
import { answerPreflight, type Origins, setCors } from '../../web/index.ts'
import { type Answer, headersOf } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { handle } from '../handle.ts'
import { answerOf, isProblem, type Problem } from '../problem.ts'
import { resourceOf } from '../repository/stored.ts'
import { isStorageTrouble } from '../repository/trouble.ts'

export interface RouteOptions {
  readonly context: Context
  readonly guard: Guard | undefined
  readonly audit: FhirAudit | undefined
  readonly basePath: string
  readonly bodyLimit: number
  readonly origins: Origins
}

const READING: ReadonlySet<Interaction['kind']> = new Set([
  'capabilities',
  'smart-configuration',
  'read',
  'vread',
  'history-instance',
  'history-type',
  'history-system',
  'search-type',
  'search-system',
  'search-compartment',
  'operation',
])

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller, once the guard has admitted it; undefined on an unguarded server and for what is public. */
    admitted: Admitted | undefined
    /** What the request means. That of a POST may depend on its form, and is told when the body has been read. */
    interaction: Interaction | Misunderstood | undefined
  }
}

/** Serves every address below the FHIR base by one route: what an address means is told by `parseInteraction` alone. */
export function serveFhir(app: FastifyInstance, options: RouteOptions): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: options.bodyLimit }, (_request, body, done) =>
    done(null, body),
  )
  app.decorateRequest('admitted', undefined)
  app.decorateRequest('interaction', undefined)
  app.setErrorHandler(async (error, request) => {
    if (!isStorageTrouble(error)) throw error
    request.log.error({ err: error }, 'Data cannot be reached')
    throw Object.assign(new Error('Data cannot be reached'), { statusCode: 503 })
  })
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
  else if (!guard || open) done()
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
  const interaction = request.interaction ?? interactionOf(request, options.basePath)
  if (interaction.kind === 'misunderstood')
    return recorded(options, request, { interaction, problem: { ...interaction, problem: 'misunderstood' } })
  const call = callOf(interaction, request, options.guard)
  if (isProblem(call)) return recorded(options, request, { interaction, problem: call })
  try {
    const outcome = await perform(options, call)
    return recorded(options, request, {
      ...call,
      ...(isProblem(outcome) ? { problem: outcome } : { answer: outcome }),
    })
  } catch (error) {
    if (!(error instanceof AuditUnavailable)) await recorded(options, request, { ...call, answer: FAILED })
    throw error
  }
}

/** What is answered when the work itself throws; the error handler says it. */
const FAILED: Answer = { status: 500 }

/** Answers when everything that the answer tells of is on the disk. */
async function perform({ context, audit }: RouteOptions, call: Call): Promise<Answer | Problem> {
  const { interaction, access, preferences } = call
  if (isAboutAudit(interaction) && !isReading(interaction)) return auditRefusal(interaction)
  if (isAboutAudit(interaction) && audit)
    return audit.answer({ interaction, access, lenient: preferences.lenient })
  const { database } = context.repository
  const work = () => handle(context, call)
  if (isReading(interaction)) return database.beside(work)
  await audit?.prepare()
  return database.group(work)
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
  await options.audit?.record({
    ...{ interaction, by, problem, sent: body },
    at: options.context.clock(),
    method: request.method,
    address: (request.raw.url ?? '').slice(options.basePath.length),
    admitted: request.admitted,
    status: answer.status,
    answer: answer.body,
    location: answer.location ?? answer.removed,
    kept: (type, id, version) => keptIn(options.context, type, id, version),
    requestId: String(request.id),
    clientAddress: request.ip,
  })
  return answer
}

function keptIn({ repository }: Context, type: string, id: string, version?: string): Resource | undefined {
  const stored = version === undefined ? repository.find(type, id) : repository.findVersion(type, id, version)
  return stored && resourceOf(stored)
}

function refusedBy(refused: Refused): Problem {
  return { problem: 'refused', refused }
}

function isReading({ kind }: Interaction): boolean {
  return READING.has(kind)
}

function callOf(interaction: Interaction, request: FastifyRequest, guard: Guard | undefined): Call | Problem {
  const { headers, admitted } = request
  const decision =
    guard && !isPublic(interaction)
      ? admitted?.decide(interaction)
      : ({ allowed: true, access: fullAccess, by: 'public' } as const)
  if (!decision) throw new Error('Cannot decide: the caller was not admitted')
  if (!decision.allowed) return { problem: 'refused', refused: decision }
  if (!acceptsJson(headers, interaction)) return { problem: 'not-acceptable' }
  const read = readBody(interaction, headers['content-type'], bytesOf(request))
  if (isProblem(read)) return read
  return {
    interaction,
    body: read.body,
    preconditions: preconditionsOf(headers),
    preferences: preferencesOf(headers),
    access: decision.access,
    by: decision.by,
    admitted,
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

function send(reply: FastifyReply, answer: Answer): FastifyReply {
  reply.code(answer.status).headers(headersOf(answer))
  if (reply.request.method !== 'HEAD') return reply.send(answer.body)
  return reply.header('content-length', Buffer.byteLength(answer.body ?? '')).send('')
}
