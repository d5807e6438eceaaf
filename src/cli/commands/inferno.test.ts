import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { sallyport } from '../../../test/support/command-line.ts'
import { eachDatabaseIfThorough } from '../../../test/support/databases.ts'
import { isRecord } from '../../core/index.ts'
import { openStore, sha256 } from '../../store/index.ts'

const cwd = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
after(() => rmSync(cwd, { recursive: true, force: true }))

interface Preset {
  readonly test_suite_id: string
  readonly inputs: readonly { readonly name: string; readonly value: unknown; readonly _type: string }[]
}

/** What the kit gets of each app, by the name of the input. */
function readAuthorizations({ inputs }: Preset): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  return Object.fromEntries(
    inputs.filter(it => it._type === 'auth_info').map(it => [it.name, isRecord(it.value) ? it.value : {}]),
  )
}

eachDatabaseIfThorough((_, __, create) => {
  async function setUp() {
    const SMART_DATABASE_URL = await create()
    const run = (...args: readonly string[]) => sallyport(args, { env: { SMART_DATABASE_URL }, cwd })
    const rows = async () => {
      const store = await openStore(SMART_DATABASE_URL)
      const found = store.db
        .selectFrom('client')
        .selectAll()
        .where('client_id', 'like', 'inferno-%')
        .orderBy('client_id')
        .execute()
      return found.finally(() => store.close())
    }
    return { run, rows }
  }

  describe('sallyport inferno', () => {
    it('registers an app of each kind, with the URLs of the suites (CLI-1)', async () => {
      const { run, rows } = await setUp()
      const { exitCode, stderr } = await run('inferno', '--url', 'http://localhost:4567/')
      assert.equal(exitCode, 0, stderr)
      const registered = await rows()
      assert.deepEqual(
        registered.map(it => [it.client_id, it.auth_method, it.launch_url?.slice(28)]),
        [
          ['inferno-backend', 'private_key_jwt', undefined],
          ['inferno-keys', 'private_key_jwt', '/smart/launch'],
          ['inferno-public', 'none', '/smart/launch'],
          ['inferno-secret', 'client_secret', '/smart/launch'],
          ['inferno-secret-stu2', 'client_secret', '/smart_stu2/launch'],
          ['inferno-secret-stu2-2', 'client_secret', '/smart_stu2_2/launch'],
        ],
      )
      for (const { client_id: id, redirect_uris: uris, jwks_url: keys } of registered) {
        assert.deepEqual(
          JSON.parse(uris),
          id === 'inferno-backend'
            ? []
            : ['smart', 'smart_stu2', 'smart_stu2_2'].map(
                it => `http://localhost:4567/custom/${it}/redirect`,
              ),
        )
        if (keys !== null)
          assert.equal(keys, 'http://localhost:4567/custom/g10_certification/.well-known/jwks.json')
      }
    })

    it('prints a preset with the secret that is stored as a hash, and nowhere else', async () => {
      const { run, rows } = await setUp()
      const { stdout, stderr } = await run('inferno')
      const preset: Preset = JSON.parse(stdout)
      assert.equal(preset.test_suite_id, 'g10_certification')
      const { standalone_smart_auth_info: standalone, bulk_smart_auth_info: bulk } =
        readAuthorizations(preset)
      const row = (await rows()).find(it => it.client_id === standalone?.client_id)
      const secret = String(standalone?.client_secret)
      assert.equal(row?.secret_hash, sha256(secret))
      assert.ok(!stderr.includes(secret))
      assert.ok(!(await run('audit', '--json')).stdout.includes(secret))
      assert.deepEqual(bulk, {
        auth_type: 'backend_services',
        client_id: 'inferno-backend',
        encryption_algorithm: 'ES384',
        token_url: 'http://localhost:9000/oauth2/token',
        requested_scopes: 'system/*.rs',
      })
    })

    it('requests only scopes that the apps are granted', async () => {
      const { run } = await setUp()
      const authorizations = readAuthorizations(JSON.parse((await run('inferno')).stdout))
      for (const [input, { client_id: id, requested_scopes: scope }] of Object.entries(authorizations)) {
        if (input === 'bulk_smart_auth_info') continue
        // A token of the command line cannot be refreshed.
        const requested = String(scope).replace(' offline_access', '')
        const args = ['--client', String(id), '--patient', 'patient-59', '--scope', requested]
        const { exitCode, stderr } = await run('token', ...args)
        assert.deepEqual([exitCode, stderr], [0, ''], input)
      }
    })

    it('changes nothing the second time, and the URLs for another address', async () => {
      const { run, rows } = await setUp()
      const first = await run('inferno')
      const before = await rows()
      const records = (await run('audit', '--json')).stdout
      assert.equal((await run('inferno')).stdout, first.stdout)
      assert.deepEqual(await rows(), before)
      assert.equal((await run('audit', '--json')).stdout, records)
      const moved = await run('inferno', '--url', 'http://localhost')
      assert.equal(moved.stdout, first.stdout)
      assert.match(moved.stderr, /^inferno-secret: changed$/m)
      assert.equal((await rows()).at(-1)?.launch_url, 'http://localhost/custom/smart_stu2_2/launch')
    })

    it('gives an app its secret back that was replaced', async () => {
      const { run, rows } = await setUp()
      await run('inferno')
      const before = await rows()
      await run('client', 'set', 'inferno-secret', '--secret')
      assert.notDeepEqual(await rows(), before)
      assert.match((await run('inferno')).stderr, /^inferno-secret: changed$/m)
      assert.deepEqual(await rows(), before)
    })

    it('refuses an address without TLS that is not loopback', async () => {
      const { run, rows } = await setUp()
      const { exitCode, stderr } = await run('inferno', '--url', 'http://inferno.test')
      assert.equal(exitCode, 2)
      assert.match(stderr, /^Cannot use --url http:\/\/inferno\.test: expected https, http on loopback/)
      assert.deepEqual(await rows(), [])
    })
  })
})
