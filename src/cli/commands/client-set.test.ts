import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sallyport } from '../../../test/support/command-line.ts'
import { eachDatabaseIfThorough } from '../../../test/support/databases.ts'
import { listGood, stampRows } from '../../auth/testing/stamp.ts'
import { openStore, type Schema, sha256 } from '../../store/index.ts'

const APP = 'client add --id growth --redirect-uri https://app.example/callback --public --scope'.split(' ')

eachDatabaseIfThorough((_, __, create) => {
  async function setUp() {
    const SMART_DATABASE_URL = await create()
    const run = (...args: readonly string[]) => sallyport(args, { env: { SMART_DATABASE_URL } })
    await run(...APP, 'launch patient/Observation.rs')
    const row = async () => {
      const store = await openStore(SMART_DATABASE_URL)
      const rows = await store.db.selectFrom('client').selectAll().execute()
      return store.close().then(() => rows[0])
    }
    return { run, row, url: SMART_DATABASE_URL }
  }

  describe('sallyport client set', () => {
    it('changes named options, clears cleared options, and keeps the rest', async () => {
      const { run, row } = await setUp()
      const before = await row()
      await run('client', 'set', 'growth', '--launch-url', 'https://app.example/launch', '--first-party')
      const done = await run('client', 'set', 'growth', '--name', 'Growth', '--clear', 'launch-url')
      assert.deepEqual(done, { exitCode: 0, stdout: 'Changed app growth\n', stderr: '' })
      assert.deepEqual(await row(), { ...before, name: 'Growth', first_party: true })
    })

    it('sets exceptions for an older app, shows them, and removes them', async () => {
      const { run, row } = await setUp()
      const before = await row()
      const options = [
        '--pkce',
        'optional',
        '--no-iss-parameter',
        '--launch-url',
        'https://app.example/#/launch',
      ]
      assert.equal((await run('client', 'set', 'growth', ...options)).exitCode, 0)
      const launch_url = 'https://app.example/#/launch'
      assert.deepEqual(await row(), { ...before, pkce_required: false, iss_parameter: false, launch_url })
      const { stdout } = await run('client', 'show', 'growth')
      assert.match(stdout, /^authentication +public$/m)
      assert.match(stdout, /^pkce +optional$/m)
      assert.match(stdout, /^iss-parameter +not sent$/m)
      await run(
        'client',
        'set',
        'growth',
        '--pkce',
        'required',
        '--clear',
        'no-iss-parameter',
        '--clear',
        'launch-url',
      )
      assert.deepEqual(await row(), before)
      const bad = await run('client', 'set', 'growth', '--pkce', 'plain')
      assert.deepEqual(
        [bad.exitCode, bad.stderr],
        [2, 'Cannot use --pkce plain: expected required or optional\n'],
      )
    })

    it('generates a new secret, prints it once, and drops the previous credentials', async () => {
      const { run, row } = await setUp()
      await run('client', 'set', 'growth', '--jwks-url', 'https://app.example/jwks')
      const { stdout } = await run('client', 'set', 'growth', '--secret')
      const secret = /^client_secret: ([\w-]{43})$/m.exec(stdout)?.[1] ?? ''
      const { auth_method, secret_hash, jwks_url } = (await row()) ?? {}
      assert.deepEqual([auth_method, secret_hash, jwks_url], ['client_secret', sha256(secret), null])
    })

    it('revokes grants when the scope changes, and only then (ENDS-1)', async () => {
      const { run, url } = await setUp()
      const store = await openStore(url)
      const grant = await grantOn(store)
      await run('client', 'set', 'growth', '--name', 'Growth', '--scope', 'launch patient/Observation.rs')
      assert.deepEqual(await listGood(store.db), [grant])
      await run('client', 'set', 'growth', '--scope', 'launch patient/Patient.rs')
      assert.deepEqual(await listGood(store.db), [])
      await store.close()
    })

    it('refuses inconsistent options and changes nothing', async () => {
      const { run, row } = await setUp()
      const before = await row()
      for (const [args, exitCode, line] of [
        [['--scope', 'system/*.rs'], 2, /an app with system\/ scopes must sign/],
        [['--clear', 'redirect-uri'], 2, /^Cannot use --redirect-uri: expected/],
        [['--clear', 'scope'], 2, /^Cannot clear scope: expected name, description, /],
        [['--public', '--secret'], 2, /^Expected one of/],
        [[], 2, /^Nothing to change/],
      ] as const) {
        const done = await run('client', 'set', 'growth', ...args)
        assert.match(done.stderr, line)
        assert.equal(done.exitCode, exitCode)
      }
      const unknown = await run('client', 'set', 'nobody', '--name', 'x')
      assert.deepEqual([unknown.exitCode, unknown.stderr], [1, 'Cannot change app: there is no app nobody\n'])
      assert.deepEqual(await row(), before)
    })
  })

  describe('sallyport client show', () => {
    it('shows every field by its option name, and no secret', async () => {
      const { run } = await setUp()
      const { stdout: made } = await run('client', 'set', 'growth', '--secret', '--name', 'Growth chart')
      const secret = /client_secret: (\S+)/.exec(made)?.[1] ?? ''
      await run('client', 'set', 'growth', '--post-logout-redirect-uri', 'https://app.example/bye')
      const { stdout } = await run('client', 'show', 'growth')
      assert.match(
        stdout,
        /^id +growth\nname +Growth chart\nauthentication +secret, stored as a hash\nconsent +asked\nstate +approved\nredirect-uri +https:\/\/app\.example\/callback\npost-logout-redirect-uri +https:\/\/app\.example\/bye\npermissions +Reads measurements\nscope +launch\n +patient\/Observation\.rs\nregistered +20\S+Z\n$/,
      )
      for (const hidden of [secret, sha256(secret)]) assert.equal(stdout.includes(hidden), false)
      assert.match((await run('client', 'show', 'nobody')).stderr, /^Cannot show app: there is no app nobody/)
    })
  })
})

async function grantOn({ db }: { readonly db: import('kysely').Kysely<Schema> }): Promise<string> {
  const clinician = await db
    .insertInto('clinician')
    .values({ username: 'ada', password_hash: 'x', display_name: 'Ada', fhir_user_id: 'p' })
    .returning('id')
    .executeTakeFirstOrThrow()
  const values = {
    id: 'g',
    client_id: 'growth',
    clinician_id: clinician.id,
    login_id_hash: 'x',
    scope: 'openid offline_access',
  }
  await db
    .insertInto('grant')
    .values({ ...values, auth_time: 1, created_at: 1, last_used_at: 1 })
    .execute()
  await stampRows(db)
  return 'g'
}
