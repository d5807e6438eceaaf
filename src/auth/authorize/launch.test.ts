import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { sha256 } from '../../store/index.ts'
import { readAnswer, TestAuthServer } from '../testing/test-auth-server.ts'
import type { TestBrowser } from '../testing/test-browser.ts'

eachDatabase((_name, open) => {
  describe('a launch token at /oauth2/authorize', () => {
    let house: TestAuthServer
    let visitor: TestBrowser
    before(async () => {
      house = await TestAuthServer.open(await open())
      visitor = await house.loggedIn()
      await house.addClient({ client_id: 'other' })
      await house.addClinician('colleague')
    })

    const refused = async (browser: TestBrowser, different: Record<string, string | undefined>) => {
      const answer = readAnswer(await house.authorize(browser, different))
      assert.equal(answer.code, undefined)
      return answer.error
    }

    it('is exchanged for one code', async () => {
      const launch = await house.launch(visitor)
      assert.ok(readAnswer(await house.authorize(visitor, { launch })).code)
      assert.equal(await refused(visitor, { launch }), 'invalid_request')
    })

    it('is exchanged for one code when 50 requests use it at once', async () => {
      const launch = await house.launch(visitor)
      const responses = await Promise.all(
        Array.from({ length: 50 }, () => house.authorize(visitor, { launch })),
      )
      const answers = responses.map(readAnswer)
      assert.equal(answers.filter(answer => answer.code !== undefined).length, 1)
      assert.equal(answers.filter(answer => answer.error === 'invalid_request').length, 49)
    })

    it('is kept when the request that names it is refused', async () => {
      const launch = await house.launch(visitor)
      await refused(visitor, { launch, scope: 'launch', aud: 'https://evil.example' })
      assert.ok(readAnswer(await house.authorize(visitor, { launch })).code)
    })

    it('is refused after 5 minutes', async () => {
      const [launch, late] = [await house.launch(visitor), await house.launch(visitor)]
      house.time.now += 5 * 60_000 - 1
      assert.ok(readAnswer(await house.authorize(visitor, { launch })).code)
      house.time.now += 1
      assert.equal(await refused(visitor, { launch: late }), 'invalid_request')
    })

    it('is refused with another client, and kept for the right one', async () => {
      const launch = await house.launch(visitor)
      const other = { client_id: 'other', redirect_uri: 'https://other.example/callback' }
      assert.equal(await refused(visitor, { ...other, launch }), 'invalid_request')
      assert.ok(readAnswer(await house.authorize(visitor, { launch })).code)
    })

    it('is refused with another clinician', async () => {
      const launch = await house.launch(visitor)
      assert.equal(await refused(await house.loggedIn('colleague'), { launch }), 'invalid_request')
      assert.ok(readAnswer(await house.authorize(visitor, { launch })).code)
    })

    it('is refused when it was made for another FHIR base', async () => {
      const launch = await house.launch(visitor)
      const move = house.store.db.updateTable('launch_token').set({ fhir_base_url: 'https://elsewhere/fhir' })
      await move.where('token_hash', '=', sha256(launch)).execute()
      assert.equal(await refused(visitor, { launch }), 'invalid_request')
    })

    it('is refused without the scope launch', async () => {
      const launch = await house.launch(visitor)
      const scope = 'openid launch/patient patient/Patient.rs'
      assert.equal(await refused(visitor, { launch, scope }), 'invalid_request')
    })

    it('is stored as its SHA-256, with its context, client, clinician and FHIR base', async () => {
      const launch = await house.launch(visitor, { encounterId: 'enc-2' })
      assert.match(launch, /^[\w-]{43}$/)
      const row = await house.store.db
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
          created_at: house.time.now,
          expires_at: house.time.now + 300_000,
          used_at: null,
        },
      )
    })
  })
})
