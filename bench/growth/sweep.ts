/** The removal of expired rows: a sweep that finds nothing, and one that removes 1,000 sessions, among all others. */
import { join } from 'node:path'
import { sql } from 'kysely'
import { openStore, type Store, sweep } from '../../src/store/index.ts'
import type { Subject } from './measure.ts'

const NOW = Date.UTC(2026, 0, 1)
const HOUR = 3_600_000
const EXPIRED = 1000

export const subject: Subject = {
  size: 1_000_000,
  limit: 2,
  async open(size, folder) {
    const store = await openStore(`sqlite:${join(folder, `sweep-${size}.db`)}`)
    await fill(store, size)
    let from = size
    return {
      requests: {
        'nothing has expired': { send: () => sweep(store, NOW) },
        '1,000 sessions have expired': {
          async send() {
            await addSessions(store, from, EXPIRED, NOW - HOUR)
            from += EXPIRED
            await sweep(store, NOW)
          },
        },
      },
      close: () => store.close(),
    }
  },
}

async function fill(store: Store, size: number): Promise<void> {
  if (await store.db.selectFrom('app_session').select('id_hash').limit(1).executeTakeFirst()) return
  await addSessions(store, 0, size, NOW + HOUR)
}

async function addSessions({ db }: Store, from: number, count: number, expiresAt: number): Promise<void> {
  await sql`insert into app_session (id_hash, session_id, fhir_base_url, issuer, patient_id, need_patient_banner, scope,
      tokens_sealed, token_version, renew_at, created_at, max_expires_at, idle_expires_at, renewable_until)
    with recursive number (i) as (select ${from} union all select i + 1 from number where i < ${from + count - 1})
    select 'hash' || i, 'session' || i, 'f', 'i', 'p', 1, 'openid', 'x', 1, 1, 1,
      ${expiresAt} + i, ${expiresAt} + i, ${expiresAt} + i from number`.execute(db)
}
