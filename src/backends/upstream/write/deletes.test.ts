import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { fullAccess } from '../../../smart/index.ts'
import {
  condition,
  createAuthenticator,
  type Fhir,
  patient,
  patientAccess,
  readIssue,
} from '../../sqlite/testing/fhir.ts'
import type { ProfileName } from '../profile.ts'
import { type HapiUpstream, startHapi } from '../testing/hapi/start-hapi.ts'
import { startGateway, startRecordedGateway } from '../testing/start-gateway.ts'

const guard = createAuthenticator({
  all: fullAccess,
  ann: patientAccess('ann'),
  both: { filterFor: () => [{ patient: 'ann' }, { patient: 'bob' }] },
})
const removal = { request: { method: 'DELETE', url: 'Condition/c' } }
const addition = {
  resource: { ...condition('', 'ann'), id: undefined },
  request: { method: 'POST', url: 'Condition' },
}
const transaction = (...entry: readonly object[]) => ({ resourceType: 'Bundle', type: 'transaction', entry })

let upstream: HapiUpstream
let fhir: Fhir

async function start(profile: ProfileName, open = startRecordedGateway): Promise<void> {
  upstream = await startHapi()
  fhir = await open(upstream.url, { guard, profile })
  for (const id of ['ann', 'bob']) await fhir.as('all')(`PUT Patient/${id}`, patient(id))
  await fhir.as('all')('PUT Condition/c', condition('c', 'ann'))
}
afterEach(async () => {
  await fhir.close()
  await upstream.close()
})

const put = (path: string, resource: object) =>
  fetch(`${upstream.url}/${path}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/fhir+json' },
    body: JSON.stringify(resource),
  })

/** Another client changes the resource when the delete has been sent, and before it is carried out. */
function race(change: () => Promise<unknown> = () => put('Condition/c', condition('c', 'bob'))): void {
  upstream.before(async ({ method, path, params }) => {
    if (method !== 'DELETE' || !path.includes('/') || params.length > 0) return
    upstream.before(undefined)
    await change()
  })
  upstream.betweenSteps(change)
}

const readEvents = async (of: string) =>
  ((await fhir.as('all')(`GET AuditEvent?patient=${of}&_count=2`)).body.entry ?? []).map(
    ({ resource }) => `${resource?.action} ${resource?.outcomeDesc}`,
  )

describe('a delete on HAPI', () => {
  for (const [how, headers] of [
    ['without a version', {}],
    ['with the version of the caller', { 'if-match': 'W/"1"' }],
  ] as const) {
    it(`${how} keeps a version that has just become that of another patient (GATEWAY-21)`, async () => {
      await start('auto')
      race()
      const reply = await fhir.as('ann')('DELETE Condition/c', undefined, headers)
      assert.ok([403, 409, 412].includes(reply.status), reply.text)
      assert.deepEqual((await fhir.as('all')('GET Condition/c')).body.subject, { reference: 'Patient/bob' })
    })

    it(`${how} is a delete if nobody else writes`, async () => {
      await start('auto')
      assert.equal((await fhir.as('ann')('DELETE Condition/c', undefined, headers)).status, 204)
      assert.equal((await fhir.as('ann')('GET Condition/c')).status, 410)
      assert.deepEqual(await readEvents('ann'), ['D Allowed (204)', 'U Allowed (201)'])
    })
  }

  it('with the version of the caller keeps a newer version, also for a caller with access to everything (GATEWAY-21)', async () => {
    for (const open of [startGateway, startRecordedGateway])
      for (const send of [
        () => fhir.as('all')('DELETE Condition/c', undefined, { 'if-match': 'W/"1"' }),
        () =>
          fhir.as('all')(
            'POST ',
            transaction({ request: { ...removal.request, ifMatch: 'W/"1"' } }, addition),
          ),
      ]) {
        await start('auto', open)
        await put('Condition/c', condition('c', 'bob'))
        assert.equal((await send()).status, 412, `${open.name} ${send}`)
        assert.equal((await fhir.as('all')('GET Condition/c')).status, 200)
        await fhir.close()
        await upstream.close()
      }
    await start('auto')
  })

  it('alone in a transaction keeps a version that has just become that of another patient (GATEWAY-21)', async () => {
    await start('auto')
    race()
    const reply = await fhir.as('ann')('POST ', transaction(removal))
    assert.ok([403, 409, 412].includes(reply.status), reply.text)
    assert.equal((await fhir.as('all')('GET Condition/c')).status, 200)
  })

  it('is a delete if another client creates the resource again at once', async () => {
    await start('auto')
    upstream.before(async ({ method, path }) => {
      const isDone =
        method === 'GET' && path === 'Condition/c' && upstream.seen.some(it => it.method === 'DELETE')
      if (!isDone) return
      upstream.before(undefined)
      await put('Condition/c', condition('c', 'ann', { code: { text: 'again' } }))
    })
    assert.equal((await fhir.as('ann')('DELETE Condition/c')).status, 204)
    assert.equal(upstream.seen.filter(it => it.method === 'DELETE').length, 1)
    assert.equal((await fhir.as('ann')('GET Condition/c')).status, 200)
  })
})

const DELETED = 'Allowed (204): A delete has deleted a version that was written at the same time.'

describe('a delete that the upstream does not bind to a version', () => {
  for (const [how, profile, send] of [
    ['in a transaction on HAPI', 'auto', (by: Fhir) => by('POST ', transaction(removal, addition))],
    ['on an unknown server', 'post-only', (by: Fhir) => by('DELETE Condition/c')],
  ] as const) {
    it(`${how} is a 409 if it has deleted a version of another patient, and recorded under that patient (GATEWAY-21)`, async () => {
      await start(profile)
      race()
      const reply = await send(fhir.as('ann'))
      assert.match(readIssue(reply), /^409 conflict: Cannot delete Condition\/c: another client changed it/)
      for (const patientId of ['ann', 'bob']) {
        const events = await readEvents(patientId)
        assert.ok(
          events.some(it => it.endsWith(DELETED)),
          `${patientId}: ${events}`,
        )
      }
    })

    it(`${how} succeeds if nobody else writes`, async () => {
      await start(profile)
      assert.ok((await send(fhir.as('ann'))).status < 300)
      assert.equal((await fhir.as('ann')('GET Condition/c')).status, 410)
    })

    it(`${how} succeeds if the resource was created and deleted again since`, async () => {
      await start(profile)
      let isDeleted = false
      upstream.before(async ({ method, path, body }) => {
        if (method === 'DELETE' || body.includes('"DELETE"')) isDeleted = true
        if (!isDeleted || method !== 'GET' || path !== 'Condition/c') return
        upstream.before(undefined)
        await put('Condition/c', condition('c', 'bob'))
        await fetch(`${upstream.url}/Condition/c`, { method: 'DELETE' })
      })
      assert.ok((await send(fhir.as('ann'))).status < 300)
    })
  }

  it('is recorded for a create that has replaced a resource under the patients of both (GATEWAY-21)', async () => {
    await start('strict')
    upstream.before(async ({ method }) => {
      if (method !== 'PUT') return
      upstream.before(undefined)
      await put('Condition/new', condition('new', 'bob'))
    })
    assert.equal((await fhir.as('ann')('PUT Condition/new', condition('new', 'ann'))).status, 409)
    for (const patientId of ['ann', 'bob'])
      assert.ok(
        (await readEvents(patientId)).some(it => it.includes('A create has replaced a resource')),
        patientId,
      )
  })
})
