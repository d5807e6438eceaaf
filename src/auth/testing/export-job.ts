import type { Insertable } from 'kysely'
import { HOUR_MS } from '../../core/index.ts'
import type { Schema } from '../../store/index.ts'
import type { TestAuthServer } from './test-auth-server.ts'

/** Adds a bulk export of a client, as the FHIR server stores it, whose files nobody has asked for. */
export async function addExportJob(
  auth: TestAuthServer,
  job: Partial<Insertable<Schema['export_job']>> & { readonly id: string; readonly client_id: string },
): Promise<void> {
  const { now } = auth.time
  await auth.store.db
    .insertInto('export_job')
    .values({
      issuer: '',
      level: 'group',
      types: 'Condition Patient',
      started_at: now,
      expires_at: now + HOUR_MS,
      next_poll_at: 0,
      revision: 0,
      order_sealed: 'x',
      ...job,
    })
    .execute()
}
