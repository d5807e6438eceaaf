import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { decodeProtectedHeader, importJWK, jwtVerify } from 'jose'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { createSealer, type Store } from '../../../store/index.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import { openTestStore } from '../../testing/test-store.ts'
import { createKeyRing, type KeyRing, signOwnJwt, verifyOwnJwt } from './key-ring.ts'
import {
  makeFirstSigningKey,
  makeNextSigningKey,
  withdrawEveryKey,
  withdrawSigningKey,
} from './signing-key.ts'

const seal = createSealer('secret')

describe('GET /oauth2/jwks', () => {
  const open = openTestStore()

  it('publishes the public key and nothing private, to any origin (KEY-1)', async () => {
    const auth = await TestAuthServer.open(await open())
    const response = await auth.openBrowser().get('/oauth2/jwks')
    assert.equal(response.statusCode, 200)
    assert.match(String(response.headers['content-type']), /^application\/json/)
    assert.match(String(response.headers['cache-control']), /max-age=/)
    assert.equal(response.headers['access-control-allow-origin'], '*')
    const { keys } = response.json()
    assert.equal(keys.length, 1)
    assert.deepEqual(Object.keys(keys[0]).sort(), ['alg', 'e', 'kid', 'kty', 'n', 'use'])
    assert.equal(keys[0].alg, 'RS256')
  })
})

describe('createKeyRing', () => {
  const open = openTestStore()

  async function ringOn(store: Store, time: { now: number }): Promise<KeyRing> {
    await makeFirstSigningKey(store, seal, time.now)
    return createKeyRing({ store, sealer: seal, clock: () => time.now, publishedForMs: 360_000 })
  }

  it('publishes the next key before it signs, and the old one until its last token has expired (KEY-3)', async () => {
    const time = { now: 1_000_000 }
    const store = await open()
    const ring = await ringOn(store, time)
    const first = (await ring.getSigningKey()).publicJwk.kid
    await makeNextSigningKey(store, seal, { now: time.now, signsFrom: time.now + 8000 })
    time.now += 2000
    assert.equal((await ring.getSigningKey()).publicJwk.kid, first)
    assert.equal((await ring.listPublicKeys()).length, 2)
    time.now += 6000
    const second = (await ring.getSigningKey()).publicJwk.kid
    assert.notEqual(second, first)
    assert.deepEqual(new Set((await ring.listPublicKeys()).map(key => key.kid)), new Set([first, second]))
    time.now += 360_000
    assert.deepEqual(
      (await ring.listPublicKeys()).map(key => key.kid),
      [second],
    )
  })

  it('switches to the next key at the same time on every instance, whenever each read the keys', async () => {
    const time = { now: 1_000_000 }
    const store = await open()
    const rings = [await ringOn(store, time), await ringOn(store, time)]
    const kids = () => Promise.all(rings.map(async ring => (await ring.getSigningKey()).publicJwk.kid))
    await kids()
    await makeNextSigningKey(store, seal, { now: time.now, signsFrom: time.now + 8000 })
    time.now += 2500
    await rings[0]?.getSigningKey()
    time.now += 1000
    await rings[1]?.getSigningKey()
    time.now += 4499
    const before = await kids()
    time.now += 1
    const after = await kids()
    assert.equal(new Set(before).size, 1)
    assert.equal(new Set(after).size, 1)
    assert.notEqual(before[0], after[0])
  })

  it('creates a new key if the newest is too old, once for all instances (KEY-3)', async () => {
    const time = { now: 1_000_000 }
    const store = await open()
    await makeFirstSigningKey(store, seal, time.now)
    const options = { store, sealer: seal, clock: () => time.now, publishedForMs: 1, maxAgeMs: 86_400_000 }
    const rings = [createKeyRing(options), createKeyRing(options)]
    const first = (await rings[0]?.getSigningKey())?.publicJwk.kid
    time.now += 86_400_000
    await Promise.all(rings.map(ring => ring.getSigningKey()))
    const count = async () => (await store.db.selectFrom('signing_key').select('kid').execute()).length
    while ((await count()) < 2) await new Promise(resolve => setImmediate(resolve))
    assert.equal((await rings[1]?.getSigningKey())?.publicJwk.kid, first)
    time.now += 600_000
    const kids = await Promise.all(rings.map(async ring => (await ring.getSigningKey()).publicJwk.kid))
    assert.notEqual(kids[0], first)
    assert.equal(kids[0], kids[1])
    assert.equal(await count(), 2)
  })

  it('accepts one of several concurrent rotations', async () => {
    const store = await open()
    await makeFirstSigningKey(store, seal, 1)
    const times = { now: 2, signsFrom: 3 }
    const won = await Promise.all([1, 2, 3].map(() => makeNextSigningKey(store, seal, times, 1)))
    assert.equal(won.filter(Boolean).length, 1)
    const rows = await store.db
      .selectFrom('signing_key')
      .selectAll()
      .where('retired_at', 'is', null)
      .execute()
    assert.equal(rows.length, 1)
    assert.equal(rows[0]?.generation, 2)
  })

  it('withdraws a key at once, even the next signing key, and signs with a new one (KEY-4)', async () => {
    const time = { now: 1_000_000 }
    const store = await open()
    const ring = await ringOn(store, time)
    const { kid: leaked } = (await ring.getSigningKey()).publicJwk
    await makeNextSigningKey(store, seal, { now: time.now, signsFrom: time.now + 8000 })
    assert.equal(await withdrawSigningKey(store, seal, { kid: leaked, now: time.now }), true)
    assert.equal(await withdrawSigningKey(store, seal, { kid: leaked, now: time.now }), false)
    time.now += 2000
    const published = (await ring.listPublicKeys()).map(({ kid }) => kid)
    assert.equal(published.includes(leaked), false)
    const { kid } = (await ring.getSigningKey()).publicJwk
    assert.deepEqual([published.length, published.includes(kid)], [2, true])
    time.now += 8000
    assert.equal((await ring.getSigningKey()).publicJwk.kid, kid)
    const kept = await store.db.selectFrom('signing_key').select('kid').execute()
    assert.equal(kept.length, 2, 'the private part is gone too')
  })

  it('continues with its keys while the database is unavailable', async () => {
    const time = { now: 1_000_000 }
    const store = await open()
    const ring = await ringOn(store, time)
    const { kid } = (await ring.getSigningKey()).publicJwk
    await store.db.schema.alterTable('signing_key').renameTo('elsewhere').execute()
    time.now += 60_000
    assert.equal((await ring.getSigningKey()).publicJwk.kid, kid)
  })

  it('rejects if there is no key, or if the key was encrypted with another secret', async () => {
    const store = await open()
    const options = { store, sealer: seal, clock: () => 1, publishedForMs: 1 }
    await assert.rejects(createKeyRing(options).getSigningKey(), /there is no signing key/)
    await makeFirstSigningKey(store, createSealer('another'), 1)
    await assert.rejects(createKeyRing(options).getSigningKey(), /Cannot decrypt signing_key/)
  })
})

describe('signOwnJwt and verifyOwnJwt', () => {
  const open = openTestStore()

  it('sign JWTs that jose verifies, and accept only JWTs of our keys with the right type', async () => {
    const store = await open()
    const seal = createSealer('secret')
    await makeFirstSigningKey(store, seal, 1)
    const ring = createKeyRing({ store, sealer: seal, clock: () => 1, publishedForMs: 1 })
    const [key, published] = [await ring.getSigningKey(), await ring.listPublicKeys()]
    const token = await signOwnJwt(key, 'JWT', { sub: 'ü', exp: 1 })
    await jwtVerify(token, await importJWK(key.publicJwk), { currentDate: new Date(0) })
    assert.deepEqual(decodeProtectedHeader(token), { alg: 'RS256', typ: 'JWT', kid: key.publicJwk.kid })
    assert.deepEqual(verifyOwnJwt(token, 'JWT', published), { sub: 'ü', exp: 1 })
    const [header = '', payload = '', signature = ''] = token.split('.')
    const none = Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url')
    for (const forged of [
      `${header}.${Buffer.from('{"sub":"other"}').toString('base64url')}.${signature}`,
      `${none}.${payload}.`,
      `${header}.${payload}.`,
      `${token}.x`,
      'nonsense',
      '',
    ])
      assert.equal(verifyOwnJwt(forged, 'JWT', published), undefined, forged)
    assert.equal(verifyOwnJwt(token, 'at+jwt', published), undefined)
    assert.equal(verifyOwnJwt(token, 'JWT', []), undefined)
  })
})

eachDatabase((_name, open) => {
  describe('a withdrawal during a rotation', () => {
    /** Rotates the keys of a new store, and calls `withdraw` before the rotation commits. */
    async function rotateAnd(withdraw: (store: Store, kid: string) => Promise<unknown>) {
      const store = await open()
      await makeFirstSigningKey(store, seal, 1)
      const { kid } = await store.db.selectFrom('signing_key').select('kid').executeTakeFirstOrThrow()
      const [inserted, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<undefined>()]
      const record = () => {
        inserted.resolve()
        return commit.promise
      }
      const rotation = makeNextSigningKey(store, seal, { now: 2, signsFrom: 3, record })
      await inserted.promise
      const withdrawal = withdraw(store, kid)
      await pause(300)
      commit.resolve(undefined)
      await Promise.all([rotation, withdrawal])
      return store.db.selectFrom('signing_key').selectAll().orderBy('generation').execute()
    }

    it('removes the key, and a new one signs at once (KEY-4)', async () => {
      const rows = await rotateAnd((store, kid) => withdrawSigningKey(store, seal, { kid, now: 3 }))
      assert.deepEqual(
        rows.map(row => [row.generation, row.signs_from, row.retired_at]),
        [
          [2, 3, 3],
          [3, 3, null],
        ],
      )
    })

    it('removes all keys, the new one too (KEY-4)', async () => {
      const rows = await rotateAnd(store => withdrawEveryKey(store, seal, 3, async () => {}))
      assert.deepEqual(
        rows.map(row => [row.generation, row.signs_from]),
        [[3, 3]],
      )
    })
  })
})
