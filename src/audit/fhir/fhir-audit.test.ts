import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { type Access, fullAccess, type Grant, type Guard } from '../../consent/index.ts'
import { outcome, outsideGrant, validate } from '../../fhir/index.ts'
// The server that it is made for, as a deployment has it.
import { type FhirServerOptions, fhirServer } from '../../fhir-server/index.ts'
import { parseScopes } from '../../scope/index.ts'
import type { Store } from '../../store/index.ts'
import { createAuditor, fhirAudit, findRecords } from '../index.ts'

const BASE = 'http://fhir.test/fhir'

const callers: Readonly<
  Record<string, { readonly grant: Grant; readonly access: Access; readonly by: string }>
> = {
  juniper: {
    grant: { scopes: [], patient: 'juniper', clientId: 'app', subject: 'c1', tokenId: 'launch-1.token' },
    access: { reach: () => [{ patient: 'juniper' }] },
    by: 'patient/*.cruds',
  },
  ashlar: {
    grant: { scopes: [], patient: 'ashlar', clientId: 'other', tokenId: 'launch-2.token' },
    access: { reach: () => [{ patient: 'ashlar' }] },
    by: 'patient/*.rs',
  },
  /** Launched for one patient, with a scope for all. */
  launched: {
    grant: { scopes: parseScopes('user/*.cruds'), patient: 'juniper', clientId: 'app' },
    access: fullAccess,
    by: 'user/*.cruds',
  },
  everyone: {
    grant: { scopes: [], clientId: 'auditor', fhirUser: { type: 'Practitioner', id: 'p1' } },
    access: fullAccess,
    by: 'user/*.cruds',
  },
}

/** Refuses Observations, so that there is something to refuse. */
const guard: Guard = {
  async admit(authorization) {
    const caller = callers[authorization?.replace('Bearer ', '') ?? '']
    if (!caller)
      return {
        allowed: false,
        status: 401,
        headers: {},
        outcome: outcome('login', 'Who?'),
        why: 'it is no JWT',
      }
    const { grant, access, by } = caller
    return {
      allowed: true,
      grant,
      decide: interaction =>
        'type' in interaction && interaction.type === 'Observation'
          ? { ...outsideGrant('A filter does not reach it'), by: 'patient/Observation.rs?code=1' }
          : { allowed: true, access, by },
    }
  },
}

interface Bundle {
  readonly total?: number
  readonly entry?: readonly { readonly resource: { readonly id: string; readonly [name: string]: unknown } }[]
  readonly link: readonly { readonly relation: string; readonly url: string }[]
}

type Ask = (line: string, body?: unknown, who?: string) => Promise<{ status: number; body: never }>

async function open(store: Store, more: Partial<FhirServerOptions> = {}) {
  const audit = fhirAudit({ auditor: createAuditor({ store }), store, fhirBaseUrl: BASE })
  const app = await fhirServer({
    ...{ baseUrl: BASE, dataFile: ':memory:', smartConfiguration: {}, guard, audit },
    ...more,
  })
  const ask: Ask = async (line, body, who = 'everyone') => {
    const [method = '', path = ''] = line.split(/ (.*)/s)
    const reply = await app.inject({
      method: method as 'GET',
      url: path.startsWith('http') ? path.slice('http://fhir.test'.length) : `/fhir/${path}`,
      headers: {
        authorization: `Bearer ${who}`,
        ...(body !== undefined && { 'content-type': 'application/fhir+json' }),
      },
      ...(body !== undefined && { payload: JSON.stringify(body) }),
    })
    return { status: reply.statusCode, body: (reply.body === '' ? undefined : reply.json()) as never }
  }
  return { app, ask }
}

const condition = (id: string, patient: string) => ({
  resourceType: 'Condition',
  id,
  subject: { reference: `Patient/${patient}` },
})

eachDatabase((_name, openStore) => {
  describe('the audit trail of a FHIR server', () => {
    let store: Store
    let ask: Ask
    let close: () => Promise<void>
    before(async () => {
      store = await openStore()
      const server = await open(store)
      ask = server.ask
      close = () => server.app.close()
    })
    after(() => close())

    const newest = async () => (await findRecords(store, { limit: 1 }))[0]

    it('has who asked what, what decided and how it ended', async () => {
      for (const id of ['juniper', 'ashlar']) await ask(`PUT Patient/${id}`, { resourceType: 'Patient', id })
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
      })
    })

    it('has refusals with their reason: by the token, by the scope, by the stored content, of what is no FHIR', async () => {
      const last = async () => {
        const { allowed, status, decided_by, reason, patient_id } = (await newest()) ?? assert.fail()
        return { allowed, status, decided_by, reason, patient_id }
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
        ...{ allowed: false, status: 403, decided_by: 'patient/*.cruds', patient_id: 'juniper' },
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

    it('knows whose record a caller without a patient saw', async () => {
      await ask('PUT Condition/c1', condition('c1', 'juniper'))
      assert.equal((await newest())?.patient_id, 'juniper')
      await ask('GET Condition/c1')
      assert.equal((await newest())?.patient_id, 'juniper')
      await ask('GET Condition?patient=Patient/ashlar')
      assert.equal((await newest())?.patient_id, null, 'nothing was found')
      await ask('GET Condition')
      assert.equal((await newest())?.patient_id, 'juniper')
    })

    it('is filed under whose data was seen or changed, not under whom the app was launched for', async () => {
      await ask('PUT Condition/c2', condition('c2', 'ashlar'))
      const seen: readonly (readonly [line: string, patient: string | null, patients: string | null])[] = [
        ['GET Condition/c2', 'ashlar', null],
        ['GET Condition/c2?_elements=code', 'ashlar', null],
        ['GET Condition?_id=c2', 'ashlar', null],
        ['GET Condition?_id=c2&_elements=code', 'ashlar', null],
        ['GET Patient?_id=ashlar', 'ashlar', null],
        ['GET Condition?subject:Patient=ashlar', 'ashlar', null],
        ['GET Condition?patient._id=ashlar', 'ashlar', null],
        ['GET Condition/c2/_history', 'ashlar', null],
        ['GET Patient/ashlar/Condition', 'ashlar', null],
        ['GET Condition?patient=ashlar,juniper&_sort=_id', null, ' juniper ashlar '],
        ['GET Condition?patient=ashlar,nobody', null, ' ashlar * '],
        ['GET Condition?_id=c2,c9', null, ' ashlar * '],
        ['GET Condition?_id=c9', null, null],
        ['GET Condition/c9', null, null],
        ['GET Observation/o-of-ashlar', null, null],
        ['GET Observation?patient=ashlar', null, null],
        ['GET Condition?_id=c2&_summary=count', null, null],
      ]
      for (const who of ['launched', 'everyone'])
        for (const [line, patient_id, patients] of seen) {
          await ask(line, undefined, who)
          const kept = await newest()
          assert.deepEqual([kept?.patient_id, kept?.patients], [patient_id, patients], `${who} ${line}`)
        }
      await ask('GET Observation?patient=juniper', undefined, 'launched')
      assert.equal((await newest())?.patient_id, 'juniper', 'refused, of the patient of the token')
    })

    it('knows whose the resource was that was written, moved or deleted, whatever was answered', async () => {
      const said = async (line: string, body?: unknown) => {
        assert.ok((await ask(line, body, 'launched')).status < 300, line)
        const kept = await newest()
        return kept?.patients ?? kept?.patient_id
      }
      assert.equal(await said('POST Condition', condition('x', 'ashlar')), 'ashlar')
      assert.equal(await said('PUT Condition/moved', condition('moved', 'ashlar')), 'ashlar')
      assert.equal(await said('PUT Condition/moved', condition('moved', 'juniper')), ' juniper ashlar ')
      assert.equal(await said('DELETE Condition/moved'), 'juniper')
      await ask('PUT Condition/gone', condition('gone', 'ashlar'))
      assert.equal(await said('DELETE Condition?_id=gone'), 'ashlar')
      assert.equal(await said('GET Condition/gone/_history'), 'ashlar')
    })

    it('shows no event to a patient that tells of another one, and every event to those who may see all', async () => {
      const requests = async (who: string, query: string) => {
        const { entry = [] } = (await ask(`GET ${query}`, undefined, who)).body as Bundle
        const entities = entry.flatMap(({ resource }) => resource.entity as { query?: string }[])
        return entities.flatMap(({ query }) => (query ? [Buffer.from(query, 'base64').toString()] : []))
      }
      const juniper = await requests('juniper', 'AuditEvent?_count=1000')
      for (const line of juniper) assert.doesNotMatch(line, /c2|ashlar,|gone/, line)
      const ashlar = await requests('ashlar', 'AuditEvent?_count=1000')
      assert.ok(ashlar.includes('GET Condition/c2'))
      assert.ok(!ashlar.some(line => line.includes('juniper')))
      for (const query of [
        'AuditEvent?patient=ashlar&_count=1000',
        'Patient/ashlar/AuditEvent?_count=1000',
      ]) {
        const all = await requests('everyone', query)
        for (const line of ['GET Condition/c2', 'GET Condition?patient=ashlar,juniper&_sort=_id'])
          assert.ok(all.includes(line), `${query}: ${line}`)
      }
      const [several] = await findRecords(store, { patients: ['ashlar'], limit: 1000 }).then(list =>
        list.filter(it => it.patients !== null),
      )
      assert.equal((await ask(`GET AuditEvent/${several?.id}`, undefined, 'ashlar')).status, 403)
      assert.equal((await ask(`GET AuditEvent/${several?.id}`)).status, 200)
      const strange = await findRecords(store, { patients: ['%', 'ASHLAR', 'ash', '*x'], limit: 1000 })
      assert.equal(strange.length, 0)
    })

    it('calls a batch a batch, files it under all its patients, and a compartment is no resource', async () => {
      const request = (url: string) => ({ request: { method: 'GET', url } })
      const entry = [request('Condition/c1'), request('Condition/c2')]
      await ask('POST ', { resourceType: 'Bundle', type: 'batch', entry }, 'launched')
      const [last, first, batch] = await findRecords(store, { limit: 3 })
      assert.deepEqual([last?.patient_id, first?.patient_id], ['ashlar', 'juniper'])
      assert.deepEqual([batch?.interaction, batch?.patients], ['batch', ' juniper ashlar '])
      const written = [
        { resource: condition('c3', 'ashlar'), request: { method: 'PUT', url: 'Condition/c3' } },
      ]
      await ask('POST ', { resourceType: 'Bundle', type: 'transaction', entry: written }, 'launched')
      const [one, whole] = await findRecords(store, { limit: 2 })
      assert.deepEqual(
        [one?.patient_id, whole?.interaction, whole?.patient_id],
        ['ashlar', 'transaction', 'ashlar'],
      )
      await ask('GET Patient/ashlar/Condition')
      const kept = await newest()
      assert.deepEqual([kept?.resource_type, kept?.resource_id], ['Condition', null])
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
      const records = (await findRecords(store, { limit: 100, order: 'oldest' })).filter(it => it.id > before)
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

    it('is read as AuditEvents by those who may, within what they reach', async () => {
      const all = (await ask('GET AuditEvent?_count=1000')).body as Bundle
      assert.ok((all.entry?.length ?? 0) > 10)
      for (const { resource } of all.entry ?? []) assert.deepEqual(validate(resource as never), [])
      const own = (await ask('GET AuditEvent?_count=1000', undefined, 'juniper')).body as Bundle
      assert.ok((own.entry?.length ?? 0) > 3)
      for (const { resource } of own.entry ?? [])
        assert.match(JSON.stringify(resource.entity), /"Patient\/juniper"/)
      const one = own.entry?.[0]?.resource.id
      assert.equal((await ask(`GET AuditEvent/${one}`, undefined, 'juniper')).status, 200)
      assert.equal((await ask(`GET AuditEvent/${one}`, undefined, 'ashlar')).status, 403)
      assert.equal((await ask('GET AuditEvent/999999', undefined, 'ashlar')).status, 403)
      assert.equal((await ask('GET AuditEvent/999999')).status, 404)
      assert.equal((await ask('GET AuditEvent?patient=juniper', undefined, 'ashlar')).status, 200)
      const foreign = (await ask('GET AuditEvent?patient=juniper', undefined, 'ashlar')).body as Bundle
      assert.equal(foreign.entry, undefined)
      assert.equal(foreign.total, 0)
    })

    it('is searched, sorted, counted and paged', async () => {
      const find = async (query: string) => (await ask(`GET AuditEvent?${query}`)).body as Bundle
      const refused = await find('outcome=4&_count=1000')
      assert.ok((refused.entry?.length ?? 0) >= 4)
      assert.ok(refused.entry?.every(({ resource }) => resource.outcome === '4'))
      const launched = await find('entity:identifier=urn:sallyport:launch-id|launch-1&_count=1000')
      assert.ok((launched.entry?.length ?? 0) >= 7)
      assert.equal((await find('date=lt2020')).total, 0)
      assert.equal((await find('agent=Practitioner/p1&subtype=update&_summary=count')).total, 5)
      const inCompartment = (await ask('GET Patient/ashlar/AuditEvent?_count=1000')).body as Bundle
      assert.ok(
        inCompartment.entry?.every(({ resource }) => JSON.stringify(resource).includes('Patient/ashlar')),
      )
      const ids: string[] = []
      const until = new Date(Date.now() - 1).toISOString()
      let url: string | undefined = `AuditEvent?_sort=date&_count=3&date=lt${until}`
      for (let pages = 0; url !== undefined && pages < 50; pages++) {
        const page = (await ask(`GET ${url}`)).body as Bundle
        ids.push(...(page.entry ?? []).map(({ resource }) => resource.id))
        url = page.link.find(link => link.relation === 'next')?.url
      }
      const expected = (
        await findRecords(store, { order: 'oldest', before: Date.parse(until), limit: 1000 })
      ).map(record => String(record.id))
      assert.deepEqual(ids, expected)
      for (const query of [
        '_sort=agent',
        '_include=AuditEvent:agent',
        'patient.name=x',
        '_page=x',
        'nothing=1',
      ])
        assert.equal((await ask(`GET AuditEvent?${query}`)).status, 400, query)
    })

    it('is written by nobody else, and not read inside of a Bundle', async () => {
      const event = { resourceType: 'AuditEvent', id: '1' }
      for (const [line, body] of [
        ['POST AuditEvent', event],
        ['PUT AuditEvent/1', event],
        ['PUT AuditEvent?date=2020', event],
        ['DELETE AuditEvent/1', undefined],
        ['GET AuditEvent/1/_history', undefined],
      ] as const)
        assert.equal((await ask(line, body)).status, 405, line)
      for (const method of ['PUT', 'GET', 'DELETE']) {
        const entry = [{ resource: event, request: { method, url: 'AuditEvent/1' } }]
        const batch = { resourceType: 'Bundle', type: 'transaction', entry }
        assert.equal((await ask('POST ', batch)).status, 405, method)
      }
    })
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
    return open(away as never, { audit })
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
