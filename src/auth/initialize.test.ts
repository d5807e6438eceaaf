import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachDatabase } from '../../test/support/databases.ts'
import { createSealer, openStore, REMOVED, sweep } from '../store/index.ts'
import { initialize } from './initialize.ts'
import { testSettings } from './testing/settings.ts'
import { isPasswordOf } from './users/passwords.ts'

eachDatabase((_name, open, create) => {
  describe('initialize', () => {
    const seal = createSealer('secret')

    it("creates an encrypted signing key, the app's own client and the test clinician (KEY-2, CLIENT-1, LOGIN-3)", async () => {
      const store = await open()
      assert.deepEqual(await initialize({ settings: testSettings, store, sealer: seal, clock: () => 1 }), {
        seeded: true,
      })
      const [key] = await store.db.selectFrom('signing_key').selectAll().execute()
      assert.equal(key?.private_jwk_sealed.includes('"d"'), false)
      const cell = { table: 'signing_key', column: 'private_jwk_sealed', row: key?.kid ?? '' } as const
      assert.match(seal.open(key?.private_jwk_sealed ?? '', cell), /"d":/)
      assert.doesNotMatch(key?.public_jwk ?? '', /"(d|p|q|dp|dq|qi)"/)
      assert.deepEqual(await store.db.selectFrom('client').selectAll().execute(), [
        {
          client_id: 'sallyport-app',
          name: 'Demo app',
          description: null,
          logo_url: null,
          website_url: null,
          policy_url: null,
          terms_url: null,
          contacts: '[]',
          auth_method: 'none',
          secret_hash: null,
          jwks: null,
          jwks_url: null,
          redirect_uris: '["http://localhost:8081/callback"]',
          post_logout_redirect_uris: '["http://localhost:8081/logout"]',
          launch_url: 'http://localhost:8081/launch',
          scope: testSettings.app.scope,
          first_party: true,
          approved: true,
          pkce_required: true,
          iss_parameter: true,
          created_at: 1,
          expires_at: null,
          disabled: false,
          document_until: null,
          registered_by: null,
          enabled_at: null,
          for_loopback: false,
        },
      ])
      const [clinician] = await store.db.selectFrom('clinician').selectAll().execute()
      assert.match(
        clinician?.id ?? '',
        /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      )
      assert.equal(clinician?.username, 'clinician')
      assert.equal(clinician?.display_name, 'Dr. Robin Ahmadi')
      assert.equal(clinician?.fhir_user_id, 'practitioner-1')
      assert.ok(await isPasswordOf(clinician?.password_hash, 'sallyport'))
    })

    it("registers the app's own client again while its removal is not complete", async () => {
      const store = await open()
      const start = () => initialize({ settings: testSettings, store, sealer: seal, clock: () => 1 })
      await start()
      await store.db
        .updateTable('client')
        .set({ disabled: true, enabled_at: 5, expires_at: REMOVED })
        .execute()
      await start()
      await sweep(store, 10)
      const [client] = await store.db.selectFrom('client').selectAll().execute()
      assert.deepEqual([client?.disabled, client?.enabled_at], [false, 5])
    })

    it("changes only the settings of the app's own client on later starts (CLIENT-1)", async () => {
      const store = await open()
      await initialize({ settings: testSettings, store, sealer: seal })
      const [before] = await store.db.selectFrom('signing_key').selectAll().execute()
      await store.db.updateTable('clinician').set({ username: 'renamed' }).execute()
      const settings = {
        ...testSettings,
        smartClientLaunchUrl: 'https://app.example/launch',
        appUrl: 'https://app.example',
      }
      assert.deepEqual(await initialize({ settings, store, sealer: seal }), { seeded: false })
      assert.deepEqual(await store.db.selectFrom('signing_key').selectAll().execute(), [before])
      const usernames = await store.db.selectFrom('clinician').select('username').execute()
      assert.deepEqual(usernames, [{ username: 'renamed' }])
      const [client] = await store.db.selectFrom('client').selectAll().execute()
      assert.equal(client?.launch_url, 'https://app.example/launch')
      assert.equal(client?.redirect_uris, '["https://app.example/callback"]')
    })

    it('creates the test clinician again after the last clinician was removed, with the given Practitioner (LOGIN-3)', async () => {
      const store = await open()
      await initialize({ settings: testSettings, store, sealer: seal })
      await store.db.deleteFrom('clinician').execute()
      const again = await initialize({ settings: testSettings, store, sealer: seal, practitionerId: 'dr-7' })
      assert.equal(again.seeded, true)
      const [clinician] = await store.db.selectFrom('clinician').select('fhir_user_id').execute()
      assert.equal(clinician?.fhir_user_id, 'dr-7')
    })

    it('has the random password that a start prints replaced at the first sign-in, and no other (LOGIN-3)', async () => {
      for (const isPasswordRandom of [true, false]) {
        const store = await open()
        await initialize({ settings: testSettings, store, sealer: seal, isPasswordRandom })
        const [clinician] = await store.db.selectFrom('clinician').select('must_change_password').execute()
        assert.equal(clinician && Boolean(clinician.must_change_password), isPasswordRandom)
      }
    })

    it('stops the start if the secret cannot decrypt the key (KEY-2)', async () => {
      const store = await open()
      await initialize({ settings: testSettings, store, sealer: seal })
      await assert.rejects(
        initialize({ settings: testSettings, store, sealer: createSealer('another secret') }),
        /^Error: Cannot decrypt signing_key\.private_jwk_sealed: it was changed, moved, or encrypted with another SMART_SECRET$/,
      )
    })

    it('creates one key and one clinician if several instances start at once', async () => {
      const url = await create('empty')
      const stores = await Promise.all(Array.from({ length: 4 }, () => openStore(url)))
      const results = await Promise.all(
        stores.map(store => initialize({ settings: testSettings, store, sealer: seal })),
      )
      assert.equal(results.filter(({ seeded }) => seeded).length, 1)
      const [first] = stores
      assert.equal((await first?.db.selectFrom('signing_key').select('kid').execute())?.length, 1)
      assert.equal((await first?.db.selectFrom('clinician').select('id').execute())?.length, 1)
      await Promise.all(stores.map(store => store.close()))
    })
  })
})
