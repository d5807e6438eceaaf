import type { FastifyInstance, FastifyRequest } from 'fastify'
import { readText } from '../../core/index.ts'
import { isFailure } from '../../fhir/index.ts'
import { parseScopes } from '../../smart/index.ts'
import { sha256 } from '../../store/index.ts'
import { auditEvent, describeRefusal, selectClaims } from '../base/audit.ts'
import { paths } from '../base/paths.ts'
import { Refusal } from '../base/refusal.ts'
import type { Parameters as Form } from '../base/request.ts'
import { forbidCaching, readForm, sendOAuthError } from '../base/request.ts'
import { buildFhirUser } from '../base/user.ts'
import {
  type AccessToken,
  authenticateBearer,
  type BearerError,
  checkAccessToken,
  isBearer,
  sendBearerError,
} from './access-token.ts'
import { authenticateClient } from './clients/authenticate.ts'
import type { AuthContext } from './context.ts'
import { buildContextMembers, findLiveGrant, type Grant, hasScope } from './grants/grant.ts'

/** `POST /oauth2/introspect` (RFC 7662; SMART 2.2, token introspection). */
export function addIntrospectRoutes(app: FastifyInstance, context: AuthContext): void {
  app.post(paths.introspect, { onRequest: forbidCaching }, async (request, reply) => {
    const refuse = async (refusal: Refusal) => {
      await recordIntrospection(context, request, { ...describeRefusal(refusal), anonymous: true })
      return sendOAuthError(request, reply, refusal)
    }
    const form = readForm(request)
    if (isFailure(form)) return refuse(form)
    const visible = await authorizeIntrospection(context, request, form)
    if (isFailure(visible)) return refuse(visible)
    if (typeof visible === 'string') {
      const reason = `The bearer token of the caller: ${visible}`
      await recordIntrospection(context, request, { allowed: false, status: 401, reason, anonymous: true })
      return sendBearerError(reply, visible, 'system/*.rs', 401)
    }
    const token = form.get('token')
    if (token === undefined) return refuse(new Refusal('invalid_request', 'The parameter token is missing.'))
    let check: string | undefined
    const found = await introspect(context, visible, token, why => {
      check = why
      request.log.info({ check }, 'Introspected token is inactive')
    })
    await recordIntrospection(context, request, describeIntrospection(visible, found, check))
    return reply.send(found)
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

function describeIntrospection(
  visible: IntrospectionScope,
  found: Introspection,
  check: string | undefined,
): IntrospectionEvent {
  const { clientId: client } = visible
  if (!found.active) return { status: 200, client, reason: `Inactive: ${check}` }
  const { active, sub, patient, scope, jti, ...rest } = found
  return {
    status: 200,
    client,
    reason: 'Active',
    subject: readText(sub),
    patient: readText(patient),
    by: readText(scope),
    launch: readText(jti)?.split('.')[0],
    details: { claims: { response: selectClaims({ active, sub, patient, jti, ...rest }) } },
  }
}

/** A confidential client may introspect its own tokens, a `system/` read scope the access tokens of every client. */
async function authorizeIntrospection(
  context: AuthContext,
  { headers }: FastifyRequest,
  form: Form,
): Promise<IntrospectionScope | Refusal | BearerError> {
  if (isBearer(headers.authorization)) {
    const bearer = await authenticateBearer(context, headers.authorization)
    if (typeof bearer === 'string') return bearer
    return readsAsSystem(bearer.scope)
      ? { kind: 'any-access-token', clientId: bearer.clientId }
      : 'insufficient-scope'
  }
  const client = await authenticateClient(context, headers.authorization, form)
  if (isFailure(client)) return client
  if (client.authMethod === 'none')
    return new Refusal('invalid_client', 'A public client cannot be authenticated.')
  return { kind: 'own', clientId: client.id }
}

function readsAsSystem(scope: string): boolean {
  return parseScopes(scope).some(
    one => one.kind === 'resource' && one.context === 'system' && one.permissions.has('r'),
  )
}

/** RFC 7662, 2.2. */
export type Introspection =
  | { readonly active: false }
  | ({ readonly active: true } & Readonly<Record<string, unknown>>)

const INACTIVE: Introspection = { active: false }

/**
 * Which tokens the caller may introspect: all of its own, or the access tokens of every client. A resource server cannot
 * introspect refresh tokens.
 */
export type IntrospectionScope =
  | { readonly kind: 'own'; readonly clientId: string }
  | { readonly kind: 'any-access-token'; readonly clientId: string }

/**
 * Introspects an access or refresh token. A token that the caller may not introspect is inactive; only the log has the
 * reason.
 */
export async function introspect(
  context: AuthContext,
  visible: IntrospectionScope,
  token: string,
  onInactive: (check: string) => void,
): Promise<Introspection> {
  const access = await checkAccessToken(context, token)
  if (typeof access === 'string' && visible.kind === 'any-access-token') {
    onInactive(access)
    return INACTIVE
  }
  const found =
    typeof access === 'string'
      ? await describeRefreshToken(context, token)
      : describeAccessToken(context, access)
  if (found.active && visible.kind === 'own' && found.client_id !== visible.clientId) {
    onInactive('client_id, the token belongs to another client')
    return INACTIVE
  }
  if (!found.active) onInactive(`${access}, and it is not an active refresh token`)
  return found
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

async function describeRefreshToken(context: AuthContext, token: string): Promise<Introspection> {
  const { store, clock, settings } = context
  const row = await store.db
    .selectFrom('refresh_token')
    .select(['grant_id', 'created_at', 'expires_at'])
    .where('token_hash', '=', sha256(token))
    .where('used_at', 'is', null)
    .where('expires_at', '>', clock())
    .executeTakeFirst()
  const grant = row && (await findLiveGrant(store.db, context, row.grant_id))
  if (!row || !grant) return INACTIVE
  return {
    active: true,
    iss: settings.issuerUrl,
    sub: grant.user.id,
    client_id: grant.clientId,
    scope: grant.scope,
    iat: Math.floor(row.created_at / 1000),
    exp: Math.floor(row.expires_at / 1000),
    ...describeUser(context, grant, grant.scope),
    ...buildContextMembers(context, grant),
  }
}

function describeUser({ settings }: AuthContext, { fhirUserId }: Grant, scope: string) {
  return hasScope(scope, 'fhirUser') ? { fhirUser: buildFhirUser(fhirUserId, settings.fhirBaseUrl) } : {}
}
