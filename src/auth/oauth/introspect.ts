import type { FastifyInstance, FastifyRequest } from 'fastify'
import { fail, isFailure, readText } from '../../core/index.ts'
import type { Claims } from '../../jwt/index.ts'
import { parseScopes } from '../../smart/index.ts'
import { sha256 } from '../../store/index.ts'
import { auditEvent, describeRefusal, describeRefused, selectClaims } from '../base/audit.ts'
import { type Fault, makeFault } from '../base/fault.ts'
import { paths } from '../base/paths.ts'
import { type AuthRefusal, refuse } from '../base/refusal.ts'
import type { Parameters as Form } from '../base/request.ts'
import { forbidCaching, readForm, sendOAuthError } from '../base/request.ts'
import { buildFhirUser } from '../base/user.ts'
import {
  type AccessToken,
  authenticateBearer,
  type BearerFailure,
  checkAccessToken,
  isBearer,
  sendBearerError,
} from './access-token.ts'
import { listResources } from './agents/resource.ts'
import { authenticateClient } from './clients/authenticate.ts'
import type { AuthContext } from './context.ts'
import { buildContextMembers, findLiveGrant, hasScope, type UserGrant } from './grants/grant.ts'

/** `POST /oauth2/introspect` (RFC 7662; SMART 2.2, token introspection). */
export function addIntrospectRoutes(app: FastifyInstance, context: AuthContext): void {
  app.post(paths.introspect, { onRequest: forbidCaching }, async (request, reply) => {
    const record = (event: IntrospectionEvent) => recordIntrospection(context, request, event)
    const sendRefusal = async (refusal: AuthRefusal) => {
      await record({ ...describeRefusal(refusal), anonymous: true })
      return sendOAuthError(request, reply, refusal)
    }
    const form = readForm(request)
    if (isFailure(form)) return sendRefusal(form)
    const answer = async (caller: Caller) => {
      const token = form.get('token')
      if (token === undefined) return sendRefusal(refuse('parameter-missing', { parameter: 'token' }))
      const found = await introspect(context, caller, token)
      if (isFailure(found)) request.log.info({ check: found.text }, 'Introspected token is inactive')
      await record({ status: 200, client: caller.clientId, ...describeIntrospection(found) })
      return reply.send(isFailure(found) ? { active: false } : found)
    }
    const { authorization } = request.headers
    if (!isBearer(authorization)) {
      const owner = await authenticateOwner(context, authorization, form)
      return isFailure(owner) ? sendRefusal(owner) : answer(owner)
    }
    const server = await authenticateResourceServer(context, authorization)
    if (!isFailure(server)) return answer(server)
    await record({
      ...describeRefused('introspection-token-refused', { error: server.reason }),
      anonymous: true,
    })
    return sendBearerError(reply, server.reason, 'system/*.rs', 401)
  })
}

type IntrospectionEvent = Omit<Parameters<typeof auditEvent>[2], 'kind'>

/** Only for developers: a resource server may introspect every token that it gets, and waits for the response. */
async function recordIntrospection(
  context: AuthContext,
  request: FastifyRequest,
  event: IntrospectionEvent,
): Promise<void> {
  if (context.settings.developerTools) await auditEvent(context, request, { ...event, kind: 'introspect' })
}

function describeIntrospection(found: Introspection | Fault) {
  if (isFailure(found)) return { reason: `Inactive: ${found.text}` }
  const { active, sub, patient, scope, jti, ...rest } = found
  return {
    reason: 'Active',
    subject: readText(sub),
    patient: readText(patient),
    by: readText(scope),
    launch: readText(jti)?.split('.')[0],
    details: { claims: { response: selectClaims({ active, sub, patient, jti, ...rest }) } },
  }
}

/** A caller may introspect its own tokens, or as a resource server the access tokens of every client. */
interface Caller {
  readonly clientId: string
  readonly isResourceServer: boolean
}

/** A resource server has a `system/` read scope. */
async function authenticateResourceServer(
  context: AuthContext,
  authorization: string | undefined,
): Promise<Caller | BearerFailure> {
  const bearer = await authenticateBearer(context, authorization)
  if (isFailure(bearer)) return bearer
  return readsAsSystem(bearer.scope)
    ? { clientId: bearer.clientId, isResourceServer: true }
    : fail({ reason: 'insufficient-scope' })
}

async function authenticateOwner(
  context: AuthContext,
  authorization: string | undefined,
  form: Form,
): Promise<Caller | AuthRefusal> {
  const client = await authenticateClient(context, authorization, form)
  if (isFailure(client)) return client
  return client.authMethod === 'none'
    ? refuse('public-client-not-authenticated')
    : { clientId: client.id, isResourceServer: false }
}

function readsAsSystem(scope: string): boolean {
  return parseScopes(scope).some(
    one => one.kind === 'resource' && one.context === 'system' && one.permissions.has('r'),
  )
}

/** An active token (RFC 7662, 2.2). */
type Introspection = { readonly active: true } & Claims

/** A token that the caller may not introspect is inactive; only the log has the reason. */
async function introspect(
  context: AuthContext,
  { clientId, isResourceServer }: Caller,
  token: string,
): Promise<Introspection | Fault> {
  const access = await checkAccessToken(context, token, ...listResources(context.settings))
  if (isResourceServer) return isFailure(access) ? access : describeAccessToken(context, access)
  const found = isFailure(access)
    ? ((await describeRefreshToken(context, token)) ??
      (access.reason === 'token-not-ours' ? makeFault('token-unknown') : access))
    : describeAccessToken(context, access)
  if (isFailure(found)) return found
  return found.client_id === clientId ? found : makeFault('token-of-another-client')
}

function describeAccessToken(context: AuthContext, { claims, grant, expiresAt }: AccessToken): Introspection {
  const { iss, sub, aud, client_id, scope, jti, iat } = claims
  return {
    active: true,
    token_type: 'Bearer',
    iss,
    sub,
    aud,
    client_id,
    scope,
    jti,
    iat,
    exp: expiresAt,
    ...(grant
      ? { ...describeUser(context, grant, String(scope)), ...buildContextMembers(context, grant) }
      : {}),
  }
}

async function describeRefreshToken(context: AuthContext, token: string): Promise<Introspection | undefined> {
  const { store, clock, settings } = context
  const row = await store.db
    .selectFrom('refresh_token')
    .select(['grant_id', 'created_at', 'expires_at'])
    .where('token_hash', '=', sha256(token))
    .where('used_at', 'is', null)
    .where('expires_at', '>', clock())
    .executeTakeFirst()
  const grant = row && (await findLiveGrant(store.db, context, row.grant_id))
  if (!row || !grant) return undefined
  return {
    active: true,
    iss: settings.issuerUrl,
    sub: grant.user.id,
    client_id: grant.clientId,
    scope: grant.scope,
    iat: Math.floor(row.created_at / 1000),
    exp: Math.floor(Math.min(row.expires_at, grant.endsAt ?? row.expires_at) / 1000),
    ...describeUser(context, grant, grant.scope),
    ...buildContextMembers(context, grant),
  }
}

/** Who the user is, and how and when the user authenticated (RFC 9470, 6.2). */
function describeUser({ settings }: AuthContext, grant: UserGrant, scope: string) {
  const { fhirUserId, authTime, acr, amr } = grant
  return {
    auth_time: Math.floor(authTime / 1000),
    ...(acr !== undefined && { acr }),
    ...(amr !== undefined && { amr }),
    ...(hasScope(scope, 'fhirUser') && { fhirUser: buildFhirUser(fhirUserId, settings.fhirBaseUrl) }),
  }
}
