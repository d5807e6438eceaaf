import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { validate } from '../../fhir/index.ts'
import { type Bundle, describeAudited } from '../testing/audited-fhir.ts'

describeAudited('the audit trail as AuditEvents', ({ ask, recordsBy, addMany }) => {
  before(async () => {
    for (const who of ['juniper', 'ashlar', 'everyone', 'nobody'])
      for (const line of [
        'GET Patient/ashlar',
        'GET Patient/juniper',
        'GET Observation/1',
        'GET Condition?patient=juniper',
      ])
        await ask(line, undefined, who)
  })
  it("is readable as AuditEvents within the caller's access", async () => {
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
    assert.ok((launched.entry?.length ?? 0) >= 5)
    assert.equal((await find('date=lt2020')).total, 0)
    assert.equal((await find('agent=Practitioner/p1&subtype=update&_summary=count')).total, 2)
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
    const expected = (await recordsBy({ order: 'oldest', before: Date.parse(until), limit: 1000 })).map(
      record => String(record.id),
    )
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

  it('has links that reveal only returned events', async () => {
    const first = (await ask('GET AuditEvent?_count=1&_sort=date', undefined, 'juniper')).body as Bundle
    const [shown] = first.entry ?? []
    const next = first.link.find(link => link.relation === 'next')?.url ?? ''
    assert.match(next, new RegExp(`\\.${shown?.resource.id}$`))
    const second = (await ask(`GET ${next}`, undefined, 'juniper')).body as Bundle
    assert.ok(Number(second.entry?.[0]?.resource.id) > Number(shown?.resource.id))
  })

  it('cannot be written by clients or read in a Bundle', async () => {
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

  it('is readable for a caller with a panel as far as the patients are on it now', async () => {
    const managed = (organization: string) => ({
      resourceType: 'Patient',
      id: 'juniper',
      managingOrganization: { reference: `Organization/${organization}` },
    })
    const seen = async () => (await ask('GET AuditEvent?_count=1000', undefined, 'panelled')).body as Bundle
    assert.equal((await seen()).total, 0)
    await ask('PUT Patient/juniper', managed('north'))
    const own = (await seen()).entry ?? []
    assert.ok(own.length > 3)
    for (const { resource } of own) assert.match(JSON.stringify(resource.entity), /"Patient\/juniper"/)
    const path = `GET AuditEvent/${own[0]?.resource.id}`
    assert.equal((await ask(path, undefined, 'panelled')).status, 200)
    await ask('PUT Patient/juniper', managed('south'))
    assert.equal((await ask(path, undefined, 'panelled')).status, 403)
  })
  it('is not counted if there are too many events, and the response says so', async () => {
    const count = async (query: string) =>
      (await ask(`GET AuditEvent?_summary=count&${query}`)).body as Bundle
    assert.equal((await count('date=gt2020')).entry, undefined)
    await addMany(10_000)
    const { total, entry } = await count('date=gt2020')
    assert.equal(total, undefined)
    assert.match(JSON.stringify(entry), /"OperationOutcome".*"too-costly"/)
    assert.equal((await count('date=lt2020&address=a')).total, 0)
  })
})
