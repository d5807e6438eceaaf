import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as pause } from 'node:timers/promises'
import { eachDatabase } from '../../test/support/databases.ts'
import {
  openStore,
  REMOVED,
  repeatInOneProcess,
  type Schema,
  type Store,
  startSweeping,
  sweep,
} from './index.ts'

const HOUR = 3_600_000
const now = Date.UTC(2031, 0, 1)

const session = {
  fhir_base_url: 'f',
  issuer: 'i',
  patient_id: 'p',
  need_patient_banner: true,
  scope: 'openid',
  tokens_sealed: 'x',
  token_version: 1,
  renew_at: now,
  created_at: 1,
} as const

const launchToken = {
  patient_id: 'p',
  need_patient_banner: true,
  client_id: 'app',
  clinician_username: 'ada',
  fhir_base_url: 'f',
  launch_id: 'l',
  created_at: 1,
} as const

const appLaunch = {
  browser_hash: 'b',
  issuer: 'i',
  fhir_base_url: 'f',
  nonce: 'n',
  code_verifier_sealed: 'v',
  created_at: 1,
} as const

const code = { redirect_uri: 'r', code_challenge: 'c' } as const

async function fill({ db }: Store): Promise<void> {
  await db
    .insertInto('clinician')
    .values({ id: 'ada', username: 'ada', password_hash: 'h', display_name: 'Ada', fhir_user_id: 'p' })
    .execute()
  await db
    .insertInto('client')
    .values({
      client_id: 'app',
      name: 'App',
      auth_method: 'none',
      redirect_uris: '[]',
      scope: '',
      first_party: false,
      created_at: 1,
    })
    .execute()
  const grant = (id: string, last_used_at: number, revoked_at: number | null = null) => ({
    id,
    client_id: 'app',
    clinician_id: 'ada',
    scope: 'openid',
    auth_time: 1,
    created_at: 1,
    last_used_at,
    revoked_at,
  })
  const long = now - 50 * HOUR
  await db
    .insertInto('grant')
    .values([
      grant('over', long),
      grant('renewable', long),
      grant('revoked', long, long),
      grant('revoked lately', long, now - HOUR),
      grant('fresh', now - HOUR),
    ])
    .execute()
  const refresh = (token_hash: string, grant_id: string, expires_at: number) => ({
    token_hash,
    grant_id,
    created_at: 1,
    expires_at,
  })
  await db
    .insertInto('refresh_token')
    .values([
      refresh('over', 'over', now - 1),
      refresh('live', 'renewable', now + 1),
      refresh('of revoked', 'revoked', now + HOUR),
      refresh('of revoked lately', 'revoked lately', now + HOUR),
    ])
    .execute()
  await db
    .insertInto('authorization_code')
    .values([
      { ...code, code_hash: 'over', grant_id: 'fresh', expires_at: now - 25 * HOUR },
      { ...code, code_hash: 'lately', grant_id: 'fresh', expires_at: now - 23 * HOUR },
    ])
    .execute()
  const lifetimes = [
    ['over', now - 2 * HOUR],
    ['live', now + 1],
  ] as const
  for (const [name, expires_at] of lifetimes) {
    await db
      .insertInto('launch_token')
      .values({ ...launchToken, token_hash: name, expires_at })
      .execute()
    await db
      .insertInto('authorization_request')
      .values({ id_hash: name, request: '{}', created_at: 1, expires_at })
      .execute()
    await db
      .insertInto('login')
      .values({ id_hash: name, clinician_id: 'ada', created_at: 1, expires_at })
      .execute()
    await db
      .insertInto('pending_login')
      .values({ id_hash: name, state_sealed: '', network_hash: '', expires_at })
      .execute()
    await db.insertInto('login_failure').values({ username_address_hash: name, at: expires_at }).execute()
    await db
      .insertInto('app_launch')
      .values({ ...appLaunch, state_hash: name, expires_at })
      .execute()
    await db
      .insertInto('app_session')
      .values({
        ...session,
        id_hash: name,
        session_id: name,
        max_expires_at: expires_at,
        idle_expires_at: now + 1,
      })
      .execute()
    await db
      .insertInto('app_session')
      .values({
        ...session,
        id_hash: `idle ${name}`,
        session_id: `idle ${name}`,
        max_expires_at: now + HOUR,
        idle_expires_at: expires_at,
      })
      .execute()
  }
}

/** Half of them were used lately. */
async function addGrants({ db }: Store, count: number): Promise<void> {
  for (let from = 0; from < count; from += 500) {
    const ids = Array.from({ length: 500 }, (_, at) => `grant ${from + at}`)
    const common = { client_id: 'app', clinician_id: 'ada', scope: '', auth_time: 1, created_at: 1 }
    await db
      .insertInto('grant')
      .values(ids.map((id, at) => ({ ...common, id, last_used_at: at % 2 === 0 ? now - HOUR : 1 })))
      .execute()
    await db
      .insertInto('refresh_token')
      .values(ids.map(id => ({ token_hash: id, grant_id: id, created_at: 1, expires_at: now + HOUR })))
      .execute()
  }
}

async function countGrants({ db }: Store): Promise<number> {
  const { count } = await db
    .selectFrom('grant')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

async function left<Table extends keyof Schema>(
  { db }: Store,
  table: Table,
  column: keyof Schema[Table] & string,
) {
  const rows: Record<string, unknown>[] = await db
    .selectFrom(table as keyof Schema)
    .selectAll()
    .execute()
  return rows.map(row => row[column]).sort()
}

eachDatabase((_, open, create) => {
  describe('sweep', () => {
    it('deletes expired rows and keeps all others (STORE-3)', async () => {
      const store = await open()
      await fill(store)
      await sweep(store, now)
      assert.deepEqual(await left(store, 'launch_token', 'token_hash'), ['live'])
      assert.deepEqual(await left(store, 'authorization_request', 'id_hash'), ['live'])
      assert.deepEqual(await left(store, 'login', 'id_hash'), ['live'])
      assert.deepEqual(await left(store, 'pending_login', 'id_hash'), ['live'])
      assert.deepEqual(await left(store, 'login_failure', 'username_address_hash'), ['live'])
      assert.deepEqual(await left(store, 'app_launch', 'state_hash'), ['live'])
      assert.deepEqual(await left(store, 'app_session', 'id_hash'), ['idle live', 'live'])
      assert.deepEqual(await left(store, 'authorization_code', 'code_hash'), ['lately'])
      assert.deepEqual(await left(store, 'refresh_token', 'token_hash'), ['live', 'of revoked lately'])
      assert.deepEqual(await left(store, 'grant', 'id'), ['fresh', 'renewable', 'revoked lately'])
      assert.deepEqual(await left(store, 'clinician', 'id'), ['ada'])
      assert.deepEqual(await left(store, 'client', 'client_id'), ['app'])
    })

    it('deletes a removed client in steps, serves others in between, and goes on after it was interrupted', async () => {
      const url = await create()
      const [store, other] = [await openStore(url), await openStore(url)]
      await fill(store)
      await store.db.deleteFrom('grant').execute()
      await addGrants(store, 6_000)
      await store.db.updateTable('client').set({ expires_at: REMOVED }).execute()

      const interrupted = sweep(other, now)
      while ((await countGrants(store)) === 6_000) await pause()
      await Promise.allSettled([other.close(), interrupted])
      const rest = await countGrants(store)
      assert.ok(rest > 0 && rest < 6_000, `${rest} grants`)

      let turns = 0
      const counting = setInterval(() => turns++)
      await sweep(store, now)
      clearInterval(counting)
      assert.ok(turns > 1, `${turns} turns of other work`)
      assert.deepEqual(await left(store, 'grant', 'id'), [])
      assert.deepEqual(await left(store, 'refresh_token', 'token_hash'), [])
      assert.deepEqual(await left(store, 'client', 'client_id'), [])
      // Access tokens of the grants that were used lately may still be valid.
      assert.equal((await left(store, 'revocation', 'id')).length, 3_000)
      await store.close()
    })

    it('keeps the name of a removed account or app as long as an audit record has its id (AUDIT-25)', async () => {
      const store = await open()
      await fill(store)
      const event = { at: 1, server: 'fhir', kind: 'fhir', allowed: true, status: 200 } as const
      const row = { ...event, subject: 'ada', client_id: 'app' }
      await store.trail.append([row])
      await store.db.deleteFrom('grant').execute()
      await store.db.deleteFrom('client').execute()
      await store.db.deleteFrom('clinician').execute()
      await sweep(store, now)
      assert.deepEqual(await left(store, 'removed_client', 'name'), ['App'])
      assert.deepEqual(await left(store, 'removed_clinician', 'display_name'), ['Ada'])
      await store.db.deleteFrom('audit_event').execute()
      await sweep(store, now)
      assert.deepEqual(await left(store, 'removed_client', 'name'), [])
      assert.deepEqual(await left(store, 'removed_clinician', 'display_name'), [])
    })

    it('can run on several instances at once', async () => {
      const store = await open()
      await fill(store)
      await Promise.all([sweep(store, now), sweep(store, now), sweep(store, now)])
      assert.deepEqual(await left(store, 'login', 'id_hash'), ['live'])
    })
  })

  describe('startSweeping', () => {
    it('sweeps at once by the given clock, and not after it stops', async () => {
      const store = await open()
      await fill(store)
      const sweeping = startSweeping(store, { clock: () => now, everyMs: 3_600_000, onError: assert.ifError })
      await sweeping.stop()
      assert.deepEqual(await left(store, 'login', 'id_hash'), ['live'])
    })

    it('reports a failed sweep and tries again', async () => {
      const store = await openStore(await create())
      await store.close()
      const errors: unknown[] = []
      const { promise: twice, resolve } = Promise.withResolvers<void>()
      const sweeping = startSweeping(store, {
        everyMs: 1,
        onError: error => {
          errors.push(error)
          if (errors.length === 2) resolve()
        },
      })
      await twice
      await sweeping.stop()
      assert.match(String(errors[0]), /destroyed|after calling end/)
    })
  })

  describe('repeatInOneProcess', () => {
    it('does a job in one process, and in another when that one stops or no longer renews its lease (STORE-5)', async () => {
      const store = await open()
      const done: string[] = []
      let now = 0
      const start = (name: string) =>
        repeatInOneProcess(
          store,
          'job',
          { clock: () => now, everyMs: HOUR, onError: assert.ifError },
          async () => void done.push(name),
        )
      const first = start('first')
      while (done.length === 0) await pause()
      const second = start('second')
      await second.stop()
      assert.deepEqual(done, ['first'])
      now = 2 * HOUR
      const third = start('third')
      await third.stop()
      await first.stop()
      assert.deepEqual(done, ['first', 'third'])
      const fourth = start('fourth')
      await fourth.stop()
      assert.deepEqual(done, ['first', 'third', 'fourth'])
    })
  })
})
