import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { condition, readIds } from '../sqlite/testing/fhir.ts'
import { managedBy, team, usePanelledGateway } from './testing/panelled-gateway.ts'

const { fhir, upstream, respondWith, listRequests, forget } = await usePanelledGateway()

describe('a panel in a search of the upstream', () => {
  it('limits a search for patients by organization', async () => {
    respondWith({ 'Patient?name': [managedBy('ann', 'Organization/north')], 'Patient?_id': [] })
    await fhir.as('managed')('GET Patient?name=a')
    assert.equal(listRequests()[0], 'GET /Patient?name=a&organization=Organization/north,Organization/east')
    forget()
    await fhir.as('north')('GET Patient?name=a')
    assert.equal(listRequests()[0], 'GET /Patient?name=a&organization=Organization/north')
  })

  it('does not limit a search for a type outside the patient compartment', async () => {
    respondWith({ Practitioner: [] })
    await fhir.as('managed')('GET Practitioner?name=a')
    assert.deepEqual(listRequests(), ['GET /Practitioner?name=a'])
  })

  it('limits a search to the patients of the care teams, the organizations and the launch', async () => {
    respondWith({
      'CareTeam?participant': [team('t9', 'ann'), team('t8', 'bob', { status: 'proposed' })],
      'CareTeam?_id': [team('t1', 'cat', { participant: [] }), team('t2', 'dan', { participant: [] })],
      'Patient?organization': [managedBy('eve', 'Organization/north')],
      Condition: [],
    })
    await fhir.as('member')('GET Condition')
    assert.equal(listRequests().at(-1), 'GET /Condition?patient=Patient/ann')
    await fhir.as('team')('GET Condition')
    assert.equal(listRequests().at(-1), 'GET /Condition?patient=Patient/cat')
    await fhir.as('mixed')('GET Condition?code=x')
    assert.equal(listRequests().at(-1), 'GET /Condition?code=x&patient=Patient/zoe,Patient/ann,Patient/eve')
    await fhir.as('launched')('GET Condition')
    assert.equal(listRequests().at(-1), 'GET /Condition?patient=Patient/zoe,Patient/ann')
    respondWith({
      'CareTeam?_id': [team('t1', 'cat')],
      'Patient?organization': [{ resourceType: 'Patient' }, managedBy('eve', 'Organization/north')],
      'Patient?': [],
    })
    await fhir.as('teamed')('GET Patient?name=a')
    assert.equal(listRequests().at(-1), 'GET /Patient?name=a&_id=cat,eve')
  })

  for (const [count, isListed] of [
    [100, true],
    [101, false],
  ] as const)
    it(`of ${count} patients ${isListed ? 'is' : 'is not'} sent as a list`, async () => {
      respondWith({
        'CareTeam?participant': Array.from({ length: count }, (_, at) => team(`t${at}`, `p${at}`)),
        Condition: [],
      })
      await fhir.as('member')('GET Condition')
      const patients = `patient=${Array.from({ length: count }, (_, at) => `Patient/p${at}`)}`
      assert.equal(listRequests().at(-1), `GET /Condition?${isListed ? patients : '_count=100'}`)
    })

  it('is sent with POST if it is too long for a URL', async () => {
    const ids = Array.from({ length: 90 }, (_, at) => `${at}-`.padEnd(64, 'x'))
    respondWith({
      'Condition/_search': [],
      'CareTeam?participant': ids.map((id, at) => team(`t${at}`, id)),
    })
    assert.equal((await fhir.as('member')('GET Condition')).status, 200)
    const { line, body } = upstream.seen.at(-1) ?? {}
    assert.equal(line, 'POST /up/Condition/_search')
    assert.equal(decodeURIComponent(body ?? ''), `patient=${ids.map(id => `Patient/${id}`)}`)
  })

  it('causes no search if it is empty, or if the caller searches for other patients', async () => {
    respondWith({ CareTeam: [] })
    for (const [who, line] of [
      ['member', 'GET Condition'],
      ['member', 'GET Condition?subject=Patient/bob'],
      ['member', 'GET Patient?_id=bob'],
      ['empty', 'GET Patient'],
      ['empty', 'GET Patient?_summary=count'],
    ] as const) {
      const reply = await fhir.as(who)(line)
      assert.deepEqual([reply.status, reply.body.total, reply.body.entry], [200, 0, undefined], line)
    }
    assert(!listRequests().some(line => /^GET \/(?:Condition|Patient)/.test(line)), listRequests().join('\n'))
  })
})

describe('a search of a whole compartment', () => {
  it('is sent only for a patient on the panel', async () => {
    respondWith({ CareTeam: [team('t9', 'ann')], 'Patient/ann/*': [condition('ca', 'ann')] })
    assert.deepEqual(readIds(await fhir.as('conditions')('GET Patient/ann/*')), ['ca'])
    for (const line of ['GET Patient/bob/*', 'GET Patient/none/*?_summary=count']) {
      forget()
      assert.equal((await fhir.as('conditions')(line)).body.total, 0)
      assert.deepEqual(
        listRequests().map(it => it.slice(0, 'GET /CareTeam?'.length)),
        ['GET /CareTeam?'],
      )
    }
  })

  it('is sent for the patient of a caller who may see only one', async () => {
    const both = condition('both', 'bob', { asserter: { reference: 'Patient/ann' } })
    respondWith({ 'Patient/ann/*': [condition('ca', 'ann'), both] })
    assert.deepEqual(readIds(await fhir.as('ann')('GET Patient/bob/*')), ['both'])
    assert.deepEqual(readIds(await fhir.as('ann')('GET Patient/ann/*')), ['ca', 'both'])
    assert(listRequests().every(it => it.startsWith('GET /Patient/ann/*?')))
  })
})
