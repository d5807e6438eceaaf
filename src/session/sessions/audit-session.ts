import type { AuditRecord } from '../../audit/index.ts'
import { parseReference } from '../../fhir/index.ts'
import type { AppContext } from '../context.ts'
import type { Session } from './session.ts'

/** What is told of an event of a session besides the session itself. */
type Event = Pick<AuditRecord, 'kind' | 'status'> &
  Partial<Pick<AuditRecord, 'allowed' | 'method' | 'request' | 'reason' | 'requestId' | 'address'>>

/** Keeps an event of a session; resolves when it may be answered (contract 5.8). */
export function auditSession(context: AppContext, session: Session | undefined, event: Event): Promise<void> {
  const { audit, clock, settings } = context
  const user = session?.fhirUser ? parseReference(session.fhirUser, session.fhirBaseUrl) : undefined
  return audit.record({
    at: clock(),
    server: 'app',
    allowed: true,
    client: settings.app.clientId,
    anonymous: session === undefined,
    ...(session && {
      patient: session.patientId,
      subject: session.subject ?? undefined,
      fhirUser: user && `${user.type}/${user.id}`,
      launch: session.launchId ?? undefined,
    }),
    ...event,
  })
}
