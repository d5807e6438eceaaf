import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eachDatabase } from '../../test/support/databases.ts'
import { openStore, type Store } from '../store/index.ts'
import { SigningClient } from './testing/signing-client.ts'
import { readRedirect, TestAuthServer, VERIFIER } from './testing/test-auth-server.ts'
import { TestBrowser } from './testing/test-browser.ts'

const TIMES = 50

// Two instances with separate connections to one database get the same request at the same time.
eachDatabase((_name, _open, create) => {
  describe('50 concurrent requests on two instances', () => {
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
    const both = <T>(act: (auth: TestAuthServer, at: number) => Promise<T>) =>
      Promise.all(Array.from({ length: TIMES }, (_, at) => act(houses[at % 2 ? 1 : 0], at)))
    /** The same browser at both instances. */
    const at = (auth: TestAuthServer, browser: TestBrowser) => {
      const same = new TestBrowser(auth.app)
      for (const [cookie, value] of browser.cookies) same.cookies.set(cookie, value)
      return same
    }

    it('exchange one code once, and a second use revokes the tokens', async () => {
      const [first] = houses
      const code = await first.getCode(await first.logIn())
      const responses = await both(auth => auth.exchange(code))
      const won = responses.filter(response => response.statusCode === 200)
      assert.equal(won.length, 1)
      const lost = responses.filter(response => response.statusCode !== 200)
      assert.deepEqual(new Set(lost.map(response => response.json().error)), new Set(['invalid_grant']))
      const refreshed = await first.refresh(won[0]?.json().refresh_token)
      assert.equal(refreshed.json().error, 'invalid_grant')
    })

    it('get one code for one launch token', async () => {
      const [first] = houses
      const browser = await first.logIn()
      const launch = await first.launch(browser)
      const answers = await both(async auth =>
        readRedirect(await auth.authorize(at(auth, browser), { launch })),
      )
      assert.equal(answers.filter(answer => answer.code !== undefined).length, 1)
      const errors = answers.flatMap(answer => answer.error ?? [])
      assert.deepEqual(new Set(errors), new Set(['invalid_request']))
    })

    it('authenticate once with one assertion', async () => {
      const form = { grant_type: 'client_credentials', scope: 'system/*.rs', ...client.makeProof() }
      const responses = await both(auth => auth.requestToken(form))
      assert.equal(responses.filter(response => response.statusCode === 200).length, 1)
      const errors = responses.flatMap(response => response.json().error ?? [])
      assert.deepEqual(new Set(errors), new Set(['invalid_client']))
    })

    it('rotate one refresh token once, and every successful retry returns the same successor', async () => {
      const [first] = houses
      const { refresh_token: token } = (await first.exchange(await first.getCode(await first.logIn()))).json()
      const responses = await both(auth => auth.refresh(token))
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

    it('exchange one code once even if one of them has a wrong verifier', async () => {
      const [first] = houses
      const code = await first.getCode(await first.logIn())
      const responses = await both((auth, at) =>
        auth.exchange(code, { code_verifier: at % 3 === 0 ? `${VERIFIER}x` : VERIFIER }),
      )
      assert.equal(responses.filter(response => response.statusCode === 200).length, 1)
    })
  })
})

function grantIdOf(accessToken: unknown): string {
  const claims = JSON.parse(Buffer.from(String(accessToken).split('.')[1] ?? '', 'base64url').toString())
  return String(claims.jti).split('.')[0] ?? ''
}
