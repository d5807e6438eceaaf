import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../test/support/databases.ts'
import {
  createAuditor,
  createEventIds,
  findRecords,
  type KeptRecord,
  type StoreAuditor,
  toAuditEvent,
} from '../audit/index.ts'
import { validate } from '../fhir/index.ts'
import { sha256 } from '../store/index.ts'
import { SigningClient } from './testing/signing-client.ts'
import { TestAuthServer, unknownToken } from './testing/test-auth-server.ts'
import type { TestBrowser } from './testing/test-browser.ts'

const ids = createEventIds(Buffer.alloc(32))

/** Kind, result, app, clinician, patient, launch, reason. */
type Line = readonly (string | number | boolean | null)[]

eachDatabaseIfThorough((_name, open) => {
  describe('the audit trail of the auth server', () => {
    let auditor: StoreAuditor
    let auth: TestAuthServer
    let clinician: TestBrowser
    let id: string
    const user = 'Practitioner/practitioner-1'
    before(async () => {
      const store = await open()
      auditor = createAuditor({ store })
      auth = await TestAuthServer.open(store, { audit: auditor })
      await auth.addClient({ client_id: 'other', auth_method: 'client_secret', secret_hash: 'x' })
      await auth.store.db.updateTable('clinician').set({ fhir_user_id: 'practitioner-1' }).execute()
      clinician = await auth.logIn()
      id = (await auth.store.db.selectFrom('clinician').select('id').executeTakeFirstOrThrow()).id
    })
    beforeEach(async () => {
      await auditor.flush()
      await (await auth.store.trail.read()).deleteFrom('audit_event').execute()
    })

    const records = (): Promise<KeptRecord[]> => findRecords(auth.store, { limit: 100, order: 'oldest' })
    const lines = async (): Promise<readonly Line[]> =>
      (await records()).map(it => {
        assert.deepEqual(validate(toAuditEvent(it, { ...auth.settings, ids })), [])
        const who = it.subject === null ? null : it.subject === id ? it.fhir_user : `${it.subject}?`
        return [it.kind, it.allowed, it.status, it.client_id, who, it.patient_id, it.launch_id, it.reason]
      })
    /** A launch that ended with a code, as the trail calls it. */
    const launched = async (): Promise<{ readonly launch: string; readonly code: string }> => {
      const code = await auth.getCode(clinician)
      const launch = (await records()).find(({ kind }) => kind === 'launch')?.launch_id
      await (await auth.store.trail.read()).deleteFrom('audit_event').execute()
      return { launch: launch ?? assert.fail('No launch was kept'), code }
    }
    const BAD_CODE = 'invalid_grant: The code is not valid for this request.'
    const BAD_TOKEN = 'invalid_grant: The refresh token is not valid.'
    const of = (launch: string) => ['sallyport-app', user, 'juniper', launch]

    it('records once who reused a code and that the grant ended', async () => {
      const { launch, code } = await launched()
      for (const status of [200, 400, 400]) assert.equal((await auth.exchange(code)).statusCode, status)
      const [issued, ...more] = await lines()
      assert.deepEqual(issued, ['token', true, 200, ...of(launch), null])
      assert.deepEqual(more, [
        ['revoke', true, 200, ...of(launch), 'A used code was sent again'],
        ['token', false, 400, ...of(launch), BAD_CODE],
        ['token', false, 400, ...of(launch), BAD_CODE],
      ])
    })

    it('records the attempts of a disabled app as its own', async () => {
      const { code } = await launched()
      const { refresh_token: token } = (await auth.exchange(code)).json()
      await (await auth.store.trail.read()).deleteFrom('audit_event').execute()
      const setDisabled = (disabled: boolean) =>
        auth.store.db
          .updateTable('client')
          .set({ disabled })
          .where('client_id', '=', 'sallyport-app')
          .execute()
      await setDisabled(true)
      try {
        assert.equal((await auth.refresh(token)).json().error, 'invalid_client')
        assert.equal((await auth.exchange('unknown')).json().error, 'invalid_client')
        await auditor.flush()
        assert.deepEqual(
          (await records()).map(({ kind, allowed, client_id }) => [kind, allowed, client_id]),
          [
            ['refresh', false, 'sallyport-app'],
            ['token', false, 'sallyport-app'],
          ],
        )
      } finally {
        await setDisabled(false)
      }
    })

    it('records once who reused a refresh token and that the grant ended', async () => {
      const { launch, code } = await launched()
      const { refresh_token: first } = (await auth.exchange(code)).json()
      const { refresh_token: second } = (await auth.refresh(first)).json()
      await auth.refresh(second)
      for (const _ of ['once', 'again']) assert.equal((await auth.refresh(first)).statusCode, 400)
      assert.deepEqual((await lines()).slice(3), [
        ['revoke', true, 200, ...of(launch), 'A used refresh token was sent again'],
        ['refresh', false, 400, ...of(launch), BAD_TOKEN],
        ['refresh', false, 400, ...of(launch), BAD_TOKEN],
      ])
      assert.doesNotMatch(JSON.stringify(await records()), new RegExp([first, second, code].join('|')))
    })

    it('names the registered client of a code that failed PKCE, and no one for an unregistered client', async () => {
      const { launch, code } = await launched()
      const unknown = 'invalid_client: The client is unknown or could not be authenticated.'
      await auth.exchange(code, { client_id: 'other', client_secret: 'guess' })
      await auth.exchange(unknownToken, { client_id: 'nobody' })
      await auth.exchange(unknownToken)
      // Their order within the same millisecond is not defined.
      assert.deepEqual((await lines()).toSorted(), [
        ['token', false, 400, 'sallyport-app', null, null, null, BAD_CODE],
        ['token', false, 401, null, null, null, null, unknown],
        ['token', false, 401, 'other', user, 'juniper', launch, unknown],
      ])
    })

    it('records why an assertion was refused, and for which client', async () => {
      const signer = new SigningClient('signer', auth.time)
      await auth.addClient({ client_id: 'signer', auth_method: 'private_key_jwt', jwks: signer.jwks })
      const form = { grant_type: 'client_credentials', scope: 'system/*.rs' }
      await auth.requestToken({ ...form, ...signer.makeProof({}, { kid: undefined }) })
      const reason = 'invalid_client: The client assertion was refused: kid is missing.'
      assert.deepEqual(await lines(), [['token', false, 401, 'signer', null, null, null, reason]])
    })

    it('records every refused request of an authenticated client that an administrator approved', async () => {
      const confidential = { auth_method: 'client_secret', secret_hash: sha256('right') } as const
      await auth.addClient({ client_id: 'proven', ...confidential })
      await auth.addClient({ client_id: 'unverified', ...confidential, approved: false })
      const ask = (client_id: string, client_secret: string) =>
        auth.requestToken({
          grant_type: 'client_credentials',
          scope: 'system/*.rs',
          client_id,
          client_secret,
        })
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

    it('records every request with an issued launch token, even before the login', async () => {
      const launch = await auth.launch(clinician)
      await (await auth.store.trail.read()).deleteFrom('audit_event').execute()
      for (const _ of ['once', 'again'])
        await auth.authorize(auth.openBrowser(), { launch, aud: 'http://other.example/fhir' })
      assert.equal((await lines()).length, 2)
    })

    it('records a revocation by the app once', async () => {
      const { launch, code } = await launched()
      const { access_token, refresh_token } = (await auth.exchange(code)).json()
      for (const token of [access_token, access_token, refresh_token, refresh_token, unknownToken])
        await auth.openBrowser().post('/oauth2/revoke', { token, client_id: 'sallyport-app' })
      const given = ['revoke', true, 200, 'sallyport-app']
      const reason = 'The app revoked the token'
      // A token does not always name its user as a resource.
      const [, one, other, ...more] = (await lines()).map(line => line.filter(it => it !== user))
      assert.deepEqual(more, [])
      assert.deepEqual(one, [...given, null, 'juniper', launch, reason])
      assert.deepEqual(other, [...given, 'juniper', launch, reason])
    })

    it('records app, clinician, launch and patient of a refused authorization', async () => {
      const launch = await auth.launch(clinician)
      const [{ launch_id } = assert.fail('No launch was kept')] = await records()
      await (await auth.store.trail.read()).deleteFrom('audit_event').execute()
      const refused = [
        { code_challenge: undefined },
        { aud: 'http://other.example/fhir' },
        { scope: 'fishing' },
        { redirect_uri: 'https://evil.example/' },
        { client_id: 'other', redirect_uri: 'https://other.example/callback' },
        { client_id: 'nobody' },
      ]
      for (const different of refused) await auth.authorize(clinician, { launch, ...different })
      await auth.authorize(auth.openBrowser(), { code_challenge: undefined })
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

    it('records the clinician of a login or failed login, and never an unknown username (AUDIT-4)', async () => {
      const browser = auth.openBrowser()
      await browser.login('clinician', 'wrong')
      await browser.login('my-password', 'clinician')
      await browser.login()
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
