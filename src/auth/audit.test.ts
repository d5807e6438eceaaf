import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { eachDatabase } from '../../test/support/databases.ts'
import {
  type CountingAuditor,
  createAuditor,
  findRecords,
  type KeptRecord,
  toAuditEvent,
} from '../audit/index.ts'
import { validate } from '../fhir/index.ts'
import { sha256 } from '../store/index.ts'
import { SigningClient } from './testing/signing-client.ts'
import { strangerToken, TestAuthServer } from './testing/test-auth-server.ts'
import type { TestBrowser } from './testing/test-browser.ts'

/** Kind, result, app, clinician, patient, launch, reason. */
type Line = readonly (string | number | boolean | null)[]

eachDatabase((_name, open) => {
  describe('the audit trail of the auth server', () => {
    let auditor: CountingAuditor
    let house: TestAuthServer
    let clinician: TestBrowser
    let id: string
    const user = 'Practitioner/practitioner-1'
    before(async () => {
      const store = await open()
      auditor = createAuditor({ store })
      house = await TestAuthServer.open(store, { audit: auditor })
      await house.addClient({ client_id: 'other', auth_method: 'client_secret', secret_hash: 'x' })
      await house.store.db.updateTable('clinician').set({ fhir_user_id: 'practitioner-1' }).execute()
      clinician = await house.loggedIn()
      id = (await house.store.db.selectFrom('clinician').select('id').executeTakeFirstOrThrow()).id
    })
    beforeEach(async () => {
      await auditor.flush()
      await house.store.db.deleteFrom('audit_event').execute()
    })

    const records = (): Promise<KeptRecord[]> => findRecords(house.store, { limit: 100, order: 'oldest' })
    const lines = async (): Promise<readonly Line[]> =>
      (await records()).map(it => {
        assert.deepEqual(validate(toAuditEvent(it)), [])
        const who = it.subject === null ? null : it.subject === id ? it.fhir_user : `${it.subject}?`
        return [it.kind, it.allowed, it.status, it.client_id, who, it.patient_id, it.launch_id, it.reason]
      })
    /** A launch that ended with a code, as the trail calls it. */
    const launched = async (): Promise<{ readonly launch: string; readonly code: string }> => {
      const code = await house.code(clinician)
      const launch = (await records()).find(({ kind }) => kind === 'launch')?.launch_id
      await house.store.db.deleteFrom('audit_event').execute()
      return { launch: launch ?? assert.fail('No launch was kept'), code }
    }
    const BAD_CODE = 'invalid_grant: The code is not valid for this request.'
    const BAD_TOKEN = 'invalid_grant: The refresh token is not valid.'
    const of = (launch: string) => ['sallyport-app', user, 'juniper', launch]

    it('tells whose code came again, and that the launch ended by it, once', async () => {
      const { launch, code } = await launched()
      for (const status of [200, 400, 400]) assert.equal((await house.exchange(code)).statusCode, status)
      const [issued, ...more] = await lines()
      assert.deepEqual(issued, ['token', true, 200, ...of(launch), null])
      assert.deepEqual(more, [
        ['revoke', true, 200, ...of(launch), 'A used code was sent again'],
        ['token', false, 400, ...of(launch), BAD_CODE],
        ['token', false, 400, ...of(launch), BAD_CODE],
      ])
    })

    it('tells whose refresh token came again, and that the launch ended by it, once', async () => {
      const { launch, code } = await launched()
      const { refresh_token: first } = (await house.exchange(code)).json()
      const { refresh_token: second } = (await house.refresh(first)).json()
      await house.refresh(second)
      for (const _ of ['once', 'again']) assert.equal((await house.refresh(first)).statusCode, 400)
      assert.deepEqual((await lines()).slice(3), [
        ['revoke', true, 200, ...of(launch), 'A used refresh token was sent again'],
        ['refresh', false, 400, ...of(launch), BAD_TOKEN],
        ['refresh', false, 400, ...of(launch), BAD_TOKEN],
      ])
      assert.doesNotMatch(JSON.stringify(await records()), new RegExp([first, second, code].join('|')))
    })

    it('tells whose code a registered app sent without proof; of who is not registered it names nobody', async () => {
      const { launch, code } = await launched()
      const unknown = 'invalid_client: The client is unknown or could not be authenticated.'
      await house.exchange(code, { client_id: 'other', client_secret: 'guess' })
      await house.exchange(strangerToken, { client_id: 'nobody' })
      await house.exchange(strangerToken)
      assert.deepEqual(await lines(), [
        ['token', false, 401, 'other', user, 'juniper', launch, unknown],
        ['token', false, 401, null, null, null, null, unknown],
        ['token', false, 400, 'sallyport-app', null, null, null, BAD_CODE],
      ])
    })

    it('tells why an assertion was refused, and whose it was', async () => {
      const signer = new SigningClient('signer', house.time)
      await house.addClient({ client_id: 'signer', auth_method: 'private_key_jwt', jwks: signer.jwks })
      const form = { grant_type: 'client_credentials', scope: 'system/*.rs' }
      await house.token({ ...form, ...signer.proof({}, { kid: undefined }) })
      const reason = 'invalid_client: The client assertion was refused: kid is missing.'
      assert.deepEqual(await lines(), [['token', false, 401, 'signer', null, null, null, reason]])
    })

    it('has a record for every refused request of a client that proved itself, unless it registered itself', async () => {
      const confidential = { auth_method: 'client_secret', secret_hash: sha256('right') } as const
      await house.addClient({ client_id: 'proven', ...confidential })
      await house.addClient({ client_id: 'unverified', ...confidential, approved: false })
      const ask = (client_id: string, client_secret: string) =>
        house.token({ grant_type: 'client_credentials', scope: 'system/*.rs', client_id, client_secret })
      for (const secret of ['right', 'wrong'])
        for (const client of ['proven', 'unverified']) {
          await ask(client, secret)
          await ask(client, secret)
        }
      assert.deepEqual(
        (await lines()).map(([, , status, client]) => [status, client]),
        [
          [400, 'proven'],
          [400, 'proven'],
          [400, 'unverified'],
          [401, 'proven'],
          [401, 'unverified'],
        ],
      )
    })

    it('has a record for every request with an issued launch token, also before a login', async () => {
      const launch = await house.launch(clinician)
      await house.store.db.deleteFrom('audit_event').execute()
      for (const _ of ['once', 'again'])
        await house.authorize(house.visitor(), { launch, aud: 'http://other.example/fhir' })
      assert.equal((await lines()).length, 2)
    })

    it('tells what an app gives back, once', async () => {
      const { launch, code } = await launched()
      const { access_token, refresh_token } = (await house.exchange(code)).json()
      for (const token of [access_token, access_token, refresh_token, refresh_token, strangerToken])
        await house.visitor().post('/oauth2/revoke', { token, client_id: 'sallyport-app' })
      const given = ['revoke', true, 200, 'sallyport-app']
      const reason = 'The app revoked the token'
      // A token does not always name its user as a resource.
      const [, one, other, ...more] = (await lines()).map(line => line.filter(it => it !== user))
      assert.deepEqual(more, [])
      assert.deepEqual(one, [...given, null, 'juniper', launch, reason])
      assert.deepEqual(other, [...given, 'juniper', launch, reason])
    })

    it('tells the app, the clinician, the launch and the patient of an authorization that is refused', async () => {
      const launch = await house.launch(clinician)
      const [{ launch_id } = assert.fail('No launch was kept')] = await records()
      await house.store.db.deleteFrom('audit_event').execute()
      const refused = [
        { code_challenge: undefined },
        { aud: 'http://other.example/fhir' },
        { scope: 'fishing' },
        { redirect_uri: 'https://evil.example/' },
        { client_id: 'other', redirect_uri: 'https://other.example/callback' },
        { client_id: 'nobody' },
      ]
      for (const different of refused) await house.authorize(clinician, { launch, ...different })
      await house.authorize(house.visitor(), { code_challenge: undefined })
      assert.deepEqual(
        (await lines()).map(line => line.slice(0, -1)),
        [
          ...[302, 302, 302, 400].map(status => ['authorize', false, status, 'sallyport-app', launch_id]),
          ['authorize', false, 302, 'other', launch_id],
        ]
          .map(line => [...line.slice(0, 4), user, 'juniper', line[4]])
          .concat([
            ['authorize', false, 400, null, user, null, null],
            ['authorize', false, 302, 'sallyport-app', null, null, null],
          ]),
      )
    })

    it('names the clinician of a login, also of one that failed; never what nobody is called', async () => {
      const visitor = house.visitor()
      await visitor.login('clinician', 'wrong')
      await visitor.login('my-password', 'clinician')
      await visitor.login()
      const failed = ['login', false, 401, null]
      const wrong = 'Wrong username or password'
      assert.deepEqual(await lines(), [
        [...failed, user, null, null, wrong],
        [...failed, null, null, null, wrong],
        ['login', true, 302, null, user, null, null, null],
      ])
      assert.doesNotMatch(JSON.stringify(await records()), /my-password/)
    })
  })
})
