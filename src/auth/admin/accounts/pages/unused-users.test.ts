import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../../../test/support/databases.ts'
import { createAuditor, findRecords } from '../../../../audit/index.ts'
import { TestAuthServer } from '../../../testing/test-auth-server.ts'

const DAY_MS = 86_400_000

eachDatabaseIfThorough((_name, open) => {
  describe('/admin/clinicians', () => {
    it('shows when accounts were created and last used, and lists those that are unused (ADMIN-28)', async () => {
      const store = await open()
      const auth = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
      const at = auth.time.now
      await auth.addUser('ada', { admin: true, created_at: at - 200 * DAY_MS })
      await auth.addUser('fresh', { created_at: at - 89 * DAY_MS })
      await auth.addUser('asleep', { created_at: at - 200 * DAY_MS, signed_in_at: at - 91 * DAY_MS })
      await auth.addUser('idle', { created_at: at - 91 * DAY_MS })
      await auth.addUser('gone', { created_at: at - 200 * DAY_MS, disabled: true })
      await auth.addUser('older')
      const browser = await auth.logIn('ada')
      const list = async (state: string) => {
        const { body } = await browser.get(`/admin/clinicians?state=${state}`)
        return [...body.matchAll(/<span class="sub"><code>([^<]+)<\/code>/g)].map(match => match[1])
      }
      assert.deepEqual(await list('unused'), ['asleep', 'idle'])
      assert.deepEqual(await list('never'), ['clinician', 'fresh', 'idle', 'older'])
      const { body } = await browser.get('/admin')
      assert.match(
        body,
        /Nobody has signed in to 2 accounts for 90 days\.[\s\S]*state=unused"[^>]*>See users/,
      )
      const all = (await browser.get('/admin/clinicians')).body
      const cells = (name: string) =>
        [
          ...(all.split(`<code>${name}</code>`)[1] ?? '').matchAll(
            /data-label="(?:Last sign-in|Created)">(.*?)<\/td>/g,
          ),
        ]
          .slice(0, 2)
          .map(match => match[1]?.replace(/<[^>]+>/g, ''))
      assert.deepEqual(cells('ada'), ['13-Nov-2026 14:00 UTC1 sign-in now', '27-Apr-2026 14:00 UTC'])
      assert.deepEqual(cells('idle'), ['Never', '14-Aug-2026 14:00 UTC'])
      assert.deepEqual(cells('older'), ['Not known', 'Not known'])
    })

    it('marks accounts that end at a public URL (ENDS-2)', async () => {
      const auth = await TestAuthServer.open(await open())
      await auth.addUser('ada', { admin: true })
      await auth.addUser('sample', { id: 'sample-id', for_loopback: true })
      const browser = await auth.logIn('ada')
      const readState = (page: string) =>
        /(Active.*?)<\/(?:td|dd)>/
          .exec(page)?.[1]
          ?.replace(/<[^>]+>/g, ' ')
          .replace(/ +/g, ' ')
      const { body } = await browser.get('/admin/clinicians?search=sample')
      const marked =
        /^Active Loopback only On a server with a public URL, the account works only after it gets a new password there\. $/
      assert.match(readState(body) ?? '', marked)
      assert.match(readState((await browser.get('/admin/clinicians/sample-id')).body) ?? '', marked)
      assert.doesNotMatch((await browser.get('/admin/clinicians?search=ada')).body, /Loopback only/)
    })

    it('exports the list as CSV, without formulas, and records it (ADMIN-28)', async () => {
      const store = await open()
      const auth = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
      await auth.addUser('ada', { admin: true })
      await auth.addUser('eve', { display_name: '=cmd|calc', disabled: true })
      const browser = await auth.logIn('ada')
      const all = await browser.get('/admin/users.csv')
      assert.equal(all.headers['content-type'], 'text/csv; charset=utf-8')
      assert.match(String(all.headers['content-disposition']), /filename="users\.csv"/)
      const [head, ...rows] = all.body.trimEnd().split('\r\n')
      assert.match(head ?? '', /^username,display_name,kind,.*,created_at,last_sign_in_at,/)
      assert.deepEqual(
        rows.map(row => row.split(',').slice(0, 2)),
        [
          ['ada', 'Dr. ada'],
          ['clinician', 'Dr. Robin Ahmadi'],
          ['eve', "'=cmd|calc"],
        ],
      )
      const disabled = (await browser.get('/admin/users.csv?state=disabled&search=ev')).body
      assert.equal(disabled.trimEnd().split('\r\n').length, 2)
      assert.doesNotMatch(disabled, /^ada,|password_hash|\$2/m)
      const [record] = await findRecords(store, { events: [{ kind: 'admin' }], limit: 1 })
      assert.equal(record?.request, 'users export')
      const other = await auth.logIn()
      assert.equal((await other.get('/admin/users.csv')).statusCode, 403)
    })
  })
})
