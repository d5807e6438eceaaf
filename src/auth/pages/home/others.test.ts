import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../../test/support/databases.ts'
import { sweep } from '../../../store/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { patient } from '../../testing/test-fhir-server.ts'

const APP = { client_id: 'tracker', redirect_uri: 'https://tracker.example/callback' }
const SCOPE = 'launch patient/Condition.rs'

eachDatabaseIfThorough((_name, open) => {
  describe('the apps of other people on /home', () => {
    let auth: TestAuthServer
    let [alba, clinician]: readonly TestBrowser[] = []
    before(async () => {
      // Without an audit trail.
      auth = await TestAuthServer.open(await open(), { resources: [patient('juniper', 'Juniper', 'Alba')] })
      await auth.addUser('alba', { fhir_user_id: 'Patient/juniper' })
      await auth.addClient({
        client_id: 'tracker',
        name: 'Heart Tracker',
        scope: `${SCOPE} online_access offline_access`,
      })
      alba = await auth.logIn('alba')
      clinician = await auth.logIn()
    })

    const show = async () => (await alba?.get('/home'))?.body ?? ''
    const launch = async (scope: string) => auth.getCode(clinician ?? assert.fail(), { ...APP, scope })

    it('are those whose code was exchanged, with or without a refresh token (PATIENTS-8, REVOKE-3)', async () => {
      for (const more of ['', ' online_access', ' offline_access']) {
        const code = await launch(SCOPE + more)
        assert.match(await show(), /Nobody else has allowed an app/)
        assert.match((await clinician?.get('/manage'))?.body ?? '', /No app has access/)
        await auth.exchange(code, APP)
        assert.match(
          await show(),
          /Heart Tracker[\s\S]*App of the hospital, used by Dr\. Robin Ahmadi\. Reads conditions\. Until /,
        )
        assert.equal((await show()).includes(', also while they are away.'), more.includes('offline'))
        assert.match(await show(), /You cannot end the access of those apps here/)
        await clinician?.post('/manage/remove', { client: 'tracker' })
        assert.match(await show(), /Nobody else has allowed an app/)
      }
    })

    it('are allowed by somebody, unless they are of the hospital (PATIENTS-8)', async () => {
      await auth.exchange(await launch(SCOPE), APP)
      assert.match(await show(), /App of the hospital, used by Dr\. Robin Ahmadi\./)
      const setFirstParty = (first_party: boolean) =>
        auth.store.db.updateTable('client').set({ first_party }).where('client_id', '=', 'tracker').execute()
      await setFirstParty(false)
      assert.match(await show(), /Allowed by Dr\. Robin Ahmadi\. Reads conditions/)
      await setFirstParty(true)
      await clinician?.post('/manage/remove', { client: 'tracker' })
    })

    it('are not those of a code that expired and was deleted (PATIENTS-8)', async () => {
      await launch(`${SCOPE} offline_access`)
      await auth.store.db.deleteFrom('authorization_code').execute()
      assert.match(await show(), /Nobody else has allowed an app/)
    })

    it('are not those of a code that was never exchanged, however long access tokens live (REVOKE-3)', async () => {
      const long = await TestAuthServer.open(await open(), {
        resources: [patient('juniper', 'Juniper', 'Alba')],
        settings: { accessTokenTtlSeconds: 6 * 3600 },
      })
      await long.addClient({ client_id: 'tracker', name: 'Heart Tracker', scope: SCOPE })
      const browser = await long.logIn()
      await long.getCode(browser, { ...APP, scope: SCOPE })
      long.time.now += 3 * 3_600_000
      await sweep(long.store, long.time.now)
      assert.match((await browser.get('/manage')).body, /No app has access/)
    })

    it('are found among many later grants for other records and for this one (PATIENTS-8)', async () => {
      const { db } = auth.store
      await auth.exchange(await launch(`${SCOPE} offline_access`), APP)
      const query = db.selectFrom('grant').selectAll().orderBy('created_at', 'desc')
      const grant = await query.where('revoked_at', 'is', null).executeTakeFirstOrThrow()
      const later = (patient_id: string) => (_: unknown, at: number) => ({
        ...grant,
        id: randomUUID(),
        patient_id,
        last_used_at: grant.last_used_at + 1 + at,
      })
      const copies = [
        ...Array.from({ length: 150 }, later('juniper')),
        ...Array.from({ length: 150 }, later('ashlar')),
      ]
      await db.insertInto('grant').values(copies).execute()
      const body = await show()
      assert.equal(body.match(/Heart Tracker/g)?.length, 1)
      assert.doesNotMatch(body, /There may be others/)
    })

    it('are all listed, each once (PATIENTS-8)', async () => {
      const users = Array.from({ length: LIMITS.appsListed + 2 }, (_, at) => `colleague-${at}`)
      for (const name of users) {
        await auth.addUser(name)
        const browser = await auth.logIn(name)
        for (let at = 0; at < 2; at++)
          await auth.exchange(await auth.getCode(browser, { ...APP, scope: SCOPE }), APP)
      }
      const body = await show()
      for (const name of users)
        assert.equal(
          body.match(new RegExp(`App of the hospital, used by Dr\\. ${name}\\.`, 'g'))?.length,
          1,
          name,
        )
      assert.match(body, /<summary>3 more<\/summary>/)
    })
  })
})
