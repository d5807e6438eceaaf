import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../../test/support/databases.ts'
import { createAuditor } from '../../../audit/index.ts'
import { addBackend } from '../../testing/backend.ts'
import { addExportJob } from '../../testing/export-job.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'

eachDatabaseIfThorough((_name, open) => {
  describe('/admin/exports', () => {
    let auth: TestAuthServer
    let admin: TestBrowser
    before(async () => {
      const store = await open()
      auth = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
      await auth.addUser('ada', { admin: true })
      await auth.addUser('vera', { auditor: true })
      await addBackend(auth, 'nightly', 'system/*.rs')
      admin = await auth.logIn('ada')
    })

    for (const [state, job, shown] of [
      ['started', {}, /Started<\/span><span class="sub">The app has not asked for its files yet</],
      ['preparing', { asked: 0 }, /Being prepared</],
      [
        'idle',
        { asked: 60_000 },
        /Waiting<[\s\S]*has not asked for its files since <time datetime="2026-11-13T13:59/,
      ],
      ['ready', { asked: 60_000, files: 1 }, /Ready<[\s\S]*>1 file</],
    ] as const)
      it(`says that an export is ${state}, in the list and on a page of its own (ADMIN-20)`, async () => {
        const { asked, ...others } = { asked: undefined, ...job }
        const next_poll_at = asked === undefined ? 0 : auth.time.now - asked
        await addExportJob(auth, { id: state, client_id: 'nightly', next_poll_at, ...others })
        const list = await admin.get('/admin/exports')
        assert.ok(list.body.includes(`href="/admin/exports/${state}"`))
        assert.match(list.body, shown)
        const { body } = await admin.get(`/admin/exports/${state}`)
        assert.match(body, shown)
        assert.match(body, /Condition, Patient/)
        assert.match(body, /href="\/admin\/apps\/nightly"/)
        assert.ok(body.includes(`href="/admin/exports/${state}/end"`))
        const seen = (await (await auth.logIn('vera')).get(`/admin/exports/${state}`)).body
        assert.match(seen, /Condition, Patient/)
        assert.doesNotMatch(seen, /\/end"/)
        await admin.post(`/admin/exports/${state}/end`, {})
        assert.equal((await admin.get(`/admin/exports/${state}`)).statusCode, 404)
      })
  })
})
