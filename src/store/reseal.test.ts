import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachDatabase } from '../../test/support/databases.ts'
import { createSealer, openSealer } from './index.ts'

const earlier = createSealer('the secret of these tests')
const key = { public_jwk: '{}', created_at: 1 }
const launch = {
  browser_hash: 'b',
  issuer: 'i',
  fhir_base_url: 'f',
  nonce: 'n',
  created_at: 1,
  expires_at: 2,
}

eachDatabase((_, open) => {
  describe('openSealer', () => {
    it('binds values of an earlier version to their row once, and keeps values encrypted with another secret', async () => {
      const store = await open()
      const foreign = createSealer('another').seal('x', 'app launch code verifier')
      await store.db
        .insertInto('app_key')
        .values({ ...key, generation: 7, private_jwk_sealed: earlier.seal('a key', 'app key') })
        .execute()
      await store.db
        .insertInto('app_launch')
        .values([
          { ...launch, state_hash: 's', code_verifier_sealed: earlier.seal('v', 'app launch code verifier') },
          { ...launch, state_hash: 't', code_verifier_sealed: foreign },
        ])
        .execute()
      const sealers = await Promise.all([
        openSealer(store, 'the secret of these tests'),
        openSealer(store, 'the secret of these tests'),
      ])
      const rows = () => store.db.selectFrom('app_launch').selectAll().orderBy('state_hash').execute()
      const [appKey] = await store.db.selectFrom('app_key').selectAll().execute()
      const [own, other] = await rows()
      assert.ok(appKey && own && other)
      for (const { open } of sealers) {
        const row = { table: 'app_key', column: 'private_jwk_sealed', row: '7' } as const
        assert.equal(open(appKey.private_jwk_sealed, row), 'a key')
        const cell = { table: 'app_launch', column: 'code_verifier_sealed', row: 's' } as const
        assert.equal(open(own.code_verifier_sealed, cell), 'v')
        assert.throws(() => open(own.code_verifier_sealed, { ...cell, row: 't' }), /Cannot decrypt/)
      }
      assert.equal(other.code_verifier_sealed, foreign)
      await openSealer(store, 'the secret of these tests')
      assert.deepEqual(await rows(), [own, other])
    })
  })
})
