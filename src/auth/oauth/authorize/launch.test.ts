import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../../test/support/databases.ts'
import { sha256 } from '../../../store/index.ts'
import { readRedirect, TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'

eachDatabaseIfThorough((_name, open) => {
  describe('a launch token at /oauth2/authorize', () => {
    let auth: TestAuthServer
    let browser: TestBrowser
    before(async () => {
      auth = await TestAuthServer.open(await open())
      browser = await auth.logIn()
      await auth.addClient({ client_id: 'other' })
      await auth.addUser('colleague')
    })

    const refused = async (browser: TestBrowser, different: Record<string, string | undefined>) => {
      const answer = readRedirect(await auth.authorize(browser, different))
      assert.equal(answer.code, undefined)
      return answer.error
    }

    it('is exchanged for one code', async () => {
      const launch = await auth.launch(browser)
      assert.ok(readRedirect(await auth.authorize(browser, { launch })).code)
      assert.equal(await refused(browser, { launch }), 'invalid_request')
    })

    it('is exchanged for one code if 50 requests use it at once (LAUNCH-8)', async () => {
      const launch = await auth.launch(browser)
      const responses = await Promise.all(
        Array.from({ length: 50 }, () => auth.authorize(browser, { launch })),
      )
      const answers = responses.map(readRedirect)
      assert.equal(answers.filter(answer => answer.code !== undefined).length, 1)
      assert.equal(answers.filter(answer => answer.error === 'invalid_request').length, 49)
    })

    it('stays valid if the request that contains it is refused (LAUNCH-8)', async () => {
      const launch = await auth.launch(browser)
      await refused(browser, { launch, scope: 'launch', aud: 'https://evil.example' })
      assert.ok(readRedirect(await auth.authorize(browser, { launch })).code)
    })

    it('is refused after 5 minutes (LAUNCH-7)', async () => {
      const [launch, late] = [await auth.launch(browser), await auth.launch(browser)]
      auth.time.now += 5 * 60_000 - 1
      assert.ok(readRedirect(await auth.authorize(browser, { launch })).code)
      auth.time.now += 1
      assert.equal(await refused(browser, { launch: late }), 'invalid_request')
    })

    it('is refused with another client, and stays valid for its own (LAUNCH-9)', async () => {
      const launch = await auth.launch(browser)
      const other = { client_id: 'other', redirect_uri: 'https://other.example/callback' }
      assert.equal(await refused(browser, { ...other, launch }), 'invalid_request')
      assert.ok(readRedirect(await auth.authorize(browser, { launch })).code)
    })

    it('is refused with another clinician (LAUNCH-9)', async () => {
      const launch = await auth.launch(browser)
      assert.equal(await refused(await auth.logIn('colleague'), { launch }), 'invalid_request')
      assert.ok(readRedirect(await auth.authorize(browser, { launch })).code)
    })

    it('is refused with a page if its user was replaced at a sign-in on the way (LAUNCH-9)', async () => {
      const leaving = await auth.logIn()
      const launch = await auth.launch(leaving)
      const asked = await auth.authorize(leaving, { launch, prompt: 'consent' })
      assert.match(asked.headers.location ?? '', /^\/oauth2\/consent\?/)
      await leaving.post('/logout', {})
      const { interaction = '' } = readRedirect(await leaving.get(asked.headers.location ?? ''))
      const signedIn = await leaving.post('/login', {
        username: 'colleague',
        password: 'sallyport',
        interaction,
      })
      const page = await leaving.follow(signedIn, auth.settings.issuerUrl)
      assert.equal(page.statusCode, 400)
      assert.match(page.body, /Another user launched this app[\s\S]*signed in as [^.]*Dr\. colleague/)
      assert.match(page.body, /href="\/portal">Go to patients/)
      assert.match(page.body, /invalid_request/)
      assert.ok(readRedirect(await auth.authorize(browser, { launch })).code)
    })

    it('is refused if it was created for another FHIR base URL (LAUNCH-9)', async () => {
      const launch = await auth.launch(browser)
      const move = auth.store.db.updateTable('launch_token').set({ fhir_base_url: 'https://elsewhere/fhir' })
      await move.where('token_hash', '=', sha256(launch)).execute()
      assert.equal(await refused(browser, { launch }), 'invalid_request')
    })

    it('is refused without the scope launch', async () => {
      const launch = await auth.launch(browser)
      const scope = 'openid launch/patient patient/Patient.rs'
      assert.equal(await refused(browser, { launch, scope }), 'invalid_request')
    })

    it('is stored as its SHA-256 hash, with its context, client, clinician and FHIR base URL (LAUNCH-5)', async () => {
      const launch = await auth.launch(browser, { encounterId: 'enc-2' })
      assert.match(launch, /^[\w-]{43}$/)
      const row = await auth.store.db
        .selectFrom('launch_token')
        .selectAll()
        .where('token_hash', '=', sha256(launch))
        .executeTakeFirstOrThrow()
      assert.match(row.launch_id, /^[0-9a-f-]{36}$/)
      assert.deepEqual(
        { ...row, launch_id: '' },
        {
          token_hash: sha256(launch),
          patient_id: 'juniper',
          encounter_id: 'enc-2',
          need_patient_banner: true,
          client_id: 'sallyport-app',
          clinician_username: 'clinician',
          fhir_base_url: 'http://localhost:8080/fhir',
          launch_id: '',
          context: null,
          extension: null,
          created_at: auth.time.now,
          expires_at: auth.time.now + 300_000,
          used_at: null,
        },
      )
    })
  })
})
