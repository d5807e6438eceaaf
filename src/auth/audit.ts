import type { FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import type { AuditRecord } from '../audit/index.ts'
import { decodeJwt } from '../jwt/index.ts'
import type { Schema } from '../store/index.ts'
import type { Clinician } from './clinician/clinician.ts'
import type { AuthContext } from './context.ts'
import type { Grant } from './grant/grant.ts'
import { grantBehind } from './grant/grant-behind.ts'
import { readParameters } from './parameters.ts'
import { Refusal, statusOf } from './refusal.ts'
import type { TokenResponse } from './token/token-response.ts'

type Event = Pick<AuditRecord, 'kind' | 'status'> &
  Partial<
    Pick<AuditRecord, 'allowed' | 'anonymous' | 'reason' | 'client' | 'subject' | 'patient' | 'launch' | 'by'>
  > & {
    readonly clinician?: Pick<Clinician, 'id' | 'fhirUserId'> | undefined
  }

/**
 * Records an event of the auth server; resolves when the response may go out. The event of a change belongs in the
 * transaction of that change: both are kept, or neither.
 */
export function auditEvent(
  context: AuthContext,
  request: FastifyRequest,
  event: Event,
  trx?: Transaction<Schema>,
): Promise<void> {
  return keep(context, trx, recordOf(context, request, event))
}

function keep(
  { audit }: AuthContext,
  trx: Transaction<Schema> | undefined,
  ...records: readonly AuditRecord[]
): Promise<void> {
  return trx ? audit.recordIn(trx, ...records) : audit.record(...records)
}

function recordOf({ clock }: AuthContext, request: FastifyRequest, event: Event): AuditRecord {
  const { clinician, ...told } = event
  return {
    at: clock(),
    server: 'auth',
    allowed: true,
    ...(clinician && { subject: clinician.id, fhirUser: practitionerOf(clinician) }),
    ...told,
    requestId: request.id,
    address: request.ip,
  }
}

function practitionerOf({ fhirUserId }: Pick<Clinician, 'fhirUserId'>): string {
  return `Practitioner/${fhirUserId.replace(/^Practitioner\//, '')}`
}

/** A refusal in the words that its client is told, and nothing else of the request. */
export function refusalEvent(refusal: Refusal): Pick<Event, 'allowed' | 'status' | 'reason'> {
  return {
    allowed: false,
    status: refusal.returnTo ? 302 : statusOf(refusal.code),
    reason: `${refusal.code}: ${refusal.description}`,
  }
}

/** What was bought, and of which grant, where there is one. */
export interface Sold {
  readonly response: TokenResponse
  readonly grant?: Grant
}

/** Tokens that were issued or refused. What they say is read from the access token that was just made. */
export async function auditTokens(
  context: AuthContext,
  request: FastifyRequest,
  answer: Sold | Refusal,
  trx?: Transaction<Schema>,
): Promise<void> {
  const kind = readParameters(request.body).get('grant_type') === 'refresh_token' ? 'refresh' : 'token'
  if (answer instanceof Refusal) return auditRefusedTokens(context, request, kind, answer, trx)
  const { client_id, sub, patient, jti } = decodeJwt(answer.response.access_token)?.claims ?? {}
  const event: Event = {
    ...{ kind, status: 200, clinician: answer.grant?.clinician },
    ...{ client: readText(client_id), subject: readText(sub), patient: readText(patient) },
    launch: typeof jti === 'string' && jti.includes('.') ? jti.split('.')[0] : undefined,
    by: answer.response.scope,
  }
  return auditEvent(context, request, event, trx)
}

/** Whose code or refresh token it was is told also where another client sent it, or came too late. */
async function auditRefusedTokens(
  context: AuthContext,
  request: FastifyRequest,
  kind: 'token' | 'refresh',
  refusal: Refusal,
  trx: Transaction<Schema> | undefined,
): Promise<void> {
  const form = readParameters(request.body)
  const sent = { code: form.get('code'), refreshToken: form.get('refresh_token') }
  const behind = await grantBehind(trx ?? context.store.db, sent)
  const { clientId, isProven = false } = refusal.known
  const of = { ...behind, client: clientId, anonymous: behind === undefined && !isProven }
  const refused = recordOf(context, request, { ...of, kind, ...refusalEvent(refusal) })
  const reason = refusal.known.endedGrant
  // The end of the grant came first, and was no refusal: it has a record of its own.
  return reason === undefined
    ? keep(context, trx, refused)
    : keep(context, trx, recordOf(context, request, { ...of, kind: 'revoke', status: 200, reason }), refused)
}

function readText(claim: unknown): string | undefined {
  return typeof claim === 'string' ? claim : undefined
}
