import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../test/support/databases.ts'
import { createSealer } from '../../store/index.ts'
import { createAppKeys } from './app-key.ts'

const PUBLIC = ['alg', 'e', 'kid', 'kty', 'n', 'use']

eachDatabaseIfThorough((_name, open) => {
  describe('createAppKeys', () => {
    it('creates one encrypted key for all instances and publishes only its public part (APP-7)', async () => {
      const store = await open()
      const options = { store, sealer: createSealer('a secret of the tests'), clock: () => 1 }
      const keys = await Promise.all([1, 2, 3].map(() => createAppKeys(options).signing()))
      assert.equal(new Set(keys.map(key => key.kid)).size, 1)
      const published = await createAppKeys(options).published()
      assert.deepEqual(
        published.map(key => Object.keys(key).sort()),
        [PUBLIC],
      )
      assert.equal(published[0]?.kid, keys[0]?.kid)
      const [row] = await store.db.selectFrom('app_key').selectAll().execute()
      assert.doesNotMatch(row?.private_jwk_sealed ?? '', /"d"/)
      assert.equal(keys[0]?.privateKey.extractable, false)
    })

    it('signs with a key for ES384 that an earlier version created (APP-7)', async () => {
      const store = await open()
      const sealer = createSealer('a secret of the tests')
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
      const jwk = privateKey.export({ format: 'jwk' })
      const { d: _, ...shared } = { ...jwk, kid: 'earlier', use: 'sig', alg: 'ES384' }
      const cell = { table: 'app_key', column: 'private_jwk_sealed', row: '1' } as const
      const row = { generation: 1, public_jwk: JSON.stringify(shared), created_at: 1 }
      await store.db
        .insertInto('app_key')
        .values({ ...row, private_jwk_sealed: sealer.seal(JSON.stringify(jwk), cell) })
        .execute()
      const key = await createAppKeys({ store, sealer, clock: () => 1 }).signing()
      assert.deepEqual([key.kid, key.privateKey.algorithm.name], ['earlier', 'ECDSA'])
    })

    it('creates another key when the secret changes, and publishes both', async () => {
      const store = await open()
      const of = (secret: string) => createAppKeys({ store, sealer: createSealer(secret), clock: () => 1 })
      const before = await of('the secret of before').signing()
      const after = await of('the secret of now').signing()
      assert.notEqual(before.kid, after.kid)
      assert.equal((await of('the secret of now').published()).length, 2)
      assert.equal((await of('the secret of now').signing()).kid, after.kid)
    })
  })
})
