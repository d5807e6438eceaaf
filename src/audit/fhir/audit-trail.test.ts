import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { OperationOutcome as Outcome } from '../../fhir/index.ts'
import { DatabaseUnavailable, openStore, type Store } from '../../store/index.ts'
import { createAuditor, createFhirAudit, findRecords, OUTCOME_UNKNOWN, toAuditEvent } from '../index.ts'
import { BASE, describeAudited, openAudited, refuseRecords } from '../testing/audited-fhir.ts'
import { createEventIds } from '../trail/event-ids.ts'

const ids = createEventIds(Buffer.alloc(32))

describeAudited('the audit trail of a FHIR server', ({ ask, flush, newest, recordsBy }) => {
  it('records caller, request, decision and outcome (AUDIT-1)', async () => {
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
      details: null,
      delivery_id: null,
      repeats: null,
      token_id: 'token',
    })
    const { meta } = toAuditEvent((await newest()) ?? assert.fail(), { fhirBaseUrl: BASE, ids })
    assert.match(JSON.stringify(meta), /IHE\.BasicAudit\.PatientRead"/)
  })

  it('records the note of a token as the reason of an allowed request', async () => {
    await ask('GET Patient/juniper', undefined, 'noted')
    const { allowed, reason } = (await newest()) ?? assert.fail()
    assert.deepEqual([allowed, reason], [true, 'For a reason'])
  })

  it('records refusals with their reason: token, scope, stored content, not FHIR', async () => {
    const last = async () => {
      const { allowed, status, decided_by, reason, patient_id, patients } = (await newest()) ?? assert.fail()
      return { allowed, status, decided_by, reason, patient_id: patient_id ?? patients }
    }
    await ask('GET Patient/juniper', undefined, 'nobody')
    assert.deepEqual(await last(), {
      allowed: false,
      status: 401,
      decided_by: null,
      patient_id: null,
      reason: 'The token is not accepted: it is not a JWT',
    })
    await ask('GET Observation?patient=juniper', undefined, 'juniper')
    assert.deepEqual(await last(), {
      allowed: false,
      status: 403,
      decided_by: 'patient/Observation.rs?code=1',
      patient_id: 'juniper',
      reason: 'Not within the granted patient, user or filter. A filter does not filter it',
    })
    await ask('GET Patient/ashlar', undefined, 'juniper')
    assert.deepEqual(await last(), {
      allowed: false,
      status: 403,
      decided_by: 'patient/*.cruds',
      patient_id: ' juniper * ',
      reason: 'Not within the granted patient, user or filter.',
    })
    await ask('GET Patient//x', undefined, 'juniper')
    const strange = await last()
    assert.equal(strange.allowed, false)
    assert.equal(strange.status, 400)
    await ask('GET metadata', undefined, 'nobody')
    assert.deepEqual(await last(), {
      allowed: true,
      status: 200,
      decided_by: 'public',
      reason: null,
      patient_id: null,
    })
  })

  it('names app, user and launch of a token that was valid before, and none of another token', async () => {
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

describe('a change of the embedded FHIR server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  let store: Store
  let server: Awaited<ReturnType<typeof openAudited>>
  const dataFile = join(folder, 'fhir.db')
  before(async () => {
    store = await openStore(`sqlite:${join(folder, 'audit.db')}`)
    server = await openAudited(store, { dataFile })
  })
  after(async () => {
    await server.app.close()
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const lines = async () =>
    (await findRecords(store, { limit: 100, order: 'oldest' })).map(
      it => `${it.method} ${it.resource_type}/${it.resource_id} ${it.status}`,
    )
  const inFile = (sql: string) => {
    const file = new DatabaseSync(dataFile)
    file.exec(sql)
    file.close()
  }
  /** From now on an event fails as on a full disk: no row id is left. Returns a function that ends this. */
  const fillDisk = (event: string) => {
    inFile(`create table crowded (id integer primary key autoincrement);
      insert into crowded values (9223372036854775807);
      create trigger full_disk before ${event} begin insert into crowded values (null); end`)
    return async () => {
      await setImmediate()
      inFile('drop trigger full_disk; drop table crowded')
    }
  }
  const create = { resourceType: 'Patient', active: true }
  const makeEntry = (method: string, url: string, resource?: object) => ({
    resource,
    request: { method, url },
  })

  it('has the id of the created resource, alone and in Bundles (AUDIT-10)', async () => {
    const { body } = await server.ask('POST Patient', create)
    assert.deepEqual(await lines(), [`POST Patient/${(body as { id: string }).id} 201`])
    for (const type of ['batch', 'transaction']) {
      const entry = [makeEntry('POST', 'Patient', create), makeEntry('PUT', 'Patient?_id=by-query', create)]
      const answer = await server.ask('POST ', { resourceType: 'Bundle', type, entry })
      const made = JSON.stringify(answer.body).match(/(?<="location":"[^"]*Patient\/)[^/"]+/g) ?? []
      assert.equal(made.length, 2, type)
      assert.deepEqual(
        (await lines()).slice(-2).map(line => line.split(/[/ ]/)[2]),
        made,
        type,
      )
    }
  })

  it('is stored with its record or not at all (AUDIT-9)', async () => {
    const before = await lines()
    inFile("create trigger refuse before insert on audit_outbox begin select raise(abort, 'refused'); end")
    for (const line of ['POST Patient', 'PUT Patient/never'])
      assert.equal((await server.ask(line, { ...create, id: 'never' })).status, 500)
    const entry = [makeEntry('PUT', 'Patient/never', { ...create, id: 'never' })]
    for (const type of ['batch', 'transaction'])
      assert.equal((await server.ask('POST ', { resourceType: 'Bundle', type, entry })).status, 500)
    inFile('drop trigger refuse')
    assert.equal((await server.ask('GET Patient/never')).status, 404)
    assert.deepEqual(
      (await lines()).slice(before.length).filter(line => !line.endsWith(' 500')),
      ['GET Patient/never 404'],
    )
  })

  it('succeeds while its record waits for the trail, which stores it later, also after a restart', async () => {
    const allow = await refuseRecords(store)
    for (const id of ['waits', 'restarts'])
      assert.equal((await server.ask(`PUT Patient/${id}`, { ...create, id })).status, 201)
    await allow()
    // The process ends before delivery: the next process finds the records in the data.
    const next = await openAudited(store, { dataFile })
    await next.app.close()
    await server.app.close()
    const kept = (await lines()).filter(line => /waits|restarts/.test(line))
    assert.deepEqual(kept.toSorted(), ['PUT Patient/restarts 201', 'PUT Patient/waits 201'])
    server = await openAudited(store, { dataFile })
  })

  it('gets a response for each entry if the disk becomes full during a batch', async () => {
    const makeRoom = fillDisk("insert on resource when new.id = 'full'")
    const before = (await lines()).length
    const ids = [...Array.from({ length: 600 }, (_, at) => `batch-${at}`), 'full', 'after']
    const entry = ids.map(id => makeEntry('PUT', `Patient/${id}`, { ...create, id }))
    const batch = { resourceType: 'Bundle', type: 'batch', entry }
    const answer = await server.ask('POST ', batch)
    assert.equal(answer.status, 200)
    const entries = (answer.body as { entry: { response: { status: string; outcome?: Outcome } }[] }).entry
    const statuses = entries.map(({ response }) => response.status.slice(0, 3))
    const stored = statuses.indexOf('503')
    assert.ok(stored > 0 && stored <= 600, `${stored} were stored`)
    assert.deepEqual(
      statuses,
      ids.map((_, at) => (at < stored ? '201' : '503')),
    )
    assert.equal(entries.at(-1)?.response.outcome?.issue[0]?.code, 'transient')
    const full = { ...create, id: 'full' }
    assert.equal((await server.ask('PUT Patient/full', full)).status, 503)
    const transaction = { resourceType: 'Bundle', type: 'transaction', entry: entry.slice(-2) }
    assert.equal((await server.ask('POST ', transaction)).status, 503)
    const { body } = await server.ask('GET Patient?_id=full,after&_summary=count')
    assert.equal((body as { total: number }).total, 0)
    for (const [at, id] of ids.entries())
      if (Math.abs(at - stored) < 2)
        assert.equal((await server.ask(`GET Patient/${id}`)).status, at < stored ? 200 : 404)
    const kept = (await findRecords(store, { limit: 5_000, order: 'oldest' })).slice(before)
    assert.equal(kept.filter(it => it.resource_id?.startsWith('batch-') && it.status === 201).length, stored)
    await makeRoom()
  })

  it('succeeds if the records of a batch must wait, and they are stored later', async () => {
    // The announcement of the batch is stored; its records are refused as on a full disk.
    const makeRoom = fillDisk('delete on audit_outbox')
    const entry = [makeEntry('PUT', 'Patient/delayed', { ...create, id: 'delayed' })]
    const answer = await server.ask('POST ', { resourceType: 'Bundle', type: 'batch', entry })
    assert.equal(answer.status, 200)
    await makeRoom()
    await server.app.close()
    server = await openAudited(store, { dataFile })
    const kept = await findRecords(store, { limit: 5_000 })
    assert.deepEqual(
      kept.filter(it => it.resource_id === 'delayed').map(it => it.status),
      [201],
    )
    assert.ok(!kept.some(it => it.status === OUTCOME_UNKNOWN))
  })

  it('is reported as unknown if the process ended during a batch', async () => {
    await server.app.close()
    const begun = { at: 1, server: 'fhir', kind: 'fhir', interaction: 'batch', allowed: true }
    const record = JSON.stringify({ ...begun, status: OUTCOME_UNKNOWN, reason: 'Outcome unknown' })
    inFile(`insert into audit_outbox values ('begun', '${record}')`)
    server = await openAudited(store, { dataFile })
    await server.app.close()
    const unknown = (await findRecords(store, { limit: 5_000 })).filter(it => it.status === OUTCOME_UNKNOWN)
    assert.deepEqual(
      unknown.map(({ interaction, delivery_id }) => [interaction, delivery_id]),
      [['batch', 'begun']],
    )
    const file = new DatabaseSync(dataFile)
    assert.deepEqual(file.prepare('select * from audit_outbox').all(), [])
    file.close()
    server = await openAudited(store, { dataFile })
  })
})

describe('a FHIR server whose audit store is unavailable', () => {
  const fail = () => Promise.reject(new DatabaseUnavailable('Cannot filter database'))
  const unreachable: Store = {
    dialect: 'sqlite',
    trail: { append: fail, appendIn: fail, announce: fail, read: fail },
    ping: fail,
    close: async () => {},
    [Symbol.asyncDispose]: async () => {},
    get db(): never {
      throw new DatabaseUnavailable('Cannot filter database')
    },
  }

  async function openAway(failure: 'refuse' | 'allow') {
    const audit = {
      ...createFhirAudit({
        auditor: createAuditor({ store: unreachable, failure }),
        store: unreachable,
        fhirBaseUrl: BASE,
      }),
    }
    return openAudited(unreachable, { audit })
  }

  it('returns and writes nothing, with 503 and an OperationOutcome (AUDIT-7)', async () => {
    const { app, ask } = await openAway('refuse')
    const written = await ask('PUT Patient/juniper', { resourceType: 'Patient', id: 'juniper' })
    assert.equal(written.status, 503)
    assert.deepEqual((written.body as { issue: { code: string }[] }).issue[0]?.code, 'transient')
    for (const who of ['everyone', 'nobody'])
      assert.equal((await ask('GET Patient', undefined, who)).status, 503)
    await app.close()
  })

  it('responds anyway if configured', async () => {
    const { app, ask } = await openAway('allow')
    assert.equal((await ask('PUT Patient/juniper', { resourceType: 'Patient', id: 'juniper' })).status, 201)
    assert.equal((await ask('GET Patient/juniper')).status, 200)
    await app.close()
  })
})
