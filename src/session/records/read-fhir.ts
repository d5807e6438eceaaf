import type { AppContext } from '../context.ts'
import { fail, type Result, succeed } from '../failure.ts'
import { type FetchResult, fetchJson } from '../fetch-json.ts'
import { refreshSession, renewSession } from '../sessions/renew-session.ts'
import type { Session } from '../sessions/session.ts'
import { openTokens } from '../sessions/tokens.ts'

export interface SessionRequest {
  readonly context: AppContext
  readonly session: Session
  /** Sent to the FHIR server, so that its log lines can be correlated. */
  readonly requestId: string
}

/**
 * A server that does not support `patient` returns records of every patient. Resources that reference another
 * patient are dropped, even if the reference is an absolute URL with another host name.
 */
export function isOfPatient(resource: object, { patientId }: Pick<Session, 'patientId'>): boolean {
  const subject: unknown =
    'subject' in resource ? resource.subject : 'patient' in resource ? resource.patient : undefined
  if (typeof subject !== 'object' || subject === null || !('reference' in subject)) return false
  const [, id] =
    /(?:^|\/)Patient\/([A-Za-z0-9.-]{1,64})(?:\/_history\/[^/]+)?$/.exec(String(subject.reference)) ?? []
  return id === patientId
}

/** After a 401, the tokens are renewed once and the request is repeated. */
export async function readFhir(sessionRequest: SessionRequest, url: string): Promise<Result<unknown>> {
  const fresh = await refreshSession(sessionRequest.context, sessionRequest.session)
  if (!fresh.ok) return fresh
  const first = await ask(sessionRequest, fresh.value, url)
  if (first.ok || first.failure.kind !== 'token-refused') return first
  const renewed = await renewSession(sessionRequest.context, fresh.value)
  return renewed.ok ? ask(sessionRequest, renewed.value, url) : renewed
}

async function ask(sessionRequest: SessionRequest, session: Session, url: string): Promise<Result<unknown>> {
  const { context, requestId } = sessionRequest
  const tokens = openTokens(context.sealer, session)
  if (!tokens) return fail({ kind: 'session-ended' })
  const answer = await fetchJson(context.fetch, url, {
    timeoutMs: context.timeoutMs,
    headers: {
      accept: 'application/fhir+json',
      authorization: `Bearer ${tokens.accessToken}`,
      'x-request-id': requestId,
    },
  })
  noteOutage(sessionRequest, answer)
  return toResult(answer)
}

/** Remembers the start of an outage: a clinician who reads an old page must know. */
function noteOutage({ context, session }: SessionRequest, answer: FetchResult): void {
  const away = answer.kind !== 'answered' || answer.status >= 500
  if (!away) context.unreachableSince.delete(session.fhirBaseUrl)
  else if (!context.unreachableSince.has(session.fhirBaseUrl))
    context.unreachableSince.set(session.fhirBaseUrl, context.clock())
}

function toResult(answer: FetchResult): Result<unknown> {
  if (answer.kind !== 'answered') return fail({ kind: answer.kind, server: 'FHIR server' })
  const { status, json } = answer
  if (status === 200 && json !== undefined) return succeed(json)
  if (status === 401) return fail({ kind: 'token-refused' })
  if (status === 403) return fail({ kind: 'access-refused' })
  if (status === 404 || status === 410) return fail({ kind: 'not-found' })
  if (status === 504) return fail({ kind: 'slow', server: 'FHIR server' })
  if (status >= 500 || status === 429) return fail({ kind: 'unreachable', server: 'FHIR server' })
  return failUnexpected(status === 200 ? 'it is not JSON' : `status ${status}`)
}

export function failUnexpected(problem: string): ReturnType<typeof fail> {
  return fail({ kind: 'unexpected-response', server: 'FHIR server', problem })
}
