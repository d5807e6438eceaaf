import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { createAuditor, createFhirAudit, findRecords } from '../../audit/index.ts'
import { refuseRecords } from '../../audit/testing/audited-fhir.ts'
import { type Access, fullAccess } from '../../smart/index.ts'
import { openStore, type Store } from '../../store/index.ts'
import { BASE, createAuthenticator, type Fhir, patientAccess, readIds } from '../sqlite/testing/fhir.ts'
import { startGatewayWithUpstream } from './testing/start-gateway.ts'

const LIMIT = 200_000

describe('the audit trail of the gateway', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  let store: Store
  let fhir: Fhir
  let auditor: ReturnType<typeof createAuditor>
  before(async () => {
    store = await openStore(`sqlite:${join(folder, 'audit.db')}`)
    const clinician: Access = { filterFor: type => (type === 'Binary' ? [] : 'everything') }
    const panel = { patients: new Set<string>(), organizations: ['north'], careTeams: [] }
    const member: Access = { filterFor: () => [{ panel }] }
    const guard = createAuthenticator({
      all: fullAccess,
      clinician,
      juniper: patientAccess('juniper', 'rs'),
      member,
    })
    auditor = createAuditor({ store })
    const audit = createFhirAudit({ auditor, store, fhirBaseUrl: BASE })
    const limits = { responseLimit: LIMIT, bodyLimit: 5 * LIMIT, contentLimit: 10 * LIMIT }
    fhir = await startGatewayWithUpstream({ guard, audit, ...limits })
  })
  after(async () => {
    await fhir.close()
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('records every request, allowed or refused', async () => {
    await fhir.as('all')('PUT Patient/juniper', { resourceType: 'Patient', id: 'juniper' })
    await fhir.as('all')('PUT Patient/ashlar', { resourceType: 'Patient', id: 'ashlar' })
    await fhir.as('juniper')('GET Patient/juniper')
    await fhir.as('juniper')('GET Patient/ashlar')
    await fhir('GET Patient/juniper')
    await fhir.as('juniper')('GET Patient//x')
    const records = await findRecords(store, { order: 'oldest', limit: 100 })
    assert.deepEqual(
      records.map(it => `${it.method} ${it.request} ${it.allowed} ${it.status}`),
      [
        'PUT Patient/juniper true 201',
        'PUT Patient/ashlar true 201',
        'GET Patient/juniper true 200',
        'GET Patient/ashlar false 403',
        'GET Patient/juniper false 401',
        'GET Patient//x false 400',
      ],
    )
  })

  /** The patients of each record of the last request, newest first. */
  const listLast = async () => {
    const records = await findRecords(store, { limit: 10 })
    const ofLast = records.filter(it => it.request_id === records[0]?.request_id)
    return ofLast.map(it => it.patients ?? it.patient_id)
  }

  it('is filed under the patients whose data it returned', async () => {
    const subject = { reference: 'Patient/ashlar' }
    await fhir.as('all')('PUT Condition/c2', { resourceType: 'Condition', id: 'c2', subject })
    for (const line of ['GET Condition/c2', 'GET Condition?_id=c2', 'GET Condition/c2/_history']) {
      assert.equal((await fhir.as('all')(line)).status, 200)
      assert.equal((await findRecords(store, { limit: 1 }))[0]?.patient_id, 'ashlar', line)
    }
    const moved = { resourceType: 'Condition', id: 'c2', subject: { reference: 'Patient/juniper' } }
    await fhir.as('clinician')('PUT Condition/c2', moved)
    assert.deepEqual(await listLast(), ['ashlar', 'juniper'])
    assert.equal((await fhir.as('clinician')('DELETE Condition/c2')).status, 204)
    assert.equal((await findRecords(store, { limit: 1 }))[0]?.patient_id, 'juniper')
    await fhir.as('all')('PUT Condition/c3', { resourceType: 'Condition', id: 'c3', subject })
    await fhir.as('all')('PUT Condition/c3', { ...moved, id: 'c3' })
    assert.deepEqual(await listLast(), ['ashlar', 'juniper'])
    assert.equal((await fhir.as('all')('DELETE Condition/c3')).status, 204)
    assert.equal((await findRecords(store, { limit: 1 }))[0]?.patient_id, 'juniper')
  })

  it('is filed under the former patient of a resource that a Bundle moves, for every caller (AUDIT-5)', async () => {
    const of = (id: string, patient: string) => ({
      resourceType: 'Condition',
      id,
      subject: { reference: `Patient/${patient}` },
    })
    for (const caller of ['all', 'clinician'])
      for (const type of ['batch', 'transaction']) {
        const id = `moved-${caller}-${type}`
        await fhir.as('all')(`PUT Condition/${id}`, of(id, 'ashlar'))
        const entry = [{ resource: of(id, 'juniper'), request: { method: 'PUT', url: `Condition/${id}` } }]
        assert.equal((await fhir.as(caller)('POST ', { resourceType: 'Bundle', type, entry })).status, 200)
        assert.deepEqual(await listLast(), ['ashlar', 'juniper', ' juniper ashlar '], id)
        const removal = [{ request: { method: 'DELETE', url: `Condition/${id}` } }]
        await fhir.as(caller)('POST ', { resourceType: 'Bundle', type, entry: removal })
        assert.equal((await findRecords(store, { limit: 1 }))[0]?.patient_id, 'juniper', id)
      }
  })

  it('files a response that is too long for memory under its patients while it is sent (AUDIT-5)', async () => {
    const note = [{ text: 'x'.repeat(LIMIT) }]
    const short = { resourceType: 'Condition', id: 'short', subject: { reference: 'Patient/ashlar' } }
    assert.equal((await fhir.as('all')('PUT Condition/short', short)).status, 201)
    await fhir.as('all')('POST Condition', { ...short, id: undefined, note })
    const reply = await fhir.as('all')('GET Condition?patient=ashlar')
    assert.equal(reply.status, 200)
    assert.equal(reply.body.entry?.length, 2)
    const [atEnd, before] = await findRecords(store, { limit: 2 })
    assert.deepEqual(
      [before?.patients, atEnd?.patient_id, atEnd?.request],
      [' * ', 'ashlar', before?.request],
    )
    assert.match(atEnd?.reason ?? '', /^Patients of a long response/)
    // A limited caller gets only checked resources, which name their patient.
    const checked = await fhir.as('clinician')('GET Condition?patient=ashlar')
    assert.equal(readIds(checked).length, 2)
    assert.equal((await findRecords(store, { limit: 1 }))[0]?.patient_id, 'ashlar')
  })

  it('serves AuditEvents from its own store, never from the upstream, and refuses to write them (AUDIT-6)', async () => {
    const { status, body } = await fhir.as('all')('GET AuditEvent?subtype=update')
    assert.equal(status, 200)
    assert.equal(body.total, 21)
    const id = body.entry?.[0]?.resource?.id
    assert.equal((await fhir.as('all')(`GET AuditEvent/${id}`)).status, 200)
    assert.equal((await fhir.as('all')('POST AuditEvent', { resourceType: 'AuditEvent' })).status, 405)
  })

  it('asks the upstream about the patients of events for a caller limited to a panel', async () => {
    const seen = async () => (await fhir.as('member')('GET AuditEvent?_count=1000')).body
    assert.equal((await seen()).total, 0)
    const managingOrganization = { reference: 'Organization/north' }
    await fhir.as('all')('PUT Patient/ashlar', {
      resourceType: 'Patient',
      id: 'ashlar',
      managingOrganization,
    })
    const events = (await seen()).entry ?? []
    assert.ok(events.length > 3)
    for (const { resource } of events) assert.match(JSON.stringify(resource), /"Patient\/ashlar"/)
  })

  it('files a long resource, and a long Bundle with Patients in it, under all their patients', async () => {
    const long = {
      resourceType: 'Observation',
      id: 'long',
      status: 'final',
      code: { text: 'Diary' },
      subject: { reference: 'Patient/ashlar' },
      performer: [{ reference: 'Patient/juniper' }],
      note: [{ text: 'x'.repeat(2 * LIMIT) }],
    }
    await fhir.as('all')('PUT Observation/long', long)
    for (const [caller, request] of [
      ['all', 'Observation/long'],
      ['clinician', 'Observation/long'],
      ['juniper', 'Observation/long'],
      ['all', 'Observation?_id=long&_include=Observation:subject'],
      ['clinician', 'Observation?_id=long&_include=Observation:subject'],
      ['all', 'Patient?_id=ashlar&_revinclude=Observation:subject'],
      ['all', 'Observation/long/_history'],
    ] as const) {
      const since = (await findRecords(store, { limit: 1 }))[0]?.id ?? 0
      const reply = await fhir.as(caller)(`GET ${request}`)
      assert.equal(reply.status, 200, reply.text.slice(0, 300))
      const records = (await findRecords(store, { limit: 5 })).filter(({ id }) => id > since)
      const filed = new Set(records.flatMap(it => (it.patients ?? it.patient_id ?? '').trim().split(' ')))
      assert.deepEqual(
        [...filed].filter(id => id !== '*').toSorted(),
        ['ashlar', 'juniper'],
        `${caller} ${request}`,
      )
    }
  })

  it('files the content of a Binary that is streamed under its patient', async () => {
    for (const line of ['POST Binary', 'PUT Binary/streamed']) {
      const { status } = await fhir.as('all')(line, 'x'.repeat(6 * LIMIT), {
        'content-type': 'text/plain',
        'x-security-context': 'Patient/juniper',
      })
      assert.equal(status, 201)
      const [record] = await findRecords(store, { limit: 1 })
      assert.deepEqual(
        [record?.patient_id, record?.resource_type, record?.status],
        ['juniper', 'Binary', 201],
      )
      assert.match(record?.resource_id ?? '', /^[\w-]+$/)
    }
  })

  it('has the id of the created resource, alone and in Bundles', async () => {
    const patient = { resourceType: 'Patient', active: true }
    const created = await fhir.as('all')('POST Patient', patient)
    assert.equal(created.status, 201)
    const ids = async (count: number) =>
      (await findRecords(store, { limit: 20 }))
        .filter(({ interaction }) => interaction === 'create')
        .slice(0, count)
        .map(({ resource_id }) => resource_id)
    assert.deepEqual(await ids(1), [created.body.id])
    for (const type of ['batch', 'transaction']) {
      const entry = [1, 2].map(() => ({ resource: patient, request: { method: 'POST', url: 'Patient' } }))
      const { body } = await fhir.as('all')('POST ', { resourceType: 'Bundle', type, entry })
      const made = (body.entry ?? []).map(it => JSON.stringify(it.response).match(/Patient\/([^/"]+)/)?.[1])
      assert.equal(made.length, 2)
      assert.deepEqual((await ids(2)).toSorted(), made.toSorted(), type)
    }
  })

  it('sends no write that cannot be recorded first (AUDIT-9)', async () => {
    const allow = await refuseRecords(store, { table: 'audit_intent' })
    const refused = await fhir.as('all')('PUT Patient/unsent', { resourceType: 'Patient', id: 'unsent' })
    await allow()
    assert.equal(refused.status, 503)
    assert.equal((await fhir.as('all')('GET Patient/unsent')).status, 404)
  })

  it('returns the response of the upstream if the record cannot be completed yet, and completes it later', async () => {
    const allow = await refuseRecords(store)
    const written = await fhir.as('all')('PUT Patient/sent', { resourceType: 'Patient', id: 'sent' })
    assert.equal(written.status, 201)
    assert.equal((await fhir.as('all')('GET Patient/sent')).status, 503)
    await allow()
    await auditor.flush()
    const kept = (await findRecords(store, { limit: 100 })).filter(it => it.resource_id === 'sent')
    assert.deepEqual(
      kept.map(it => `${it.method} ${it.request} ${it.status}`),
      ['PUT Patient/sent 201'],
    )
    const { count } = await store.db
      .selectFrom('audit_intent')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    assert.equal(Number(count), 0)
  })
})
