import { fail, type Result, succeed } from '../failure.ts'
import { type Answer, fetchJson } from '../fetch-json.ts'
import { refreshSession } from '../sessions/refresh-session.ts'
import { renewSession } from '../sessions/renew-session.ts'
import type { Session } from '../sessions/session.ts'
import { openTokens } from '../sessions/tokens.ts'
import type { Visit } from './visit.ts'

/** GET on the session's FHIR server with its bearer token. After a 401 the tokens are renewed once and the request is repeated. */
export async function readFhir(visit: Visit, url: string): Promise<Result<unknown>> {
  const fresh = await refreshSession(visit.context, visit.session)
  if (!fresh.ok) return fresh
  const first = await ask(visit, fresh.value, url)
  if (first.ok || first.failure.kind !== 'token-refused') return first
  const renewed = await renewSession(visit.context, fresh.value)
  return renewed.ok ? ask(visit, renewed.value, url) : renewed
}

async function ask(visit: Visit, session: Session, url: string): Promise<Result<unknown>> {
  const { context, requestId } = visit
  const tokens = openTokens(context.sealer, session)
  if (!tokens) return fail({ kind: 'session-over' })
  const answer = await fetchJson(context.fetch, url, {
    timeoutMs: context.timeoutMs,
    headers: {
      accept: 'application/fhir+json',
      authorization: `Bearer ${tokens.accessToken}`,
      'x-request-id': requestId,
    },
  })
  noteOutage(visit, answer)
  return resultOf(answer)
}

/** Remembers since when the FHIR server is away: a clinician who reads old pages must know. */
function noteOutage({ context, session }: Visit, answer: Answer): void {
  const away = answer.kind !== 'answered' || answer.status >= 500
  if (!away) context.awaySince.delete(session.fhirBaseUrl)
  else if (!context.awaySince.has(session.fhirBaseUrl))
    context.awaySince.set(session.fhirBaseUrl, context.clock())
}

function resultOf(answer: Answer): Result<unknown> {
  if (answer.kind !== 'answered') return fail({ kind: answer.kind, server: 'FHIR server' })
  const { status, json } = answer
  if (status === 200 && json !== undefined) return succeed(json)
  if (status === 401) return fail({ kind: 'token-refused' })
  if (status === 403) return fail({ kind: 'access-refused' })
  if (status === 404 || status === 410) return fail({ kind: 'not-found' })
  if (status === 504) return fail({ kind: 'slow', server: 'FHIR server' })
  if (status >= 500 || status === 429) return fail({ kind: 'away', server: 'FHIR server' })
  return failUnexpected(status === 200 ? 'it is not JSON' : `status ${status}`)
}

export function failUnexpected(problem: string): ReturnType<typeof fail> {
  return fail({ kind: 'unexpected-answer', server: 'FHIR server', problem })
}
