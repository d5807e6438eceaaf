import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { sallyport } from '../../../test/support/command-line.ts'
import { eachDatabaseIfThorough } from '../../../test/support/databases.ts'
import {
  type AuditRecord,
  createAuditor,
  findRecords,
  openEventIds,
  sealTrail,
  toAuditEvent,
} from '../../audit/index.ts'
import { refuseRecords } from '../../audit/testing/audited-fhir.ts'
import { readSettings } from '../../config/index.ts'
import { validate } from '../../fhir/index.ts'
import { createSealer, openStore } from '../../store/index.ts'

const now = Date.now()
const SECRET = 'a secret of these tests, long enough'

const records: readonly AuditRecord[] = [
  { at: now - 20 * 3_600_000, server: 'auth', kind: 'login', allowed: true, status: 302, subject: 'c-1' },
  {
    at: now - 10 * 3_600_000,
    server: 'fhir',
    kind: 'fhir',
    allowed: true,
    status: 200,
    method: 'GET',
    request: 'Patient/juniper',
    patient: 'juniper',
    client: 'app',
    launch: 'l-1',
    by: 'patient/Patient.rs',
    address: '10.0.0.8',
  },
  {
    at: now - 30_000,
    server: 'fhir',
    kind: 'fhir',
    allowed: false,
    status: 403,
    method: 'GET',
    request: 'Observation',
    patient: 'ashlar',
    client: 'other',
    reason: 'Insufficient scope',
  },
]

const counted: AuditRecord = {
  at: now,
  server: 'fhir',
  kind: 'fhir',
  allowed: false,
  status: 401,
  interaction: 'read',
  address: '10.0.0.9',
  reason: 'Missing token',
  repeats: 57,
}

const revoked: AuditRecord = {
  at: now,
  server: 'auth',
  kind: 'revoke',
  allowed: true,
  status: 200,
  launch: 'l-1',
  fhirUser: 'Practitioner/p1',
  reason: 'A used code was sent again',
}

eachDatabaseIfThorough((name, _open, create) => {
  describe('sallyport audit', () => {
    if (name === 'SQLite')
      it('verifies the hash chain, and prints its head (AUDIT-17)', async () => {
        const url = await create()
        const env = { SMART_DATABASE_URL: url, SMART_SECRET: SECRET }
        const store = await openStore(url)
        await createAuditor({ store }).record(...records)
        await sealTrail(store, createSealer(SECRET))
        const intact = await sallyport(['audit', 'verify'], { env })
        assert.match(
          intact.stdout,
          /^No change found: 3 records in 1 seal, 0 not yet sealed\nHead: 1:[\w-]{43}\n$/,
        )
        assert.equal(intact.exitCode, 0)
        const head = intact.stdout.split('Head: ')[1]?.trim() ?? ''
        assert.equal((await sallyport(['audit', 'verify', '--head', head], { env })).exitCode, 0)
        assert.equal((await sallyport(['audit', 'verify', '--head', '1'], { env })).exitCode, 2)
        const other = { ...env, SMART_SECRET: 'another secret of these tests, long enough' }
        const unknown = await sallyport(['audit', 'verify'], { env: other })
        assert.match(unknown.stderr, /^Seal 1 was changed, or made with another SMART_SECRET$/m)
        assert.equal((await sallyport(['audit', 'verify', '--adopt'], { env: other })).exitCode, 0)
        assert.equal((await sallyport(['audit', 'verify', '--adopt'], { env })).exitCode, 0)
        await (await store.trail.read()).deleteFrom('audit_event').where('kind', '=', 'login').execute()
        await store.close()
        assert.equal((await sallyport(['audit', 'verify', '--adopt'], { env: other })).exitCode, 1)
        const changed = await sallyport(['audit', 'verify'], { env })
        assert.match(changed.stderr, /\(seal 1\): 1 removed\n/)
        assert.match(changed.stdout, /^The audit trail was changed/)
        assert.equal(changed.exitCode, 1)
      })

    it('compares an exported file of any size with the trail (ADMIN-27)', async () => {
      const url = await create()
      const store = await openStore(url)
      await createAuditor({ store }).record(...records)
      const ids = await openEventIds(store)
      const { fhirBaseUrl } = readSettings({}, tmpdir())
      const found = await findRecords(store, { limit: 10 })
      await store.close()
      const folder = mkdtempSync(join(tmpdir(), 'check-file-'))
      const events = found.map(record => JSON.stringify(toAuditEvent(record, { fhirBaseUrl, ids })))
      const run = async (name: string, lines: readonly string[]) => {
        writeFileSync(join(folder, name), `${lines.join('\n')}\n`)
        return sallyport(['audit', 'check-file', join(folder, name)], { env: { SMART_DATABASE_URL: url } })
      }
      const same = await run('same.ndjson', events)
      assert.deepEqual([same.exitCode, same.stdout], [0, '3 records, 3 unchanged\n'])
      const forged = events.map(line => line.replace('"outcome":"4"', '"outcome":"0"'))
      const other = await run('other.ndjson', forged)
      assert.equal(other.exitCode, 1)
      assert.match(other.stdout, /^3 records, 2 unchanged\n1 different in the trail: \d+\n$/)
      const wrong = await run('wrong.txt', ['hello'])
      assert.deepEqual([wrong.exitCode, /not an export of the audit trail/.test(wrong.stderr)], [2, true])
      const absent = await sallyport(['audit', 'check-file', 'absent'], { env: { SMART_DATABASE_URL: url } })
      assert.match(absent.stderr, /Cannot read absent: there is no such file/)
      rmSync(folder, { recursive: true })
    })

    it('lists, filters and formats records', async () => {
      const url = await create()
      const store = await openStore(url)
      await createAuditor({ store }).record(...records)
      await store.close()
      const run = (...args: readonly string[]) =>
        sallyport(['audit', ...args], { env: { SMART_DATABASE_URL: url } })
      const lines = async (...args: readonly string[]) => {
        const { exitCode, stdout, stderr } = await run(...args)
        assert.equal(exitCode, 0, stderr)
        return stdout.split('\n').slice(0, -1)
      }
      const [login, read, refused, ...more] = await lines()
      assert.deepEqual(more, [])
      assert.match(login ?? '', /^\d{4}-.*Z {2}allowed 302 {2}login$/)
      assert.match(
        read ?? '',
        /Z {2}allowed 200 {2}GET Patient\/juniper {2}patient=juniper {2}client=app {2}launch=l-1 {2}from=10\.0\.0\.8 {2}by=patient\/Patient\.rs$/,
      )
      assert.match(refused ?? '', /refused 403 {2}GET Observation {2}.*Insufficient scope$/)
      assert.equal((await lines('--since', '15h')).length, 2)
      assert.equal((await lines('--since', '5h')).length, 1)
      assert.equal((await lines('--since', '2020-01-01')).length, 3)
      assert.deepEqual(await lines('--patient', 'Patient/juniper'), [read])
      assert.deepEqual(await lines('--client', 'other'), [refused])
      assert.deepEqual(await lines('--until', '5h'), [login, read])
      assert.deepEqual(await lines('--launch', 'l-1'), [read])
      assert.deepEqual(await lines('--address', '10.0.0.8'), [read])
      assert.deepEqual(await lines('--address', '10.0.0.8', '--kind', 'login'), [])
      assert.deepEqual(await lines('--outcome', 'refused'), [refused])
      assert.deepEqual(await lines('--kind', 'login'), [login])
      assert.deepEqual(await lines('--limit', '1'), [refused])
      const none = await run('--kind', 'logout')
      assert.deepEqual(
        [none.exitCode, none.stdout, none.stderr],
        [0, '', 'The audit trail contains no such record.\n'],
      )
      for (const line of await lines('--json')) assert.deepEqual(validate(JSON.parse(line)), [])
      for (const bad of [
        ['--since', 'yesterday'],
        ['--outcome', 'maybe'],
        ['--limit', '0'],
      ])
        assert.equal((await run(...bad)).exitCode, 2, bad.join(' '))
    })

    it('names who ran a command, and finds users and operators', async () => {
      const url = await create()
      const store = await openStore(url)
      const { id } = await store.db
        .insertInto('clinician')
        .values({ username: 'ada', display_name: 'Dr. Ada', fhir_user_id: 'p1', password_hash: '' })
        .returning('id')
        .executeTakeFirstOrThrow()
      const event = { server: 'auth', allowed: true, status: 200 } as const
      await createAuditor({ store }).record(
        {
          ...event,
          at: now - 2,
          kind: 'login',
          subject: id,
          fhirUser: 'Practitioner/p1',
          address: '10.0.0.9',
        },
        {
          ...event,
          at: now - 1,
          kind: 'admin',
          method: 'sallyport',
          request: 'keys rotate',
          address: 'root@vm',
        },
        { ...event, at: now, kind: 'admin', allowed: false, status: 403, reason: 'Not an administrator' },
      )
      await store.close()
      const run = (...args: readonly string[]) =>
        sallyport(['audit', ...args], { env: { SMART_DATABASE_URL: url } })
      const { stdout } = await run()
      assert.match(stdout, /login {2}username=ada {2}user=Practitioner\/p1 {2}from=10\.0\.0\.9\n/)
      assert.match(stdout, /sallyport keys rotate {2}by=root@vm\n/)
      assert.match(stdout, /refused 403 {2}admin {2}Not an administrator\n/)
      for (const user of ['ada', 'Dr. Ada', id, 'Practitioner/p1'])
        assert.match((await run('--user', user)).stdout, /^\S+ {2}allowed 200 {2}login .*\n$/, user)
      assert.match((await run('--user', 'root@vm')).stdout, /^.*keys rotate.*\n$/)
      assert.equal(
        (await sallyport(['clinician', 'disable', 'ada'], { env: { SMART_DATABASE_URL: url } })).exitCode,
        0,
      )
      for (const target of ['ada', 'account/Dr. Ada', id])
        assert.match(
          (await run('--target', target)).stdout,
          /^\S+ {2}allowed 200 {2}sallyport clinician disable ada .*\n$/,
          target,
        )
      const nobody = await run('--user', 'eve')
      assert.equal(nobody.exitCode, 1)
      assert.match(nobody.stderr, /no account, app, FHIR user or operator is known as eve/)
    })

    it('shows why access ended, and how many anonymous requests a record counts', async () => {
      const url = await create()
      const store = await openStore(url)
      await createAuditor({ store }).record(counted, revoked)
      await store.close()
      const { stdout } = await sallyport(['audit'], { env: { SMART_DATABASE_URL: url } })
      assert.match(
        stdout,
        /Z {2}refused 401 {2}fhir \(57 more like it\) {2}from=10\.0\.0\.9 {2}Missing token\n/,
      )
      assert.match(
        stdout,
        /Z {2}allowed 200 {2}revoke {2}user=Practitioner\/p1 {2}launch=l-1 {2}A used code was sent again\n$/,
      )
    })
  })

  describe('a command of an administrator', () => {
    const SECRET = { SMART_SECRET: 'a secret of this test, which is long enough' }

    it('is recorded in the audit trail or not executed (ADMIN-3, AUDIT-1)', async () => {
      const SMART_DATABASE_URL = await create()
      const run = (line: string, stdin?: string) =>
        sallyport(line.split(' '), { env: { SMART_DATABASE_URL, ...SECRET }, ...(stdin && { stdin }) })
      const store = await openStore(SMART_DATABASE_URL)
      const content = () =>
        Promise.all(
          (['client', 'clinician', 'signing_key'] as const).map(table =>
            store.db.selectFrom(table).selectAll().execute(),
          ),
        )
      const commands = [
        ['client add --id app --public --redirect-uri https://app.example/ --scope openid'],
        ['client set --id app --name App'],
        ['client approve --id app'],
        ['clinician add --username ada --display-name Ada --fhir-user p1', 'correct horse battery\n'],
        ['clinician set-password --username ada', 'another horse battery\n'],
        ['clinician disable --username ada'],
        ['clinician enable --username ada'],
        ['client remove --id app'],
        ['keys rotate'],
        ['keys withdraw --all'],
      ] as const
      for (const [line, stdin] of commands) {
        const before = await content()
        const allow = await refuseRecords(store)
        const refused = await run(line, stdin).finally(allow)
        assert.equal(refused.exitCode, 1, line)
        assert.match(refused.stderr, /audit/)
        assert.deepEqual(await content(), before, line)
        const done = await run(line, stdin)
        assert.equal(done.exitCode, 0, done.stderr)
      }
      const kept = await findRecords(store, { limit: 20, order: 'oldest', events: [{ kind: 'admin' }] })
      await store.close()
      assert.match(
        (await run('audit --kind admin')).stdout,
        /Z {2}allowed 200 {2}sallyport client add app {2}by=/,
      )
      assert.deepEqual(
        kept.map(({ method, request }) => `${method} ${request}`),
        [
          'sallyport client add app',
          'sallyport client set app',
          'sallyport client approve app',
          'sallyport clinician add ada',
          'sallyport clinician set-password ada',
          'sallyport clinician disable ada',
          'sallyport clinician enable ada',
          'sallyport client remove app',
          'sallyport keys rotate',
          'sallyport keys withdraw --all',
        ],
      )
    })
  })
})
