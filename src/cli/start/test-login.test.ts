import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../test/support/databases.ts'
import { noAudit } from '../../audit/index.ts'
import { readSettings } from '../../config/index.ts'
import { createSealer, type Store } from '../../store/index.ts'
import { prepareAuth } from './auth.ts'
import type { Parts } from './parts.ts'

const NONE = {
  SMART_LOGIN_PASSWORDS: 'false',
  SMART_LOGIN_PROVIDERS: '[{"id":"a","issuer":"http://localhost:7","client-id":"a"}]',
}
const GATEWAY = { SMART_FHIR_UPSTREAM_URL: 'http://localhost:7/r4' }

async function listLogins(
  store: Store,
  env: Record<string, string> = {},
  names: Parts['names'] = ['auth', 'fhir', 'app'],
) {
  const storage = { store, sealer: createSealer('a secret of some length'), audit: noAudit }
  const { testLogin } = await prepareAuth(
    { names, settings: readSettings(env, '/nowhere') },
    storage,
    () => {},
  )
  const login = await testLogin
  return login && [login.username, ...login.samples.map(({ username }) => username)]
}

eachDatabaseIfThorough((_name, open) => {
  describe('the logins that a start prints', () => {
    it('are the ones that work', async () => {
      const store = await open()
      assert.deepEqual(await listLogins(store), ['clinician', 'admin', 'alba', 'mira'])
      assert.equal(await listLogins(store, NONE), undefined, 'no passwords')
      assert.deepEqual(await listLogins(store, GATEWAY), ['clinician', 'admin'], 'no sample patients')
      assert.deepEqual(
        await listLogins(store, {}, ['auth', 'app']),
        ['clinician', 'admin'],
        'another FHIR server',
      )
      await store.db.updateTable('clinician').set({ disabled: true }).where('username', '=', 'mira').execute()
      assert.deepEqual(await listLogins(store), ['clinician', 'admin', 'alba'])
      await store.db
        .updateTable('clinician')
        .set({ password_hash: 'x' })
        .where('username', '=', 'alba')
        .execute()
      assert.deepEqual(await listLogins(store), ['clinician', 'admin'])
      await store.db
        .updateTable('clinician')
        .set({ password_hash: 'x' })
        .where('username', '=', 'clinician')
        .execute()
      assert.equal(await listLogins(store), undefined, 'another password')
    })

    it('are none on a first start without passwords', async () => {
      assert.equal(await listLogins(await open(), NONE), undefined)
    })
  })
})
