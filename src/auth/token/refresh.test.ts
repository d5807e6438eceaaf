import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { sha256, sweep } from '../../store/index.ts'
import { LIFETIME } from '../lifetimes.ts'
import { decodeClaims, strangerToken, TestAuthServer } from '../testing/test-auth-server.ts'
import type { TestBrowser } from '../testing/test-browser.ts'

const OFFLINE = {
  client_id: 'offline',
  redirect_uri: 'https://offline.example/callback',
  scope: 'launch openid fhirUser offline_access patient/*.rs',
}
const AS_OFFLINE = { client_id: OFFLINE.client_id, redirect_uri: OFFLINE.redirect_uri }

eachDatabase((_name, open) => {
  describe('refresh', () => {
    let house: TestAuthServer
    let visitor: TestBrowser
    before(async () => {
      house = await TestAuthServer.open(await open())
      visitor = await house.loggedIn()
      await house.addClient({ client_id: 'offline' })
    })

    async function online(browser = visitor) {
      return (await house.exchange(await house.code(browser))).json()
    }
    async function offline(browser = visitor) {
      return (await house.exchange(await house.code(browser, OFFLINE), AS_OFFLINE)).json()
    }

    it('gives a new access token for the same patient, and rotates', async () => {
      const first = await online()
      house.time.now += 1000
      const response = await house.refresh(first.refresh_token)
      const body = response.json()
      assert.equal(response.statusCode, 200)
      assert.equal(response.headers['cache-control'], 'no-store')
      assert.notEqual(body.refresh_token, first.refresh_token)
      assert.equal(body.scope, first.scope)
      assert.equal(body.expires_in, 300)
      assert.equal(body.patient, 'juniper')
      assert.equal(body.need_patient_banner, true)
      assert.equal(decodeClaims(body.access_token).patient, 'juniper')
      assert.equal(decodeClaims(body.id_token).sub, decodeClaims(first.id_token).sub)
      assert.equal('nonce' in decodeClaims(body.id_token), false)
      assert.equal((await house.refresh(body.refresh_token)).statusCode, 200)
    })

    it('takes a successor that was moved from the row of another token for none, and ends the grant', async () => {
      const [{ refresh_token: own }, { refresh_token: other }] = [await online(), await online()]
      const { refresh_token: successor } = (await house.refresh(own)).json()
      await house.refresh(other)
      const { db } = house.store
      const { successor_sealed } = await db
        .selectFrom('refresh_token')
        .select('successor_sealed')
        .where('token_hash', '=', sha256(other))
        .executeTakeFirstOrThrow()
      await db
        .updateTable('refresh_token')
        .set({ successor_sealed })
        .where('token_hash', '=', sha256(own))
        .execute()
      for (const token of [own, successor]) {
        const response = await house.refresh(token)
        assert.deepEqual([response.statusCode, response.json().error], [400, 'invalid_grant'])
      }
    })

    it('answers the retry of a lost response with the same successor', async () => {
      const { refresh_token: token } = await online()
      const first = (await house.refresh(token)).json()
      house.time.now += LIFETIME.refreshRetry
      const retry = await house.refresh(token)
      assert.equal(retry.statusCode, 200)
      assert.equal(retry.json().refresh_token, first.refresh_token)
      assert.equal((await house.refresh(first.refresh_token)).statusCode, 200)
    })

    it('keeps a successor readable no longer than it may be asked for again', async () => {
      const { refresh_token: token } = await online()
      await house.refresh(token)
      const kept = async () =>
        (
          await house.store.db
            .selectFrom('refresh_token')
            .select('successor_sealed')
            .where('token_hash', '=', sha256(token))
            .executeTakeFirstOrThrow()
        ).successor_sealed
      house.time.now += LIFETIME.refreshRetry
      await sweep(house.store, house.time.now)
      assert.ok(await kept())
      assert.equal((await house.refresh(token)).statusCode, 200)
      house.time.now += 1
      await sweep(house.store, house.time.now)
      assert.equal(await kept(), null)
      assert.equal((await house.refresh(token)).json().error, 'invalid_grant')
    })

    it('ends the grant when a token comes again after the retry window', async () => {
      const { refresh_token: token } = await online()
      const { refresh_token: successor } = (await house.refresh(token)).json()
      house.time.now += LIFETIME.refreshRetry + 1
      assert.equal((await house.refresh(token)).json().error, 'invalid_grant')
      assert.equal((await house.refresh(successor)).json().error, 'invalid_grant')
    })

    it('ends the grant when a token comes again after its successor was used', async () => {
      const { refresh_token: token } = await online()
      const { refresh_token: successor } = (await house.refresh(token)).json()
      const { refresh_token: third } = (await house.refresh(successor)).json()
      assert.equal((await house.refresh(token)).json().error, 'invalid_grant')
      assert.equal((await house.refresh(third)).json().error, 'invalid_grant')
    })

    it('ends the grant when a token comes again with other parameters', async () => {
      const { refresh_token: token } = await online()
      const { refresh_token: successor } = (await house.refresh(token)).json()
      assert.equal((await house.refresh(token, { scope: 'openid' })).json().error, 'invalid_grant')
      assert.equal((await house.refresh(successor)).json().error, 'invalid_grant')
    })

    it('rotates once when 50 ask at the same moment, and all get that one successor', async () => {
      const { refresh_token: token } = await online()
      const responses = await Promise.all(Array.from({ length: 50 }, () => house.refresh(token)))
      assert.ok(responses.every(response => response.statusCode === 200))
      const successors = new Set(responses.map(response => response.json().refresh_token))
      assert.equal(successors.size, 1)
      const [successor = ''] = successors
      assert.equal((await house.refresh(successor)).statusCode, 200)
    })

    it('leaves one live branch when an old token and its successor are used at the same moment', async () => {
      const { refresh_token: token } = await online()
      const { refresh_token: successor } = (await house.refresh(token)).json()
      await Promise.all(Array.from({ length: 20 }, (_, at) => house.refresh(at % 2 ? token : successor)))
      const { grant_id: grant } = await house.store.db
        .selectFrom('refresh_token')
        .select('grant_id')
        .orderBy('created_at', 'desc')
        .limit(1)
        .executeTakeFirstOrThrow()
      const live = await house.store.db
        .selectFrom('refresh_token')
        .select('token_hash')
        .where('grant_id', '=', grant)
        .where('used_at', 'is', null)
        .execute()
      assert.equal(live.length, 1)
    })

    it('narrows by scope, accepts the same set, and keeps the grant as it was', async () => {
      const { refresh_token: token, scope } = await online()
      const narrowed = (await house.refresh(token, { scope: 'patient/Patient.r' })).json()
      assert.equal(narrowed.scope, 'patient/Patient.r')
      assert.equal(decodeClaims(narrowed.access_token).scope, 'patient/Patient.r')
      const same = (await house.refresh(narrowed.refresh_token, { scope })).json()
      assert.equal(same.scope, scope)
      assert.equal((await house.refresh(same.refresh_token)).json().scope, scope)
    })

    it('refuses a wider scope and leaves the token usable', async () => {
      const { refresh_token: token } = await online()
      for (const scope of [
        'patient/*.rs',
        'patient/Patient.cruds',
        'openid user/Patient.rs',
        'nonsense',
        ' ',
      ]) {
        const response = await house.refresh(token, { scope })
        assert.equal(response.statusCode, 400, scope)
        assert.equal(response.json().error, 'invalid_scope', scope)
      }
      assert.equal((await house.refresh(token)).statusCode, 200)
    })

    it('refuses an unknown token and one of another client, which stays usable', async () => {
      const { refresh_token: token } = await online()
      assert.equal((await house.refresh(strangerToken)).json().error, 'invalid_grant')
      assert.equal((await house.refresh(token, { client_id: 'offline' })).json().error, 'invalid_grant')
      assert.equal((await house.refresh(token)).statusCode, 200)
    })

    it('needs no client_id of a public client, and the proof of any other', async () => {
      const { refresh_token: token } = await online()
      const nameless = (refresh_token: string) => house.token({ grant_type: 'refresh_token', refresh_token })
      assert.equal((await nameless(token)).statusCode, 200)
      const { refresh_token: other } = await offline()
      await house.store.db
        .updateTable('client')
        .set({ auth_method: 'client_secret', secret_hash: 'x' })
        .where('client_id', '=', 'offline')
        .execute()
      assert.equal((await nameless(other)).json().error, 'invalid_client')
      assert.equal((await nameless(strangerToken)).json().error, 'invalid_client')
      await house.store.db
        .updateTable('client')
        .set({ auth_method: 'none', secret_hash: null })
        .where('client_id', '=', 'offline')
        .execute()
    })

    it('ends online_access with the logout, offline_access does not end', async () => {
      const browser = await house.loggedIn()
      const [bound, free] = [await online(browser), await offline(browser)]
      await browser.post('/logout', {})
      assert.equal((await house.refresh(bound.refresh_token)).json().error, 'invalid_grant')
      assert.equal((await house.refresh(free.refresh_token, AS_OFFLINE)).statusCode, 200)
    })

    it('ends online_access after 8 hours however often it is renewed, offline_access 100 days after its last use', async () => {
      const browser = await house.loggedIn()
      let { refresh_token: bound } = await online(browser)
      let { refresh_token: free } = await offline(browser)
      for (let hour = 1; hour < 8; hour++) {
        house.time.now += 3_600_000
        bound = (await house.refresh(bound)).json().refresh_token
      }
      house.time.now += 3_600_000 - 60_000
      const last = (await house.refresh(bound)).json()
      bound = last.refresh_token
      // No token outlives its grant.
      assert.deepEqual([last.expires_in, last.refresh_token_expires_in], [60, 60])
      assert.equal(decodeClaims(last.access_token).exp, Math.floor(house.time.now / 1000) + 60)
      house.time.now += 60_000
      assert.equal((await house.refresh(bound)).json().error, 'invalid_grant')
      for (const days of [99, 99]) {
        house.time.now += days * 86_400_000
        free = (await house.refresh(free, AS_OFFLINE)).json().refresh_token
      }
      house.time.now += 100 * 86_400_000
      assert.equal((await house.refresh(free, AS_OFFLINE)).json().error, 'invalid_grant')
      visitor = await house.loggedIn()
    })

    it('goes on when the same clinician logs in again, and ends when another does', async () => {
      await house.addClinician('second')
      const browser = await house.loggedIn()
      const { refresh_token: token } = await online(browser)
      await browser.login()
      const { refresh_token: next } = (await house.refresh(token)).json()
      await browser.login('second')
      assert.equal((await house.refresh(next)).json().error, 'invalid_grant')
    })

    it('refuses a disabled clinician', async () => {
      await house.addClinician('third')
      const { refresh_token: token } = await offline(await house.loggedIn('third'))
      const disable = house.store.db.updateTable('clinician').set({ disabled: true })
      await disable.where('username', '=', 'third').execute()
      assert.equal((await house.refresh(token, AS_OFFLINE)).json().error, 'invalid_grant')
    })
  })
})
