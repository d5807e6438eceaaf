import type { Transaction } from 'kysely'
import type { AuditRecord } from '../../audit/index.ts'
import { parseReference } from '../../fhir/index.ts'
import type { Schema } from '../../store/index.ts'
import type { AppContext } from '../context.ts'
import type { Session } from './session.ts'

type Event = Pick<AuditRecord, 'kind' | 'status'> &
  Partial<Pick<AuditRecord, 'allowed' | 'method' | 'request' | 'reason' | 'requestId' | 'address'>>

/** Resolves when the response may be sent. An event that records a change belongs in the transaction of that change. */
export function auditSession(
  context: AppContext,
  session: Session | undefined,
  event: Event,
  trx?: Transaction<Schema>,
): Promise<void> {
  const { audit, clock, settings } = context
  const user = session?.fhirUser ? parseReference(session.fhirUser, session.fhirBaseUrl) : undefined
  const record: AuditRecord = {
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
  }
  return trx ? audit.recordIn(trx, record) : audit.record(record)
}
