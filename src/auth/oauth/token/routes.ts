import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { findOwn, isFailure } from '../../../core/index.ts'
import { paths } from '../../base/paths.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import {
  forbidCaching,
  type Parameters,
  readForm,
  readParameters,
  sendOAuthError,
} from '../../base/request.ts'
import { isPatientUser } from '../../base/user.ts'
import { findOwnRecords } from '../../users/own-records.ts'
import { consumeProof, type VerifiedClient, verifyClient } from '../clients/authenticate.ts'
import type { Client } from '../clients/client.ts'
import { answerPreflight, createOriginHook, limitToClientOrigins } from '../clients/origins.ts'
import type { AuthContext } from '../context.ts'
import { readExtension } from '../hooks.ts'
import { auditTokens, readTokenEvent } from './audit.ts'
import { grantClientCredentials } from './client-credentials.ts'
import { exchangeCode } from './exchange-code.ts'
import { refreshTokens } from './refresh.ts'
import type { TokenRequest } from './token-response.ts'
import {
  buildTokens,
  hasUserScope,
  signTokens,
  type TokenGrant,
  type TokenResponse,
  type UnsignedTokens,
} from './token-response.ts'

type GrantHandler<Response> = (context: AuthContext, request: TokenRequest) => Promise<Response | AuthRefusal>

const GRANT_TYPES: Readonly<Record<string, GrantHandler<UnsignedTokens>>> = {
  authorization_code: issueFor(exchangeCode),
  refresh_token: issueFor(refreshTokens),
  client_credentials: grantClientCredentials,
}

function issueFor(redeem: GrantHandler<TokenGrant>): GrantHandler<UnsignedTokens> {
  return async (context, request) => {
    const tokenGrant = await redeem(context, request)
    return isFailure(tokenGrant) ? tokenGrant : buildTokens(context, tokenGrant)
  }
}

/** `POST /oauth2/token` (RFC 6749, 3.2). */
export function addTokenRoutes(app: FastifyInstance, context: AuthContext): void {
  const allowOrigin = createOriginHook(context.store)
  app.options(paths.token, { onRequest: allowOrigin }, answerPreflight)
  app.post(paths.token, { onRequest: [forbidCaching, allowOrigin] }, async (request, reply) => {
    const response = await handleTokenRequest(context, request, reply)
    context.metrics.tokenRequests.add(describeTokenRequest(request, response))
    return isFailure(response) ? sendOAuthError(request, reply, response) : reply.send(response)
  })
}

function describeTokenRequest(
  { body }: FastifyRequest,
  response: TokenResponse | AuthRefusal,
): readonly string[] {
  const grantType = readParameters(body).get('grant_type') ?? ''
  return [
    Object.hasOwn(GRANT_TYPES, grantType) ? grantType : 'other',
    isFailure(response) ? response.error : 'issued',
  ]
}

/** Resolves after the audit record is stored. */
async function handleTokenRequest(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<TokenResponse | AuthRefusal> {
  const tokenRequest = await readRequest(context, request)
  if (isFailure(tokenRequest)) {
    await auditTokens(context, request, tokenRequest)
    return tokenRequest
  }
  const { form, verified } = tokenRequest
  limitToClientOrigins(verified.client, request, reply)
  // Read before the transaction, because a server without a key must not consume anything.
  const key = await context.keys.getSigningKey()
  const issued = await context.store.db.transaction().execute(async trx => {
    const client = await consumeProof(trx, verified)
    const tokens = isFailure(client) ? client : await issueTokens(context, { trx, client, form })
    const known = isFailure(tokens)
      ? tokens.withKnown({ clientId: verified.client.id, isAuthenticated: isVouchedFor(verified.client) })
      : tokens
    await auditTokens(context, request, known, trx)
    return known
  })
  if (isFailure(issued)) return issued
  const tokens = await addUserPatients(context, issued)
  if (!isFailure(tokens)) {
    const response = await signTokens(key, tokens)
    const { changeToken } = readExtension(context, tokens.grant)
    return changeToken
      ? { ...response, access_token: await changeToken(response.access_token, readTokenEvent(form)) }
      : response
  }
  await auditTokens(context, request, tokens.withKnown({ clientId: verified.client.id }))
  return tokens
}

/**
 * Adds the patients of a patient user (PATIENTS-5). They are read after the commit, because a transaction blocks the FHIR
 * server's audit records. An app can repeat a refresh that fails here.
 */
async function addUserPatients(
  context: AuthContext,
  tokens: UnsignedTokens,
): Promise<UnsignedTokens | AuthRefusal> {
  const { grant, accessToken } = tokens
  if (!grant || !isPatientUser(grant.user)) return tokens
  const records = await findOwnRecords(context, grant.user)
  if (isFailure(records)) return refuse('fhir-server-unreachable')
  const patients = records.map(({ patientId }) => patientId)
  if (grant.patientId !== undefined && !patients.includes(grant.patientId))
    return refuse('patient-access-lost')
  return hasUserScope(tokens.response.scope)
    ? { ...tokens, accessToken: { ...accessToken, user_patients: patients } }
    : tokens
}

// The secret of an unapproved client does not prove who runs it.
function isVouchedFor({ authMethod, approved }: Client): boolean {
  return authMethod !== 'none' && approved
}

async function readRequest(
  context: AuthContext,
  request: FastifyRequest,
): Promise<{ readonly form: Parameters; readonly verified: VerifiedClient } | AuthRefusal> {
  const form = readForm(request)
  if (isFailure(form)) return form
  const verified = await verifyClient(context, request.headers.authorization, form)
  return isFailure(verified) ? verified : { form, verified }
}

const issueTokens: GrantHandler<UnsignedTokens> = async (context, request) => {
  const name = request.form.get('grant_type')
  if (name === undefined) return refuse('grant-type-missing')
  const grantType = findOwn(GRANT_TYPES, name)
  return grantType
    ? grantType(context, request)
    : refuse('grant-type-unsupported').withComparison({
        name: 'grant_type',
        sent: name,
        expected: Object.keys(GRANT_TYPES),
        origin: 'required',
      })
}
