import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../../test/support/databases.ts'
import { createAuditor } from '../../../audit/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { decodeClaims, readRedirect, TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { patient } from '../../testing/test-fhir-server.ts'

const REDIRECT = { redirect_uri: 'https://diary.example/callback' }
const SCOPE = 'launch/patient patient/*.rs'

eachDatabaseIfThorough((_name, open) => {
  describe('access that has ended', () => {
    let auth: TestAuthServer
    let alba: TestBrowser
    before(async () => {
      const store = await open()
      auth = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
      await auth.addUser('alba', { fhir_user_id: 'Patient/juniper' })
      await auth.addUser('other', { fhir_user_id: 'Patient/juniper' })
      await auth.addUser('third', { fhir_user_id: 'Patient/juniper' })
      await auth.addUser('ada', { admin: true })
      for (const [id, name] of [
        ['diary', 'Diary'],
        ['kept', 'Kept'],
      ] as const)
        await auth.addClient({
          client_id: id,
          name,
          scope: `${SCOPE} online_access offline_access`,
          redirect_uris: JSON.stringify([REDIRECT.redirect_uri]),
        })
      alba = await auth.logIn('alba')
    })

    const allow = async (more = '', client = { client_id: 'diary' }, browser = alba) => {
      const asked = { ...client, ...REDIRECT, scope: `${SCOPE}${more}`, prompt: 'none' }
      const { code = '' } = readRedirect(await auth.authorize(browser, asked))
      return (await auth.exchange(code, { ...client, ...REDIRECT })).json()
    }

    /** The rows of the page, as texts. */
    const list = async (query = '', browser = alba) => {
      const { body } = await browser.get(`/manage${query}`)
      const section = /<section[^>]* id="earlier"[\s\S]*?<\/section>/.exec(body)?.[0] ?? ''
      const rows = [...section.matchAll(/<tr role="row">([\s\S]*?)<\/tr>/g)].map(([, row = '']) =>
        row
          .replace(/<[^>]+>/g, ' ')
          .replace(/\s+/g, ' ')
          .trim(),
      )
      return { section, rows: rows.filter(row => !row.startsWith('App For')) }
    }

    it('is listed with the app, whose record it was, when it was allowed, when and how it ended (REVOKE-6)', async () => {
      assert.match((await list()).section, /No access of an app that you allowed has ended yet\./)
      await allow(' offline_access', { client_id: 'kept' })
      await allow()
      auth.time.now += 301_000
      await allow(' offline_access')
      auth.time.now += 60_000
      await alba.post('/manage/remove', { client: 'diary', patient: 'juniper' })
      const { refresh_token } = await allow(' offline_access')
      auth.time.now += 60_000
      await auth.openBrowser().post('/oauth2/revoke', { token: refresh_token, client_id: 'diary' })
      const { access_token } = await allow(' offline_access')
      auth.time.now += 60_000
      const grant = String(decodeClaims(access_token).jti).split('.')[0]
      const ada = await auth.logIn('ada')
      assert.equal((await ada.post(`/admin/grants/${grant}/revoke`, {})).statusCode, 303)
      await allow(' online_access')
      auth.time.now += 60_000
      await alba.post('/logout', {})
      alba = await auth.logIn('alba')
      const { rows } = await list()
      assert.deepEqual(
        rows.map(row => row.replace(/^Diary App of the hospital Alba juniper Born /i, '')),
        [
          '14-Mar-1958 13-Nov-2026 14:08 UTC 13-Nov-2026 14:09 UTC You signed out',
          '14-Mar-1958 13-Nov-2026 14:07 UTC 13-Nov-2026 14:08 UTC The hospital or practice ended it',
          '14-Mar-1958 13-Nov-2026 14:06 UTC 13-Nov-2026 14:07 UTC The app ended it',
          '14-Mar-1958 13-Nov-2026 14:05 UTC 13-Nov-2026 14:06 UTC You ended it',
          '14-Mar-1958 13-Nov-2026 14:00 UTC 13-Nov-2026 14:05 UTC It expired',
        ],
      )
    })

    it('ends with the sign-in that allowed it, and not with a change of the password there or another sign-in', async () => {
      const [here, elsewhere] = [await auth.logIn('other'), await auth.logIn('other')]
      await allow(' online_access', undefined, here)
      await allow(' online_access', undefined, elsewhere)
      auth.time.now += 60_000
      const third = await auth.logIn('other')
      await third.post('/logout', {})
      auth.time.now += 60_000
      const password = 'granite lantern orchard'
      const form = { current: 'sallyport', next: password, again: password }
      assert.equal((await here.post('/account/password', form)).statusCode, 303)
      auth.time.now += 60_000
      await here.post('/logout', {})
      const after = auth.openBrowser()
      await after.login('other', password)
      const { rows } = await list('', after)
      assert.deepEqual(
        rows.map(row => row.split(' UTC ').slice(-2)),
        [
          ['13-Nov-2026 14:11', 'You changed your password'],
          ['13-Nov-2026 14:12', 'You signed out'],
        ],
      )
    })

    it('says that a relative no longer acts for a person, or that the name cannot be read now', async () => {
      const resources = [
        patient('zoe', 'Alabaster', 'Zoë'),
        { resourceType: 'RelatedPerson', id: 'r-zoe', patient: { reference: 'Patient/zoe' } },
      ]
      const store = await open()
      const other = await TestAuthServer.open(store, { resources, audit: createAuditor({ store }) })
      await other.addUser('mum', { fhir_user_id: 'RelatedPerson/r-zoe' })
      const { id } = await store.db
        .selectFrom('clinician')
        .select('id')
        .where('username', '=', 'mum')
        .executeTakeFirstOrThrow()
      await store.db
        .insertInto('account_related_person')
        .values({ clinician_id: id, related_person_id: 'r-zoe' })
        .execute()
      const redirect_uris = JSON.stringify([REDIRECT.redirect_uri])
      await other.addClient({ client_id: 'diary', name: 'Diary', scope: SCOPE, redirect_uris })
      const mum = await other.logIn('mum')
      const asked = { client_id: 'diary', ...REDIRECT, scope: SCOPE, prompt: 'none' }
      const { code = '' } = readRedirect(await other.authorize(mum, asked))
      await other.exchange(code, { client_id: 'diary', ...REDIRECT })
      await mum.post('/manage/remove', { client: 'diary' })
      const show = async () => (await list('', mum)).rows[0] ?? ''
      assert.match(await show(), /Zoë Alabaster/)
      other.fhir.fail('no-response')
      assert.match(await show(), /Name temporarily unavailable/)
      for (const how of [403, undefined] as const) {
        other.fhir.fail(how)
        resources.splice(0)
        assert.match(await show(), /You no longer act for this person/)
      }
    })

    it('keeps the name of an app that was removed, and is shown to nobody else', async () => {
      await auth.store.db.deleteFrom('client').where('client_id', '=', 'diary').execute()
      assert.match((await list()).rows[0] ?? '', /^Diary /)
      assert.deepEqual((await list('', await auth.logIn('third'))).rows, [])
      assert.doesNotMatch((await (await auth.logIn()).get('/manage')).body, /Access that has ended/)
    })

    it('is not the access of an app that did not exchange its code', async () => {
      const before = (await list()).rows.length
      const asked = { client_id: 'kept', ...REDIRECT, scope: SCOPE, prompt: 'none' }
      assert.ok(readRedirect(await auth.authorize(alba, asked)).code)
      auth.time.now += 301_000
      assert.equal((await list()).rows.length, before)
    })

    it('is listed in pages', async () => {
      for (let at = 0; at < LIMITS.pastAccess; at++) await allow('', { client_id: 'kept' })
      auth.time.now += 301_000
      const first = await list()
      assert.equal(first.rows.length, LIMITS.pastAccess)
      const [, older = ''] = /href="\/manage(\?before=[0-9a-f]+)#earlier"/.exec(first.section) ?? []
      const second = await list(older)
      assert.equal(second.rows.length, 5)
      assert.doesNotMatch(second.section, /Show older/)
    })
  })
})
