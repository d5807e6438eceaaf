import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { noAccess } from '../../consent/index.ts'
import {
  type Admitted,
  acceptsJson,
  authorizationOf,
  formOf,
  type Guard,
  type Interaction,
  isProblem,
  isPublic,
  type Misunderstood,
  parseInteraction,
  preconditionsOf,
  preferencesOf,
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
  readonly basePath: string
  readonly bodyLimit: number
  readonly origins: Origins
}

/** Who asks for what, as far as it is known. */
interface Asked {
  readonly admitted: Admitted | undefined
  /** What the request means. That of a POST may depend on its form, and is told when the body has been read. */
  readonly interaction: Interaction | Misunderstood | undefined
}

const asked = new WeakMap<FastifyRequest, Asked>()

// What is public is answered to everybody alike, and touches nobody's data.
const nobody: Admitted = { allowed: true, decide: () => ({ allowed: true, access: noAccess }) }

/** Serves every address below the FHIR base by one route: what an address means is told by `parseInteraction` alone. */
export function serveGateway(app: FastifyInstance, options: RouteOptions): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: options.bodyLimit }, (_request, body, done) =>
    done(null, body),
  )
  app.addHook('onRequest', (request, reply) => admit(options, request, reply))
  const answer = async (request: FastifyRequest, reply: FastifyReply) =>
    send(reply, await answerTo(options, request))
  app.all('/', answer)
  app.all('/*', answer)
}

/** Judges the token before a byte of the body is read. */
async function admit(
  { guard, origins, basePath }: RouteOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  const interaction = request.method === 'POST' ? undefined : interactionOf(request, basePath)
  const open = interaction !== undefined && isPublic(interaction)
  setCors(request, reply, origins, open)
  if (request.method === 'OPTIONS') return answerPreflight(reply)
  const judged = open ? undefined : await guard.admit(authorizationOf(request.raw.rawHeaders))
  if (judged && !judged.allowed) return send(reply, answerOf({ problem: 'refused', refused: judged }))
  asked.set(request, { admitted: judged, interaction })
  return undefined
}

async function answerTo({ context, basePath }: RouteOptions, request: FastifyRequest): Promise<Answer> {
  const { admitted, interaction = interactionOf(request, basePath) } = asked.get(request) ?? {}
  if (interaction.kind === 'misunderstood') return answerOf({ ...interaction, problem: 'misunderstood' })
  const caller = isPublic(interaction) ? nobody : admitted
  if (!caller) throw new Error('Cannot decide: the caller was not admitted')
  const call = callOf(interaction, request, caller)
  const outcome = isProblem(call) ? call : await handle(context, call)
  return isProblem(outcome) ? answerOf(outcome) : outcome
}

function callOf(interaction: Interaction, request: FastifyRequest, admitted: Admitted): Call | Problem {
  const { headers } = request
  const decision = admitted.decide(interaction)
  if (!decision.allowed) return { problem: 'refused', refused: decision }
  if (!acceptsJson(headers, 'params' in interaction ? interaction.params : []))
    return { problem: 'not-acceptable' }
  const read = readBody(interaction, headers['content-type'], bytesOf(request))
  if (isProblem(read)) return read
  return {
    interaction,
    body: read.body,
    exactBody: read.text === undefined ? undefined : parseExact(read.text),
    preconditions: preconditionsOf(headers),
    preferences: preferencesOf(headers),
    access: decision.access,
    admitted,
    requestId: String(request.id),
    mayStream: true,
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
