import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { authenticateBearer, type BearerError, sendBearerError } from '../../access-token.ts'
import { auditEvent } from '../../audit.ts'
import { ADMIN_SCOPE, findClient } from '../../client/client.ts'
import { forbidCaching } from '../../client/request.ts'
import type { AuthContext } from '../../context.ts'
import { paths } from '../../paths.ts'
import { type Admin, AdminFailure, type AdminFailureCode } from '../action.ts'
import { clientEndpoints } from './clients.ts'
import { type AdminCall, type Endpoint, NONE, readMembers, StreamedText } from './endpoint.ts'
import { createOpenApiDocument } from './openapi.ts'
import { policyEndpoints, providerEndpoints, systemEndpoints } from './state.ts'
import { auditEndpoints, grantEndpoints, keyEndpoints } from './trail.ts'
import { userEndpoints } from './users.ts'

const ENDPOINTS: readonly Endpoint[] = [
  ...clientEndpoints,
  ...userEndpoints,
  ...keyEndpoints,
  ...grantEndpoints,
  ...auditEndpoints,
  ...policyEndpoints,
  ...providerEndpoints,
  ...systemEndpoints,
]

/** `/admin/api`: the administration as JSON. This function alone decides who may use it (ADMIN-6). */
export function addAdminApi(app: FastifyInstance, context: AuthContext): void {
  const admins = new WeakMap<FastifyRequest, Admin>()
  const authenticate = async (request: FastifyRequest, reply: FastifyReply) => {
    const admin = await findAdmin(context, request)
    if (typeof admin !== 'string') return void admins.set(request, admin)
    await recordRefusal(context, request, admin)
    return sendBearerError(reply, admin, ADMIN_SCOPE)
  }
  for (const endpoint of ENDPOINTS)
    app.route({
      method: endpoint.method,
      url: `${paths.adminApi}${endpoint.path}`,
      exposeHeadRoute: false,
      // Before the body is read.
      onRequest: [forbidCaching, authenticate],
      async handler(request, reply) {
        const admin = admins.get(request)
        if (!admin) throw new Error('Cannot answer without an administrator')
        const result = await answer(endpoint, request, { admin, context, app })
        return sendResult(reply, endpoint, result)
      },
    })
  const document = createOpenApiDocument(context.settings.issuerUrl, ENDPOINTS)
  app.get(`${paths.adminApi}/openapi.json`, async () => document)
}

/** Only the token of a client that still has the scope, never a cookie, which a page of another site could use. */
async function findAdmin(context: AuthContext, request: FastifyRequest): Promise<Admin | BearerError> {
  const { store, audit, clock, settings } = context
  const token = await authenticateBearer(context, request.headers.authorization, settings.issuerUrl)
  if (typeof token === 'string') return token
  const client = await findClient(store, token.clientId)
  if (token.grant || token.scope !== ADMIN_SCOPE || client?.scope !== ADMIN_SCOPE) return 'insufficient-scope'
  const actor = { kind: 'client', id: client.id } as const
  return { store, audit, clock, actor, requestId: request.id, address: request.ip }
}

function recordRefusal(context: AuthContext, request: FastifyRequest, error: BearerError): Promise<void> {
  const status = error === 'insufficient-scope' ? 403 : 401
  const reason = `Administration API: ${error}`
  return auditEvent(context, request, { kind: 'admin', allowed: false, status, reason, anonymous: true })
}

async function answer(
  endpoint: Endpoint,
  request: FastifyRequest,
  { admin, context, app }: Pick<AdminCall, 'admin' | 'context' | 'app'>,
): Promise<unknown> {
  const query = readMembers(endpoint.query ?? NONE, request.query, true)
  if (query instanceof AdminFailure) return query
  const body = readMembers(endpoint.body ?? NONE, request.body, false)
  if (body instanceof AdminFailure) return body
  const params = request.params as Readonly<Record<string, string>>
  if (Object.values(params).some(value => value.includes('\0')))
    return new AdminFailure('invalid', 'the URL is not valid')
  return endpoint.handle({ admin, context, app, params, query, body } as AdminCall)
}

function sendResult(reply: FastifyReply, { status = 200 }: Endpoint, result: unknown): FastifyReply {
  if (result instanceof AdminFailure) return sendFailure(reply, result)
  if (result instanceof StreamedText) return reply.type(result.type).send(Readable.from(result.parts))
  return reply.code(status).send(result)
}

const FAILURES: Readonly<Record<AdminFailureCode, readonly [status: number, error: string]>> = {
  invalid: [400, 'invalid_request'],
  not_found: [404, 'not_found'],
  conflict: [409, 'conflict'],
  reauthenticate: [403, 'insufficient_user_authentication'],
  unavailable: [503, 'temporarily_unavailable'],
}

/** Errors have the format of RFC 6749, 5.2. */
function sendFailure(reply: FastifyReply, failure: AdminFailure): FastifyReply {
  const [status, error] = FAILURES[failure.code]
  if (status === 503) reply.header('retry-after', '2')
  return reply.code(status).send({ error, error_description: failure.sentence })
}
