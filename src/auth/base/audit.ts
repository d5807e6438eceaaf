import type { FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import type { AuditRecord } from '../../audit/index.ts'
import type { FactsArgument, StoredFacts } from '../../core/index.ts'
import type { Claims } from '../../jwt/index.ts'
import type { Schema } from '../../store/index.ts'
import type { ComparedValue } from '../words/reason.ts'
import { describePage, type FactsOf, type PageReason } from '../words/reasons.ts'
import type { BaseContext } from './context.ts'
import { LIMITS } from './limits.ts'
import { type AuthRefusal, getStatus } from './refusal.ts'
import { type AuthUser, formatFhirUser } from './user.ts'

export type AuthEvent = Pick<AuditRecord, 'kind' | 'status'> &
  Partial<
    Pick<
      AuditRecord,
      | 'allowed'
      | 'interaction'
      | 'anonymous'
      | 'method'
      | 'request'
      | 'type'
      | 'id'
      | 'reason'
      | 'client'
      | 'subject'
      | 'patient'
      | 'launch'
      | 'by'
    >
  > & {
    readonly user?: Pick<AuthUser, 'id' | 'fhirUserId'> | undefined
    readonly details?: EventDetails | undefined
  }

/**
 * Records an event of the auth server. Send the response after it resolves. Pass the transaction of a change, so that
 * the change and its record are stored together or not at all.
 */
export function auditEvent(
  context: BaseContext,
  request: FastifyRequest,
  event: AuthEvent,
  trx?: Transaction<Schema>,
): Promise<void> {
  if (event.kind === 'launch') context.metrics.launches.add([describeLaunch(event)])
  return writeRecords(context, trx, makeRecord(context, request, event))
}

function describeLaunch({ status }: AuthEvent): string {
  if (status < 400) return 'issued'
  return status < 500 ? 'refused' : 'failed'
}

export function writeRecords(
  { audit }: BaseContext,
  trx: Transaction<Schema> | undefined,
  ...records: readonly AuditRecord[]
): Promise<void> {
  return trx ? audit.recordIn(trx, ...records) : audit.record(...records)
}

export function makeRecord({ clock }: BaseContext, request: FastifyRequest, event: AuthEvent): AuditRecord {
  const { user, ...details } = event
  return {
    at: clock(),
    server: 'auth',
    allowed: true,
    ...(user && { subject: user.id, fhirUser: formatFhirUser(user.fhirUserId) || undefined }),
    ...details,
    requestId: request.id,
    address: request.ip,
  }
}

/** Describes a refusal with the text that the client gets, and with details that it does not get. */
export function describeRefusal(
  refusal: AuthRefusal,
): Pick<AuthEvent, 'allowed' | 'status' | 'reason' | 'details'> {
  return {
    allowed: false,
    status: refusal.returnTo ? 302 : getStatus(refusal.error),
    reason: `${refusal.error}: ${refusal.description}`,
    details: describeRefusalDetails(refusal),
  }
}

/** Describes a request that was refused for a reason that is not one of OAuth. */
export function describeRefused<Reason extends PageReason>(
  reason: Reason,
  ...facts: FactsArgument<FactsOf<Reason>>
): {
  readonly allowed: false
  readonly status: ReturnType<typeof describePage<Reason>>['status']
  readonly reason: string
  readonly details: EventDetails
} {
  const { status, sentence, facts: found } = describePage(reason, ...facts)
  return { allowed: false, status, reason: sentence, details: { reason, facts: limitFacts(found) } }
}

export type TokenClaims = Readonly<Record<string, Claims>>

export type NamedEvent =
  | 'token-revoked'
  | 'password-changed'
  | 'proposal-signed'
  | 'proposal-rejected'
  | 'proposal-expired'

/** The details of an OAuth event, for the activity page (ACTIVITY-3). They contain no secret and no name. */
export interface EventDetails {
  /** The reason of a refusal, by its name in `words`, with its facts. Records of earlier releases have none. */
  readonly reason?: string | undefined
  readonly facts?: StoredFacts | undefined
  /** What an event is, if its kind does not say it. Records of earlier releases say it in their text only. */
  readonly event?: NamedEvent | undefined
  /** Where a launch of an extension started, and what the extension notes about an event. */
  readonly origin?: string | undefined
  readonly mark?: string | undefined
  /** The exact reason of a refusal, which the client does not get. */
  readonly detail?: string | undefined
  readonly compared?: readonly ComparedValue[] | undefined
  /** The requested scopes that the app could get, if it got fewer than it requested. */
  readonly grantable?: string | undefined
  /** Those, or parts of them, that the user did not allow. */
  readonly declined?: string | undefined
  /** The client that reported a FHIR request (AUDIT-24). */
  readonly reportedBy?: string | undefined
  /** The tool by which an assistant made a FHIR request. */
  readonly tool?: string | undefined
  /** What a token that was refused says about itself, which nobody has verified. */
  readonly claimed?: Readonly<Partial<Record<'iss' | 'aud' | 'client_id' | 'jti', string>>> | undefined
  /** By the name of the token or response. The scopes are in the record. */
  readonly claims?: TokenClaims | undefined
  /** The grants that a sign-out ended, and those that a change of the password left. */
  readonly ended?: readonly string[] | undefined
  readonly kept?: readonly string[] | undefined
}

function describeRefusalDetails({ reason, facts, detail, compared }: AuthRefusal): EventDetails {
  return {
    reason,
    facts: limitFacts(facts),
    detail,
    ...(compared.length > 0 && { compared: limitComparisons(compared) }),
  }
}

function limitFacts(facts: StoredFacts): StoredFacts | undefined {
  const limited = Object.entries(facts).map(([name, fact]) => [name, limitFact(fact)])
  return limited.length === 0 ? undefined : Object.fromEntries(limited)
}

/** Of an inner reason the name and the facts, without its text. */
function limitFact(fact: StoredFacts[string]): unknown {
  if (typeof fact === 'string') return cut(hideSecrets(fact))
  if (typeof fact === 'number') return fact
  if (!('reason' in fact)) return fact.slice(0, LIMITS.detailValues).map(limitFact)
  return { reason: fact.reason, facts: limitFacts(fact.facts) ?? {} }
}

/** Tokens, codes and secrets have at least 43 characters of these. An app may send one in the wrong parameter. */
const LIKE_A_SECRET = /[\w~+=-]{40,}/g

export function limitComparisons(compared: readonly ComparedValue[]): readonly ComparedValue[] {
  return compared.map(({ name, sent, expected, origin }) => ({
    name,
    origin,
    sent: sent === undefined ? undefined : cut(hideSecrets(sent)),
    expected: expected.slice(0, LIMITS.detailValues).map(cut),
  }))
}

function hideSecrets(sent: string): string {
  return (IS_URL.test(sent) ? hideQueryValues(sent) : sent).replace(LIKE_A_SECRET, '…')
}

const IS_URL = /^[a-z][\w+.-]*:/i

/** A URL that is not registered may contain anything. No name contains `?`, so that many of them take no longer. */
function hideQueryValues(url: string): string {
  return url
    .replace(/\/\/[^/?#]*@/, '//…@')
    .replace(/#.*/s, '#…')
    .replace(/([?&][^=&?#]*=)[^&#]+/g, '$1…')
}

function cut(text: string): string {
  return text.length <= LIMITS.detailCharacters ? text : `${text.slice(0, LIMITS.detailCharacters)}…`
}

/** The name may be that of a patient; the nonce belongs to the app. */
export function selectClaims({ scope, name, nonce, ...claims }: Claims): Claims {
  return Object.fromEntries(
    Object.entries(claims).map(([claim, value]) => [claim, typeof value === 'string' ? cut(value) : value]),
  )
}

export function readDetails(text: string | null): EventDetails {
  return text === null ? {} : JSON.parse(text)
}
