import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../../test/support/databases.ts'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import { addExportJob } from '../../testing/export-job.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'

const SERVICE = {
  auth_method: 'private_key_jwt',
  jwks_url: 'https://reports.example/jwks',
  scope: 'system/*.rs',
} as const

eachDatabaseIfThorough((_name, open) => {
  describe('/manage: bulk exports of own apps', () => {
    let auth: TestAuthServer
    let maker: TestBrowser
    let other: TestBrowser
    before(async () => {
      const store = await open()
      const settings = { lab: true }
      auth = await TestAuthServer.open(store, { audit: createAuditor({ store }), settings })
      await auth.addUser('mia')
      await auth.addUser('noa', { admin: true })
      maker = await auth.logIn('mia')
      other = await auth.logIn('noa')
      await register(maker, '/apps/new', 'nightly')
      await register(other, '/admin/apps/new', 'weekly')
    })

    beforeEach(async () => {
      await auth.store.db.deleteFrom('export_job').execute()
      await addExportJob(auth, { id: 'own', client_id: 'nightly' })
      await addExportJob(auth, { id: 'other', client_id: 'weekly', level: 'patient' })
      await addExportJob(auth, { id: 'foreign', client_id: 'nightly', issuer: 'https://idp.example' })
      const ended = { started_at: 0, expires_at: auth.time.now }
      await addExportJob(auth, { id: 'expired', client_id: 'nightly', ...ended })
    })

    async function register(browser: TestBrowser, path: string, client_id: string) {
      const { statusCode, body } = await browser.post(path, {
        ...SERVICE,
        client_id,
        name: `The ${client_id}`,
      })
      assert.ok(statusCode < 400, body)
    }

    const listOpen = async () =>
      (await auth.store.db.selectFrom('export_job').select('id').execute()).map(({ id }) => id).toSorted()
    const listShown = async (browser: TestBrowser) =>
      [...(await browser.get('/manage')).body.matchAll(/\/manage\/exports\/(\w+)\/end/g)].map(([, id]) => id)

    it('are listed for the person who registered the app, and for nobody else (REVOKE-7)', async () => {
      assert.deepEqual(await listShown(maker), ['own'])
      assert.deepEqual(await listShown(other), ['other'])
      assert.match(
        (await maker.get('/manage')).body,
        /The nightly<\/b>[\s\S]*A group[\s\S]*has not asked for its files yet/,
      )
      await auth.addUser('ida')
      assert.doesNotMatch((await (await auth.logIn('ida')).get('/manage')).body, /exports/i)
    })

    it('end after a confirmation, which is recorded (REVOKE-7)', async () => {
      assert.match((await maker.get('/manage/exports/own/end')).body, /End this export of The nightly\?/)
      const { statusCode, headers } = await maker.post('/manage/exports/own/end', {})
      assert.equal(statusCode, 303)
      assert.match((await maker.get(String(headers.location))).body, /Export ended\./)
      assert.deepEqual(await listOpen(), ['expired', 'foreign', 'other'])
      const [record] = await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 1 })
      const { id } = await auth.findUser('mia')
      assert.deepEqual(
        [
          record?.method,
          record?.request,
          record?.subject,
          JSON.parse(record?.details ?? '').before.client_id,
        ],
        ['manage', 'bulk-export end own', id, 'nightly'],
      )
      assert.equal((await maker.post('/manage/exports/own/end', {})).statusCode, 404)
    })

    it('of others, of other issuers, or that have expired are a 404 (REVOKE-7)', async () => {
      for (const id of ['other', 'foreign', 'expired', 'nothing', '%00']) {
        const path = `/manage/exports/${id}/end`
        assert.equal((await maker.get(path)).statusCode, 404)
        assert.equal((await maker.post(path, {})).statusCode, 404)
      }
      assert.deepEqual(await listOpen(), ['expired', 'foreign', 'other', 'own'])
    })

    it('are nobody’s when the account of the person is removed (REVOKE-7)', async () => {
      const registered = () =>
        auth.store.db
          .selectFrom('client')
          .select('registered_by')
          .where('client_id', '=', 'gone')
          .executeTakeFirst()
      await auth.addUser('zoe')
      await register(await auth.logIn('zoe'), '/apps/new', 'gone')
      const { id } = await auth.findUser('zoe')
      assert.deepEqual(await registered(), { registered_by: id })
      await auth.store.db.deleteFrom('clinician').where('id', '=', id).execute()
      assert.deepEqual(await registered(), { registered_by: null })
    })
  })
})
