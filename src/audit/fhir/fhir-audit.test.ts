import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createAuditor, fhirAudit } from '../index.ts'
import { BASE, openAudited } from '../testing/audited-fhir.ts'
import { describeAudited } from '../testing/describe-audited.ts'

describeAudited('the audit trail of a FHIR server', ({ ask, flush, newest, recordsBy }) => {
  it('has who asked what, what decided and how it ended', async () => {
    assert.equal((await ask('GET Patient/juniper', undefined, 'juniper')).status, 200)
    const { id: _, at: __, request_id: ___, ...kept } = (await newest()) ?? assert.fail('Nothing was kept')
    assert.deepEqual(kept, {
      server: 'fhir',
      kind: 'fhir',
      interaction: 'read',
      allowed: true,
      status: 200,
      method: 'GET',
      request: 'Patient/juniper',
      resource_type: 'Patient',
      resource_id: 'juniper',
      patient_id: 'juniper',
      patients: null,
      client_id: 'app',
      subject: 'c1',
      fhir_user: null,
      decided_by: 'patient/*.cruds',
      reason: null,
      launch_id: 'launch-1',
      address: '127.0.0.1',
      repeats: null,
    })
  })

  it('has refusals with their reason: by the token, by the scope, by the stored content, of what is no FHIR', async () => {
    const last = async () => {
      const { allowed, status, decided_by, reason, patient_id, patients } = (await newest()) ?? assert.fail()
      return { allowed, status, decided_by, reason, patient_id: patient_id ?? patients }
    }
    await ask('GET Patient/juniper', undefined, 'nobody')
    assert.deepEqual(await last(), {
      ...{ allowed: false, status: 401, decided_by: null, patient_id: null },
      reason: 'The token is not accepted: it is no JWT',
    })
    await ask('GET Observation?patient=juniper', undefined, 'juniper')
    assert.deepEqual(await last(), {
      ...{
        allowed: false,
        status: 403,
        decided_by: 'patient/Observation.rs?code=1',
        patient_id: 'juniper',
      },
      reason: 'A filter does not reach it',
    })
    await ask('GET Patient/ashlar', undefined, 'juniper')
    assert.deepEqual(await last(), {
      ...{ allowed: false, status: 403, decided_by: 'patient/*.cruds', patient_id: ' juniper * ' },
      reason: 'Not within the granted patient, user or filter.',
    })
    await ask('GET Patient//x', undefined, 'juniper')
    const strange = await last()
    assert.equal(strange.allowed, false)
    assert.equal(strange.status, 400)
    await ask('GET metadata', undefined, 'nobody')
    assert.deepEqual(await last(), {
      ...{ allowed: true, status: 200, decided_by: 'public', reason: null, patient_id: null },
    })
  })

  it('names the app, the user and the launch of a token that was good once, and nobody of another', async () => {
    const last = async () => {
      const { client_id, subject, launch_id, patient_id, patients, reason } =
        (await newest()) ?? assert.fail()
      return [client_id, subject, launch_id, patient_id ?? patients, reason]
    }
    const revoked = 'The token is not accepted: it was revoked'
    assert.equal((await ask('GET Patient/juniper', undefined, 'juniper-revoked')).status, 401)
    assert.deepEqual(await last(), ['app', 'c1', 'launch-1', 'juniper', revoked])
    await ask('GET Patient/ashlar', undefined, 'juniper-revoked')
    assert.deepEqual(await last(), ['app', 'c1', 'launch-1', ' juniper * ', revoked])
    await flush()
    await ask('GET Patient/juniper', undefined, 'nobody')
    assert.deepEqual((await last()).slice(0, 4), [null, null, null, null])
  })

  it('has each entry of a Bundle', async () => {
    const before = (await newest())?.id ?? 0
    const request = (method: string, url: string) => ({ request: { method, url } })
    const entry = [
      request('GET', 'Patient/juniper'),
      request('GET', 'Patient/ashlar'),
      request('GET', 'Observation/1'),
      request('GET', 'Patient?name=Secret'),
    ]
    await ask('POST ', { resourceType: 'Bundle', type: 'batch', entry }, 'juniper')
    const records = (await recordsBy({ limit: 100, order: 'oldest' })).filter(it => it.id > before)
    assert.deepEqual(
      records.map(it => `${it.method} ${it.request} ${it.allowed} ${it.status}`),
      [
        'POST  true 200',
        'GET Patient/juniper true 200',
        'GET Patient/ashlar false 403',
        'GET Observation/1 false 403',
        'GET Patient?name=… true 200',
      ],
    )
    assert.ok(records.every(it => it.launch_id === 'launch-1'))
  })
})

describe('a FHIR server whose audit store is away', () => {
  const away = {
    append: async () => Promise.reject(new Error('Cannot reach database')),
    ping: async () => Promise.reject(new Error('Cannot reach database')),
  }

  async function openAway(failure: 'refuse' | 'allow') {
    const audit = {
      ...fhirAudit({
        auditor: createAuditor({ store: away, failure }),
        store: away as never,
        fhirBaseUrl: BASE,
      }),
    }
    return openAudited(away as never, { audit })
  }

  it('releases nothing and writes nothing, with 503 and an OperationOutcome', async () => {
    const { app, ask } = await openAway('refuse')
    const written = await ask('PUT Patient/juniper', { resourceType: 'Patient', id: 'juniper' })
    assert.equal(written.status, 503)
    assert.deepEqual((written.body as { issue: { code: string }[] }).issue[0]?.code, 'transient')
    for (const who of ['everyone', 'nobody'])
      assert.equal((await ask('GET Patient', undefined, who)).status, 503)
    await app.close()
  })

  it('answers all the same where the setting says so', async () => {
    const { app, ask } = await openAway('allow')
    assert.equal((await ask('PUT Patient/juniper', { resourceType: 'Patient', id: 'juniper' })).status, 201)
    assert.equal((await ask('GET Patient/juniper')).status, 200)
    await app.close()
  })
})
