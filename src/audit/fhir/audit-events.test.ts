import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { validate } from '../../fhir/index.ts'
import { type Bundle, describeAudited } from '../testing/audited-fhir.ts'

describeAudited('the audit trail as AuditEvents', ({ ask, recordsBy, addMany, findEventId }) => {
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
  it("is readable as AuditEvents within the caller's access (AUDIT-6)", async () => {
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
    const records = await recordsBy({ order: 'oldest', before: Date.parse(until), limit: 1000 })
    assert.deepEqual(ids, await Promise.all(records.map(findEventId)))
    for (const query of [
      '_sort=agent',
      '_include=AuditEvent:agent',
      'patient.name=x',
      '_page=x',
      'nothing=1',
    ])
      assert.equal((await ask(`GET AuditEvent?${query}`)).status, 400, query)
  })

  it('is searched by up to 50 values of every parameter (AUDIT-16)', async () => {
    const list = (value: string, count: number) => Array.from({ length: count }, (_, at) => `${value}${at}`)
    const searches: Readonly<Record<string, (count: number) => string>> = {
      patient: count => `patient=${['juniper', ...list('p', count - 1)]}`,
      'agent of any type': count => `agent=${list('p', count)}`,
      'agent of one type': count => `agent=${list('Practitioner/p', count)}`,
      entity: count => `entity=${list('Condition/c', count)}`,
      identifier: count => `agent:identifier=${list('|app', count)}`,
      date: count => `date=${list('ge20', count).map(it => it.slice(0, 4).padEnd(6, '0'))}`,
      _id: count => `_id=${list('1', count)}`,
      subtype: count => `subtype=${list('read', count)}`,
      outcome: count => `outcome:not=${list('5', count)}`,
      address: count => `address=${list('a', count)}`,
      'repeated parameters': count => list('address=a', count).join('&'),
    }
    for (const [title, search] of Object.entries(searches))
      for (const shape of ['_count=5', '_summary=count']) {
        const most = await ask(`GET AuditEvent?${shape}&${search(50)}`)
        assert.equal(most.status, 200, `${title} ${JSON.stringify(most.body)}`)
        const tooMany = await ask(`GET AuditEvent?${shape}&${search(500)}`)
        assert.equal(tooMany.status, 400, title)
        assert.match(JSON.stringify(tooMany.body), /"too-costly".*by more than 50 values/, title)
      }
    const found = (await ask(`GET AuditEvent?${searches.patient?.(50)}`)).body as Bundle
    assert.ok((found.entry?.length ?? 0) > 3)
    const own = await ask(`GET AuditEvent?${searches.patient?.(50)}`, undefined, 'juniper')
    assert.equal(own.status, 200)
  })

  it('has links that reveal only returned events', async () => {
    const first = (await ask('GET AuditEvent?_count=1&_sort=date', undefined, 'juniper')).body as Bundle
    const [shown] = first.entry ?? []
    const next = first.link.find(link => link.relation === 'next')?.url ?? ''
    assert.equal(new URL(next).searchParams.get('_page'), shown?.resource.id)
    const second = (await ask(`GET ${next}`, undefined, 'juniper')).body as Bundle
    assert.notEqual(second.entry?.[0]?.resource.id, shown?.resource.id)
    const other = 'f'.repeat(32)
    assert.equal((await ask(`GET AuditEvent?_page=${other}`, undefined, 'juniper')).status, 400)
  })

  it('has ids that do not count the requests of others, and lead to the event (AUDIT-23)', async () => {
    const read = async () => {
      await ask('GET Patient/juniper', undefined, 'juniper')
      const found = (await ask('GET AuditEvent?_count=1', undefined, 'juniper')).body as Bundle
      return found.entry?.[0]?.resource.id ?? assert.fail()
    }
    const ids: string[] = []
    for (const _ of Array.from({ length: 20 })) ids.push(await read())
    for (const id of ids) {
      assert.match(id, /^[0-9a-f]{32}$/)
      assert.equal((await ask(`GET AuditEvent/${id}`, undefined, 'juniper')).status, 200)
      assert.equal((await ask(`GET AuditEvent/${id}`, undefined, 'ashlar')).status, 403)
    }
    assert.equal(new Set(ids.map(id => id.slice(0, 8))).size, ids.length)
    assert.notDeepEqual(ids.toSorted(), ids)
    const found = (await ask(`GET AuditEvent?_id=${ids}`, undefined, 'juniper')).body as Bundle
    assert.equal(found.total, ids.length)
    const own = await recordsBy({ onlyPatients: ['juniper'], limit: 1 })
    for (const id of [own[0]?.id, `${own[0]?.at}.${own[0]?.id}`]) {
      assert.equal((await ask(`GET AuditEvent/${id}`)).status, 404)
      assert.equal(((await ask(`GET AuditEvent?_id=${id}`)).body as Bundle).total, 0)
    }
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
  it('has fewer events on a page if they name many patients', async () => {
    await addMany(
      100,
      Array.from({ length: 500 }, (_, at) => `many-${at}`),
    )
    let url: string | undefined = 'AuditEvent?patient=many-7&_count=100'
    const ids: string[] = []
    for (let pages = 0; url !== undefined; pages++) {
      const page = (await ask(`GET ${url}`)).body as Bundle
      assert.ok((page.entry?.length ?? 0) < 50 && pages < 10)
      ids.push(...(page.entry ?? []).map(({ resource }) => resource.id))
      url = page.link.find(link => link.relation === 'next')?.url
    }
    assert.equal(new Set(ids).size, 100)
  })

  it('is not counted if there are too many events, and the response says so (AUDIT-16)', async () => {
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
