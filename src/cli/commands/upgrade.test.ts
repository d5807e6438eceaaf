import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { sallyport } from '../../../test/support/command-line.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { openStore } from '../../store/index.ts'

const GATEWAY = {
  SMART_FHIR_UPSTREAM_URL: 'http://127.0.0.1:1/fhir',
  SMART_SECRET: 'a secret of 32 bytes, for tests',
}

eachDatabase((name, _open, create) => {
  describe('sallyport upgrade', () => {
    const run = (command: string, url: string, env = {}) =>
      sallyport(['upgrade', ...command.split(' ')], { env: { ...GATEWAY, SMART_DATABASE_URL: url, ...env } })

    async function change(url: string, statement: string): Promise<void> {
      const store = await openStore(url)
      await sql.raw(statement).execute(store.db)
      await store.close()
    }

    it('applies the migrations once, and finds nothing to do afterwards (UPGRADE-1)', async () => {
      const url = await create('empty')
      assert.match((await run('check', url)).stdout, /^database: there is none yet/)
      assert.deepEqual(await run('apply', url), { exitCode: 0, stdout: 'Created the tables\n', stderr: '' })
      assert.deepEqual(await run('apply', url), { exitCode: 0, stdout: 'Nothing to apply\n', stderr: '' })
    })

    it('says rolling if the servers that run can go on, on a shared database (UPGRADE-2)', async () => {
      const url = await create('empty')
      await run('apply', url)
      const { exitCode, stdout } = await run('check', url)
      assert.match(stdout, /^database: no migration is needed\n/)
      assert.match(stdout, name === 'SQLite' ? /: stop needed\n$/ : /: rolling\n$/)
      assert.equal(exitCode, name === 'SQLite' ? 3 : 0)
    })

    it('says that a stop is needed for the embedded FHIR server (UPGRADE-2)', async () => {
      const url = await create('empty')
      const { exitCode, stdout } = await run('check', url, { SMART_FHIR_UPSTREAM_URL: undefined })
      assert.match(stdout, /^embedded FHIR server: only one process/m)
      assert.equal(exitCode, 3)
    })

    it('says that a stop is needed after which the older servers cannot go on (UPGRADE-2)', async () => {
      const url = await create('empty')
      await run('apply', url)
      await change(url, "update schema_migration set name = '0000-' || name, needs = '0001-schema'")
      const { exitCode, stdout } = await run('check --json', url)
      assert.equal(exitCode, 3)
      const { verdict, findings } = JSON.parse(stdout)
      assert.equal(verdict, 'stop needed')
      assert.match(findings[0].text, /^the running servers cannot continue after 0001-schema, /)
    })

    it('refuses a newer database, an unreachable one, and settings that do not start (UPGRADE-2)', async () => {
      const url = await create('empty')
      await run('apply', url)
      await change(
        url,
        "insert into schema_migration (name, needs, applied_at) values ('9999-later', '9999-later', 0)",
      )
      const newer = await run('check', url)
      assert.match(newer.stdout, /a newer version of Sallyport changed it \(it has migration 9999-later\)/)
      assert.equal(newer.exitCode, 4)
      assert.equal((await run('check', 'postgres://127.0.0.1:1/none')).exitCode, 4)
      const wrong = await run('check', url, { SMART_BIND: 'nowhere at all' })
      assert.match(wrong.stdout, /^settings: .*SMART_BIND/m)
      assert.equal(wrong.exitCode, 4)
    })
  })
})
