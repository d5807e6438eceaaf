import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eachDatabase } from '../../test/support/databases.ts'
import { openStore, type Store } from '../store/index.ts'
import { SigningClient } from './testing/signing-client.ts'
import { readAnswer, TestAuthServer, VERIFIER } from './testing/test-auth-server.ts'
import { TestBrowser } from './testing/test-browser.ts'

const TIMES = 50

// Two instances, each with connections of its own to one database, are asked the same at the same moment.
eachDatabase((_name, _open, create) => {
  describe('50 at the same moment, on two instances', () => {
    let houses: readonly [TestAuthServer, TestAuthServer]
    let client: SigningClient
    const stores: Store[] = []
    after(() => Promise.all(stores.map(store => store.close())))
    before(async () => {
      const url = await create()
      const first = await TestAuthServer.open(await openOn(url))
      houses = [first, await TestAuthServer.open(await openOn(url))]
      client = new SigningClient('back-end', first.time)
      await first.addClient({
        client_id: 'back-end',
        auth_method: 'private_key_jwt',
        jwks: client.jwks,
        scope: 'system/*.rs',
      })
    })

    async function openOn(url: string): Promise<Store> {
      const store = await openStore(url)
      stores.push(store)
      return store
    }
    const both = <T>(act: (house: TestAuthServer, at: number) => Promise<T>) =>
      Promise.all(Array.from({ length: TIMES }, (_, at) => act(houses[at % 2 ? 1 : 0], at)))
    /** The same browser at both instances. */
    const at = (house: TestAuthServer, visitor: TestBrowser) => {
      const same = new TestBrowser(house.app)
      for (const [cookie, value] of visitor.cookies) same.cookies.set(cookie, value)
      return same
    }

    it('one code is exchanged for tokens once, and a second use revokes them', async () => {
      const [first] = houses
      const code = await first.code(await first.loggedIn())
      const responses = await both(house => house.exchange(code))
      const won = responses.filter(response => response.statusCode === 200)
      assert.equal(won.length, 1)
      const lost = responses.filter(response => response.statusCode !== 200)
      assert.deepEqual(new Set(lost.map(response => response.json().error)), new Set(['invalid_grant']))
      const refreshed = await first.refresh(won[0]?.json().refresh_token)
      assert.equal(refreshed.json().error, 'invalid_grant')
    })

    it('one launch token gives one code', async () => {
      const [first] = houses
      const visitor = await first.loggedIn()
      const launch = await first.launch(visitor)
      const answers = await both(async house =>
        readAnswer(await house.authorize(at(house, visitor), { launch })),
      )
      assert.equal(answers.filter(answer => answer.code !== undefined).length, 1)
      const errors = answers.flatMap(answer => answer.error ?? [])
      assert.deepEqual(new Set(errors), new Set(['invalid_request']))
    })

    it('one assertion proves its client once', async () => {
      const form = { grant_type: 'client_credentials', scope: 'system/*.rs', ...client.proof() }
      const responses = await both(house => house.token(form))
      assert.equal(responses.filter(response => response.statusCode === 200).length, 1)
      const errors = responses.flatMap(response => response.json().error ?? [])
      assert.deepEqual(new Set(errors), new Set(['invalid_client']))
    })

    it('one refresh token rotates once, and every answered retry has that same successor', async () => {
      const [first] = houses
      const { refresh_token: token } = (await first.exchange(await first.code(await first.loggedIn()))).json()
      const responses = await both(house => house.refresh(token))
      const answered = responses.filter(response => response.statusCode === 200)
      const successors = new Set(answered.map(response => response.json().refresh_token))
      assert.equal(successors.size, 1)
      assert.ok(answered.length >= 1)
      const live = await first.store.db
        .selectFrom('refresh_token')
        .innerJoin('grant', 'grant.id', 'refresh_token.grant_id')
        .select('token_hash')
        .where('used_at', 'is', null)
        .where('grant.revoked_at', 'is', null)
        .where('grant.id', '=', grantIdOf(answered[0]?.json().access_token))
        .execute()
      assert.equal(live.length, 1)
    })

    it('one code with a wrong verifier among right ones is still exchanged once', async () => {
      const [first] = houses
      const code = await first.code(await first.loggedIn())
      const responses = await both((house, at) =>
        house.exchange(code, { code_verifier: at % 3 === 0 ? `${VERIFIER}x` : VERIFIER }),
      )
      assert.equal(responses.filter(response => response.statusCode === 200).length, 1)
    })
  })
})

function grantIdOf(accessToken: unknown): string {
  const claims = JSON.parse(Buffer.from(String(accessToken).split('.')[1] ?? '', 'base64url').toString())
  return String(claims.jti).split('.')[0] ?? ''
}
