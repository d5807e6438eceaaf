import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { fail, isFailure, isRecord, parseJson } from '../core/index.ts'
import { parseExact } from '../fhir/index.ts'
import type { CallEnd, Entrance, FhirResponse, WayIn } from '../fhir-api/index.ts'
import type { Authenticated, Authenticator, Grant } from '../smart/index.ts'
import { listTexts, readBundle, readSearchset } from './bundle.ts'
import type { CallCounter } from './count-calls.ts'
import { MESSAGE_BYTES } from './limits.ts'
import { answer } from './methods.ts'
import { findProposer, openProposals, type ProposalOptions } from './proposals.ts'
import {
  describeFault,
  failProtocol,
  findRefusal,
  type Message,
  type ProtocolFault,
  readMessage,
} from './protocol.ts'
import {
  type Call,
  type FhirJson,
  failCall,
  type LackingScopes,
  type ToolFault,
  type TriedChange,
} from './tool.ts'

export interface McpOptions {
  readonly baseUrl: string
  readonly version: string
  /** Accepts tokens for the URL of the endpoint only. */
  readonly guard: Authenticator
  /** The URL of the protected resource metadata (RFC 9728). */
  readonly metadataUrl: string
  /** The scopes that a client should request first. */
  readonly scopes: readonly string[]
  /** Whether pages of an origin may send messages. Requests of other programs have none. */
  readonly acceptsOrigin: (origin: string) => boolean
  readonly calls: CallCounter
  readonly proposals: ProposalOptions
}

/** The MCP endpoint below the FHIR base. */
export function createMcp(options: McpOptions): WayIn {
  return { path: '/mcp', guard: options.guard, serve: (app, entrance) => addRoutes(app, entrance, options) }
}

function addRoutes(app: FastifyInstance, entrance: Entrance, options: McpOptions): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'string', bodyLimit: MESSAGE_BYTES },
    (_request, body, done) => done(null, body),
  )
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers
    if (origin === undefined) return
    if (!options.acceptsOrigin(origin)) return refuseOrigin(entrance, options, request, reply)
    reply
      .header('access-control-allow-origin', origin)
      .header('vary', 'Origin')
      .header('access-control-expose-headers', 'WWW-Authenticate, Retry-After')
  })
  app.setErrorHandler<FastifyError>(async (error, request, reply) => {
    const fault = findUnread(error)
    if (!fault) throw error
    const caller = await entrance.authenticate(request)
    if (!caller.allowed) return sendUnauthorized(reply, options, caller.status)
    return refuse(entrance, { request, caller }, reply, fault)
  })
  app.options('/', (_request, reply) =>
    reply
      .code(204)
      .header('access-control-allow-methods', 'POST')
      .header(
        'access-control-allow-headers',
        'Accept, Authorization, Content-Type, Mcp-Method, Mcp-Name, MCP-Protocol-Version',
      )
      .send(),
  )
  app.route({
    method: ['GET', 'DELETE'],
    url: '/',
    handler: (_request, reply) =>
      sendFault(reply.header('allow', 'POST'), failProtocol('not-allowed', 'Send messages by POST')),
  })
  app.post('/', (request, reply) => respond(entrance, options, request, reply))
}

async function respond(
  entrance: Entrance,
  options: McpOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const caller = await entrance.authenticate(request)
  if (!caller.allowed) return sendUnauthorized(reply, options, caller.status)
  const { grant } = caller
  if (!grant) throw new Error('Cannot serve a caller without a grant')
  const body = parseJson(String(request.body ?? ''))
  const message =
    body === undefined
      ? failProtocol('message-not-json', 'Expected JSON')
      : readMessage(body, request.headers)
  // Nothing follows from a notification.
  if (!isFailure(message) && message.id === undefined) return reply.code(202).send()
  const sent = { request, caller }
  const wait = options.calls.count(grant, entrance.clock())
  if (wait !== undefined) {
    const fault = failProtocol('calls-too-many', `Too many calls. Wait ${wait} seconds.`, { id: message.id })
    return refuse(entrance, sent, reply.header('retry-after', wait), fault)
  }
  if (isFailure(message)) return refuse(entrance, sent, reply, message)
  const context = {
    baseUrl: options.baseUrl,
    version: options.version,
    grant,
    startCall: (tool: string) => startCall(entrance, options, request, { caller, grant, tool }),
    recordCall: (tool: string, end: CallEnd) => entrance.record(request, caller, { tool, ...end }),
  }
  const result = await answer(context, message)
  if (!isFailure(result)) return reply.send({ jsonrpc: '2.0', id: message.id, result })
  return result.reason === 'lacking-scopes'
    ? sendForbidden(reply, options, message, result)
    : refuse(entrance, sent, reply, result, message)
}

interface Sent {
  readonly request: FastifyRequest
  readonly caller: Authenticated
}

/** Records why, and says it. */
async function refuse(
  entrance: Entrance,
  { request, caller }: Sent,
  reply: FastifyReply,
  fault: ProtocolFault,
  message?: Message,
): Promise<FastifyReply> {
  const refusal = findRefusal(fault)
  if (refusal) await entrance.record(request, caller, { tool: fault.tool, refusal })
  return sendFault(reply, fault, message)
}

/** A preflight has no token. */
async function refuseOrigin(
  entrance: Entrance,
  options: McpOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const fault = failProtocol('origin-refused', 'This origin is not allowed')
  if (request.method !== 'POST') return sendFault(reply, fault)
  const caller = await entrance.authenticate(request)
  if (!caller.allowed) return sendUnauthorized(reply, options, caller.status)
  return refuse(entrance, { request, caller }, reply, fault)
}

/** Why a message cannot be read. */
function findUnread({ statusCode }: FastifyError): ProtocolFault | undefined {
  if (statusCode === 415) return failProtocol('message-of-other-type', 'Expected application/json')
  if (statusCode !== 413) return undefined
  const text = `Expected at most ${MESSAGE_BYTES} bytes`
  return failProtocol('message-too-large', text, { facts: { limit: MESSAGE_BYTES } })
}

function startCall(
  entrance: Entrance,
  { baseUrl, proposals }: McpOptions,
  request: FastifyRequest,
  { caller, grant, tool }: { readonly caller: Authenticated; readonly grant: Grant; readonly tool: string },
): Call {
  const now = entrance.clock()
  let hasRequested = false
  const perform: typeof entrance.perform = (...given) => {
    hasRequested = true
    return entrance.perform(...given)
  }
  return {
    baseUrl,
    grant,
    now,
    pageParameter: entrance.pageParameter,
    proposals: openProposals(proposals, findProposer(grant), now),
    hasRequested: () => hasRequested,
    readExact: () => readExactArguments(String(request.body)),
    async tryChange(change) {
      const response = await perform(request, caller, {
        ...makeRequest(change),
        tool,
        isTrial: true,
      })
      const found = await readResource(response)
      const { status, version, refused } = response
      if (status === 204) return failCall('There is nothing to delete.')
      if (!isFailure(found)) {
        const isSeen = change.action === 'create' || version?.etag !== undefined
        return isSeen ? { ...(version?.etag !== undefined && { version: version.etag }) } : failUnseen(change)
      }
      const isHidden = !refused && (status === 403 || status === 404 || status === 410)
      return isHidden ? failUnseen(change) : found
    },
    async search(url) {
      const sent = { method: 'GET', url, tool, takesSearchset: true } as const
      const response = await perform(request, caller, sent)
      if (response.searchset) return readSearchset(response.searchset)
      const bundle = await readResource(response)
      return isFailure(bundle) ? bundle : readBundle(bundle)
    },
    async fetch(url, body) {
      const response = await perform(request, caller, {
        method: body ? 'POST' : 'GET',
        url,
        tool,
        ...(body && { body }),
      })
      return readResource(response)
    },
  }
}

const METHODS = { create: 'POST', update: 'PUT', patch: 'PATCH', delete: 'DELETE' } as const

/** The request that would make a change. */
function makeRequest({ action, type, id, body }: TriedChange) {
  return {
    method: METHODS[action],
    url: id === undefined ? `/${type}` : `/${type}/${id}`,
    ...(body !== undefined && { body }),
    ...(action === 'patch' && { headers: { 'content-type': 'application/json-patch+json' } }),
  }
}

/** The same words whether the resource does not exist or is outside the grant (MCP-6). */
function failUnseen({ type, id }: TriedChange): ToolFault {
  return failCall(
    id === undefined
      ? `The new ${type} is outside of your access. It must be about your patient.`
      : `There is no ${type}/${id} that you may change in this way, or the new content is outside of your access.`,
  )
}

/** The message was read before, so that it has this shape. */
function readExactArguments(text: string): FhirJson {
  const message = parseExact(text)
  const params = isRecord(message) && isRecord(message.params) ? message.params : {}
  return isRecord(params.arguments) ? params.arguments : {}
}

/** The resource of a response, or why there is none. */
async function readResource({ status, body, refused }: FhirResponse): Promise<FhirJson | ToolFault> {
  if (refused) {
    const { scopes, outcome } = refused
    const text = outcome.issue[0]?.diagnostics ?? 'Not allowed.'
    return scopes ? fail({ reason: 'lacking-scopes', text, scopes }) : failCall(text)
  }
  const parsed = parseJson(
    typeof body === 'string' || body === undefined ? (body ?? '') : await readWhole(body),
  )
  const resource = isRecord(parsed) ? parsed : {}
  if (status < 400) return resource
  return failCall(listTexts(resource).join(' ') || `The FHIR server answered with status ${status}.`)
}

async function readWhole(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString()
}

function sendFault(reply: FastifyReply, fault: ProtocolFault, message?: Message): FastifyReply {
  const { status, body } = describeFault({ ...fault, id: fault.id ?? message?.id }, message?.isModern)
  return reply.code(status).send(body)
}

function sendUnauthorized(
  reply: FastifyReply,
  { metadataUrl, scopes }: McpOptions,
  status: number,
): FastifyReply {
  if (status !== 401)
    return sendFault(reply.code(status), failProtocol('broken', 'The access token cannot be checked'))
  const challenge = `Bearer resource_metadata="${metadataUrl}", scope="${scopes.join(' ')}"`
  return sendFault(
    reply.header('www-authenticate', challenge),
    failProtocol('unauthorized', 'Expected an access token for this endpoint'),
  )
}

/** The client may ask the person for more (step-up). */
function sendForbidden(
  reply: FastifyReply,
  { metadataUrl }: McpOptions,
  { id }: Message,
  { text, scopes }: LackingScopes,
): FastifyReply {
  const challenge = `Bearer error="insufficient_scope", scope="${scopes.join(' ')}", resource_metadata="${metadataUrl}"`
  return sendFault(reply.header('www-authenticate', challenge), failProtocol('forbidden', text, { id }))
}
