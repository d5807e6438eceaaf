import type { FastifyRequest } from 'fastify'
import type { AuditRecord } from '../audit/index.ts'
import type { Clinician } from './clinician/clinician.ts'
import type { AuthContext } from './context.ts'
import { Refusal, statusOf } from './refusal.ts'
import type { TokenResponse } from './token/token-response.ts'

type Event = Pick<AuditRecord, 'kind' | 'status'> &
  Partial<Pick<AuditRecord, 'allowed' | 'reason' | 'client' | 'subject' | 'patient' | 'launch' | 'by'>> & {
    readonly clinician?: Pick<Clinician, 'id' | 'fhirUserId'> | undefined
  }

/** Keeps what happened at the auth server; resolves when it may be answered (contract 5.8). */
export function auditEvent(context: AuthContext, request: FastifyRequest, event: Event): Promise<void> {
  const { audit, clock } = context
  const { clinician, ...told } = event
  return audit.record({
    at: clock(),
    server: 'auth',
    allowed: true,
    ...(clinician && { subject: clinician.id, fhirUser: practitionerOf(clinician) }),
    ...told,
    requestId: request.id,
    address: request.ip,
  })
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

/** Tokens that were issued or refused. What they say is read from the access token that was just made. */
export function auditTokens(
  context: AuthContext,
  request: FastifyRequest,
  grantType: string | undefined,
  answer: TokenResponse | Refusal,
): Promise<void> {
  const kind = grantType === 'refresh_token' ? 'refresh' : 'token'
  if (answer instanceof Refusal) return auditEvent(context, request, { kind, ...refusalEvent(answer) })
  const { client_id, sub, patient, jti } = claimsOf(answer.access_token)
  return auditEvent(context, request, {
    kind,
    status: 200,
    client: client_id,
    subject: sub,
    patient,
    launch: jti?.includes('.') ? jti.split('.')[0] : undefined,
    by: answer.scope,
  })
}

function claimsOf(token: string): Readonly<Partial<Record<'client_id' | 'sub' | 'patient' | 'jti', string>>> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
}
