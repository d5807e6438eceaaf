import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createSealer } from '../../store/index.ts'
import { openTestStore } from '../testing/test-store.ts'
import { createFhirTokens } from './fhir-tokens.ts'
import { createKeyRing } from './keys/key-ring.ts'
import { makeFirstSigningKey, withdrawSigningKey } from './keys/signing-key.ts'

describe('createFhirTokens', () => {
  const open = openTestStore()

  it('reuses a token of a clinician for 30 seconds, unless its key was withdrawn', async () => {
    const [store, sealer, time] = [await open(), createSealer('secret'), { now: 0 }]
    const clock = () => time.now
    await makeFirstSigningKey(store, sealer, time.now)
    const keys = createKeyRing({ store, sealer, clock, publishedForMs: 60_000 })
    const settings = { issuerUrl: 'http://auth.test', fhirBaseUrl: 'http://fhir.test' }
    const { forUser: getToken } = createFhirTokens({ settings, keys, clock }, async () => [])
    const ada = { id: '1', username: 'ada', displayName: 'Ada', fhirUserId: 'ada' }
    const list = { purpose: 'patient-list' } as const
    const first = await getToken(ada, list)
    assert.notEqual(await getToken({ ...ada, id: '2' }, list), first)
    assert.notEqual(await getToken(ada, { ...list, address: '10.0.0.8' }), first)
    assert.notEqual(await getToken(ada, { purpose: 'consent' }), first)
    time.now = 29_999
    assert.equal(await getToken(ada, list), first)
    time.now = 30_000
    const second = await getToken(ada, list)
    assert.notEqual(second, first)
    const { kid } = (await keys.getSigningKey()).publicJwk
    await withdrawSigningKey(store, sealer, { kid, now: time.now })
    time.now += 2_000
    assert.notEqual(await getToken(ada, list), second)
  })
})
