import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import { type TSchema, Type } from 'typebox'
import { fail, findOwn, isFailure } from '../../../core/index.ts'
import {
  type Api,
  addEndpoints,
  type InvalidMembers,
  Members,
  NONE,
  readMembers as readChecked,
  StreamedText,
} from '../../../endpoint/index.ts'
import { lockRows, type Schema } from '../../../store/index.ts'
import { auditEvent } from '../../base/audit.ts'
import { type Fault, makeFault } from '../../base/fault.ts'
import { paths } from '../../base/paths.ts'
import { forbidCaching } from '../../base/request.ts'
import {
  type AccessToken,
  authenticateBearer,
  type BearerFailure,
  findIssuedFor,
  sendBearerError,
} from '../../oauth/access-token.ts'
import { type Client, findClient } from '../../oauth/clients/client.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { ADMIN_ERRORS } from '../../words/administration.ts'
import { ADMIN_READ_SCOPE, ADMIN_SCOPE } from '../../words/program-scopes.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  describeAttempt,
  failAdmin,
  isAllowed,
  makeAdmin,
} from '../base/action.ts'
import type { AdminCall, AdminEndpoint } from './endpoint.ts'

const AUDITOR = { admin: false, auditor: true }

/** What a program may do, by its scope. */
const ROLES: Readonly<Record<string, typeof AUDITOR>> = {
  [ADMIN_SCOPE]: { admin: true, auditor: false },
  [ADMIN_READ_SCOPE]: AUDITOR,
}

/** The least scope with which an endpoint can be used. */
function getScope(endpoint: AdminEndpoint): string {
  return isAllowed(AUDITOR, endpoint.operation) ? ADMIN_READ_SCOPE : ADMIN_SCOPE
}

/** `/admin/api`: the administration as JSON. This function alone decides who may use it (ADMIN-6, ADMIN-31). */
export function addAdminApi(
  app: FastifyInstance,
  context: AuthContext,
  endpoints: readonly AdminEndpoint[],
): void {
  const admins = new WeakMap<FastifyRequest, Admin>()
  addEndpoints(app, describeAdminApi(context.settings.issuerUrl, endpoints), endpoint => {
    const authenticate = async (request: FastifyRequest, reply: FastifyReply) => {
      const admin = await findAdmin(context, request, endpoint)
      if (!isFailure(admin)) return void admins.set(request, admin)
      await recordRefusal(context, request, endpoint, admin)
      return sendBearerError(reply, admin.reason, getScope(endpoint))
    }
    return {
      exposeHeadRoute: false,
      // Before the body is read, and again after it, because access may end while it arrives.
      onRequest: [forbidCaching, authenticate],
      preHandler: async (request, reply) =>
        request.body === undefined ? undefined : authenticate(request, reply),
      async handler(request, reply) {
        const admin = admins.get(request)
        if (!admin) throw new Error('Cannot answer without an administrator')
        const result = await answer(endpoint, request, { admin, context, app })
        return sendResult(reply, endpoint, result)
      },
    }
  })
}

interface Refused extends BearerFailure {
  /** Whose token lacks the scope. */
  readonly client?: string
}

/** Only the token of a client that still has the scope, never a cookie, which a page of another site could use. */
async function findAdmin(
  context: AuthContext,
  request: FastifyRequest,
  endpoint: AdminEndpoint,
): Promise<Admin | Refused> {
  const { store, settings } = context
  const token = await authenticateBearer(context, request.headers.authorization, settings.issuerUrl)
  if (isFailure(token)) return token
  const client = await findProgram(store.db, context, token, endpoint.operation)
  if (!client) return fail({ reason: 'insufficient-scope', client: token.clientId })
  const { id, isForLoopback } = client
  const mayAct = async (db: Kysely<Schema>, operation: AdminOperation) => {
    await lockRows(db, db.selectFrom('client').select('name').where('client_id', '=', id)).execute()
    if (isFailure(await findIssuedFor(db, context, token))) return false
    return (await findProgram(db, context, token, operation)) !== undefined
  }
  return makeAdmin(context, request, { actor: { kind: 'client', id }, mayAct, isForLoopback })
}

/** The client of a token, if both have a scope that permits the operation. */
async function findProgram(
  db: Kysely<Schema>,
  context: AuthContext,
  { clientId, grant, scope }: AccessToken,
  operation: AdminOperation | undefined,
): Promise<Client | undefined> {
  const client = await findClient(db, context, clientId)
  const role = findOwn(ROLES, scope)
  return !grant && client?.scope === scope && role && isAllowed(role, operation) ? client : undefined
}

async function recordRefusal(
  context: AuthContext,
  request: FastifyRequest,
  { operation }: AdminEndpoint,
  { reason, client }: Refused,
): Promise<void> {
  const status = reason === 'insufficient-scope' ? 403 : 401
  const refused = {
    kind: 'admin',
    allowed: false,
    status,
    reason: `Administration API: ${reason}`,
  } as const
  if (client === undefined) return auditEvent(context, request, { ...refused, anonymous: true })
  const attempted = await describeAttempt(context.store, request, operation)
  const event = { ...refused, client, subject: client, method: 'admin-api', ...attempted }
  return auditEvent(context, request, event)
}

async function answer(
  endpoint: AdminEndpoint,
  request: FastifyRequest,
  { admin, context, app }: Pick<AdminCall, 'admin' | 'context' | 'app'>,
): Promise<unknown> {
  const query = readMembers(endpoint.query ?? NONE, request.query, { isText: true })
  if (isFailure(query)) return query
  const body = readMembers(endpoint.body ?? NONE, request.body, { isText: false })
  if (isFailure(body)) return body
  const params = request.params as Readonly<Record<string, string>>
  if (Object.values(params).some(value => value.includes('\0'))) return failAdmin('url-malformed')
  return endpoint.handle({ admin, context, app, params, query, body } as AdminCall)
}

function sendResult(reply: FastifyReply, { status = 200 }: AdminEndpoint, result: unknown): FastifyReply {
  if (isFailure(result)) return sendFailure(reply, result)
  if (result instanceof StreamedText) return reply.type(result.type).send(Readable.from(result.parts))
  return reply.code(status).send(result)
}

/** Errors have the format of RFC 6749, 5.2. */
function sendFailure(reply: FastifyReply, failure: AdminFailure): FastifyReply {
  const { status, error } = ADMIN_ERRORS[failure.code]
  if (status === 503) reply.header('retry-after', '2')
  return reply.code(status).send({ error, error_description: failure.sentence })
}

const ErrorBody = Members({ error: Type.String(), error_description: Type.String() })

const ERRORS = {
  400: 'A member or a parameter is unknown or not valid (`invalid_request`).',
  401: 'There is no token, or it is not valid (`invalid_token`).',
  403: 'The token does not have the scope (`insufficient_scope`).',
  404: 'There is no such object (`not_found`).',
  409: 'The state does not allow it (`conflict`).',
  503: 'A component is unavailable (`temporarily_unavailable`). Try again.',
} as const

export function describeAdminApi(issuerUrl: string, endpoints: readonly AdminEndpoint[]): Api<AdminEndpoint> {
  return {
    title: 'Sallyport administration API',
    description: `For clients that are registered with \`client add --admin\`, or, to read only, with \`client add --admin-read\`. Their token for \`${ADMIN_SCOPE}\` or \`${ADMIN_READ_SCOPE}\` is valid for five minutes. Every action writes an audit record.`,
    url: issuerUrl,
    prefix: paths.adminApi,
    endpoints,
    securitySchemes: {
      administrator: {
        type: 'oauth2',
        flows: {
          clientCredentials: {
            tokenUrl: `${issuerUrl}${paths.token}`,
            scopes: {
              [ADMIN_SCOPE]: 'Administer this server',
              [ADMIN_READ_SCOPE]: 'See its administration, and change nothing',
            },
          },
        },
      },
    },
    error: { name: 'Error', schema: ErrorBody, texts: ERRORS },
    describe: endpoint => ({
      operationId: `${endpoint.method.toLowerCase()}${endpoint.path.replace(/[/:-]+(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
      // Either of them.
      members: {
        security: [...new Set([getScope(endpoint), ADMIN_SCOPE])].map(scope => ({ administrator: [scope] })),
      },
    }),
  }
}

/** The members of a query or a body, or every fault in them. */
export function readMembers(schema: TSchema, sent: unknown, how: { readonly isText: boolean }): unknown {
  // PostgreSQL does not accept it.
  if (JSON.stringify(sent ?? {}).includes('\\u0000')) return failAdmin('member-malformed')
  const read = readChecked(schema, sent, how)
  return isFailure<unknown, InvalidMembers>(read)
    ? failAdmin('members-invalid', { faults: read.faults.map(toFault) })
    : read
}

function toFault({ kind, name, text: expected }: InvalidMembers['faults'][number]): Fault {
  if (kind === 'unknown') return makeFault('member-not-known', { name })
  if (kind === 'missing') return makeFault('member-missing', { name })
  const fault = makeFault('not-as-expected', { expected })
  return name === '' ? fault : makeFault('member-invalid', { name, fault })
}
