import type { FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import { isFailure, readText } from '../../../core/index.ts'
import type { Schema } from '../../../store/index.ts'
import {
  type AuthEvent,
  auditEvent,
  describeRefusal,
  makeRecord,
  selectClaims,
  type TokenClaims,
  writeRecords,
} from '../../base/audit.ts'
import type { AuthRefusal } from '../../base/refusal.ts'
import { type Parameters, readParameters } from '../../base/request.ts'
import type { AuthContext } from '../context.ts'
import { findGrantForAudit } from '../grants/grant.ts'
import { readExtension, type TokenEvent } from '../hooks.ts'
import type { UnsignedTokens } from './token-response.ts'

/** Records tokens that were issued, with the claims of the access token, or refused. */
export async function auditTokens(
  context: AuthContext,
  request: FastifyRequest,
  result: UnsignedTokens | AuthRefusal,
  trx?: Transaction<Schema>,
): Promise<void> {
  const kind = readTokenEvent(readParameters(request.body))
  if (isFailure(result)) return auditRefusedTokens(context, request, kind, result, trx)
  const { client_id, sub, patient, jti } = result.accessToken
  const { reason, mark } = readExtension(context, result.grant)
  const event: AuthEvent = {
    kind,
    status: 200,
    user: result.grant?.user,
    client: readText(client_id),
    subject: readText(sub),
    patient: readText(patient),
    launch: typeof jti === 'string' && jti.includes('.') ? jti.split('.')[0] : undefined,
    by: result.response.scope,
    reason,
    details: { claims: describeTokens(result), mark },
  }
  return auditEvent(context, request, event, trx)
}

export function readTokenEvent(form: Parameters): TokenEvent {
  return form.get('grant_type') === 'refresh_token' ? 'refresh' : 'token'
}

/** Records the owner of the code or refresh token, even if another client sent it or it had expired. */
async function auditRefusedTokens(
  context: AuthContext,
  request: FastifyRequest,
  kind: TokenEvent,
  refusal: AuthRefusal,
  trx: Transaction<Schema> | undefined,
): Promise<void> {
  const form = readParameters(request.body)
  const sent = { code: form.get('code'), refreshToken: form.get('refresh_token') }
  const grant = await findGrantForAudit(trx ?? context.store.db, sent)
  const { clientId, isAuthenticated: isProven = false } = refusal.known
  const isOfOther = grant?.client !== undefined && clientId !== undefined && grant.client !== clientId
  const explained = isOfOther
    ? refusal.withComparison({
        name: 'client_id' as const,
        sent: clientId,
        origin: 'in the authorization request' as const,
        expected: [grant.client],
      })
    : refusal
  const parties = { ...grant, client: clientId ?? grant?.client, anonymous: grant === undefined && !isProven }
  const refused = makeRecord(context, request, { ...parties, kind, ...describeRefusal(explained) })
  const reason = refusal.known.endedGrant
  // The revocation of the grant has its own record, before the refusal.
  return reason === undefined
    ? writeRecords(context, trx, refused)
    : writeRecords(
        context,
        trx,
        makeRecord(context, request, { ...parties, kind: 'revoke', status: 200, reason }),
        refused,
      )
}

function describeTokens({ accessToken, idToken }: UnsignedTokens): TokenClaims {
  return {
    access_token: selectClaims(accessToken),
    ...(idToken && { id_token: selectClaims(idToken) }),
  }
}
