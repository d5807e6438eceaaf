import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { condition, readIds } from '../../sqlite/testing/fhir.ts'
import { managedBy, team, usePanelledGateway } from '../testing/panelled-gateway.ts'

const byParameter = await usePanelledGateway()
const { fhir, upstream, respondWith, listRequests, forget } = byParameter
const inPath = await usePanelledGateway('compartment')

describe('a panel in a search of the upstream', () => {
  it('limits a search for patients by organization', async () => {
    respondWith({ 'Patient?name': [managedBy('ann', 'Organization/north')], 'Patient?_id': [] })
    await fhir.as('managed')('GET Patient?name=a')
    assert.equal(
      listRequests()[0],
      'GET /Patient?name=a&_count=51&organization=Organization/north,Organization/east',
    )
    forget()
    await fhir.as('north')('GET Patient?name=a')
    assert.equal(listRequests()[0], 'GET /Patient?name=a&_count=51&organization=Organization/north')
  })

  it('does not limit a search for a type outside the patient compartment', async () => {
    respondWith({ Practitioner: [] })
    await fhir.as('managed')('GET Practitioner?name=a')
    assert.deepEqual(listRequests(), ['GET /Practitioner?name=a&_count=51'])
  })

  it('limits a search to the patients of the care teams, the organizations and the launch', async () => {
    respondWith({
      'CareTeam?participant': [team('t9', 'ann'), team('t8', 'bob', { status: 'proposed' })],
      'CareTeam?_id': [team('t1', 'cat', { participant: [] }), team('t2', 'dan', { participant: [] })],
      'Patient?organization': [managedBy('eve', 'Organization/north')],
      Condition: [],
    })
    await fhir.as('member')('GET Condition')
    assert.equal(listRequests().at(-1), 'GET /Condition?_count=51&patient=Patient/ann')
    await fhir.as('team')('GET Condition')
    assert.equal(listRequests().at(-1), 'GET /Condition?_count=51&patient=Patient/cat')
    await fhir.as('mixed')('GET Condition?code=x')
    assert.equal(
      listRequests().at(-1),
      'GET /Condition?code=x&_count=51&patient=Patient/zoe,Patient/ann,Patient/eve',
    )
    await fhir.as('launched')('GET Condition')
    assert.equal(listRequests().at(-1), 'GET /Condition?_count=51&patient=Patient/zoe,Patient/ann')
    respondWith({
      'CareTeam?_id': [team('t1', 'cat')],
      'Patient?organization': [{ resourceType: 'Patient' }, managedBy('eve', 'Organization/north')],
      'Patient?': [],
    })
    await fhir.as('teamed')('GET Patient?name=a')
    assert.deepEqual(
      listRequests().filter(it => it.includes('name=')),
      ['_id=cat', 'organization=Organization/north'].map(it => `GET /Patient?name=a&_count=51&${it}`),
    )
  })

  for (const [count, lists] of [
    [120, [120]],
    [301, [300, 1]],
  ] as const)
    it(`of ${count} patients is sent in lists of ${lists}`, async () => {
      respondWith({
        'CareTeam?participant': Array.from({ length: count }, (_, at) => team(`t${at}`, `p${at}`)),
        'CareTeam?_count': [],
        Condition: [],
      })
      await fhir.as('member')('GET Condition?_count=20')
      const sent = listRequests().filter(it => it.startsWith('GET /Condition'))
      assert.deepEqual(
        sent.map(it => it.split(',').length),
        lists,
      )
      assert.ok(sent.every(it => it.startsWith('GET /Condition?_count=21&patient=Patient/p')))
    })

  it('is not listed if the upstream follows chains', async () => {
    const chained = await usePanelledGateway()
    chained.respondWith({
      'CareTeam?participant': (line: string) =>
        line.includes('_count=500') ? [team('t1', 'ann'), team('t2', 'bob')] : [],
      'CareTeam?patient': [],
      'Patient?_has': [],
      'Condition?': [],
    })
    const ofPatient = '_count=51&patient:Patient.'
    for (const [who, expected] of [
      ['member', [`${ofPatient}_has:CareTeam:patient:_id=t1,t2`]],
      ['team', [`${ofPatient}_has:CareTeam:patient:_id=t1`]],
      ['north', [`${ofPatient}organization=Organization/north`]],
      [
        'mixed',
        [
          '_count=51&patient=Patient/zoe',
          `${ofPatient}_has:CareTeam:patient:_id=t1,t2`,
          `${ofPatient}organization=Organization/north`,
        ],
      ],
    ] as const) {
      chained.forget()
      assert.equal((await chained.fhir.as(who)('GET Condition')).status, 200)
      const sent = chained.listRequests().filter(it => it.startsWith('GET /Condition'))
      assert.deepEqual(
        sent,
        expected.map(it => `GET /Condition?${it}`),
      )
    }
  })

  it('is listed if the upstream ignores a chain', async () => {
    const ignoring = await usePanelledGateway()
    ignoring.respondWith({
      CareTeam: [team('t1', 'ann')],
      Patient: [managedBy('eve', 'Organization/north')],
      Condition: [],
    })
    await ignoring.fhir.as('north')('GET Condition')
    assert.equal(ignoring.listRequests().at(-1), 'GET /Condition?_count=51&patient=Patient/eve')
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
    assert.equal(decodeURIComponent(body ?? ''), `_count=51&patient=${ids.map(id => `Patient/${id}`)}`)
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
    const answers = { CareTeam: [team('t9', 'ann')], Condition: [condition('ca', 'ann')] }
    for (const [gateway, expected] of [
      [byParameter, 'GET /Condition?_count=51&patient=Patient/ann'],
      [inPath, 'GET /Patient/ann/Condition?_count=51'],
    ] as const) {
      gateway.respondWith({ ...answers, 'Patient/ann/': answers.Condition })
      const by = gateway.fhir.as('conditions')
      assert.deepEqual(readIds(await by('GET Patient/ann/*')), ['ca'])
      assert.ok(gateway.listRequests().some(it => it.startsWith(expected)))
      for (const line of ['GET Patient/bob/*', 'GET Patient/none/*?_summary=count']) {
        gateway.forget()
        assert.equal((await by(line)).body.total, 0)
        assert.deepEqual(
          gateway.listRequests().map(it => it.slice(0, 'GET /CareTeam?'.length)),
          ['GET /CareTeam?'],
        )
      }
    }
  })

  it('is sent for the patient of a caller who may see only one', async () => {
    const both = condition('both', 'bob', { asserter: { reference: 'Patient/ann' } })
    inPath.respondWith({ 'Patient/ann/*': [condition('ca', 'ann'), both] })
    const ann = inPath.fhir.as('ann')
    assert.deepEqual(readIds(await ann('GET Patient/bob/*')), ['both'])
    assert.deepEqual(readIds(await ann('GET Patient/ann/*')), ['ca', 'both'])
    assert(inPath.listRequests().every(it => it.startsWith('GET /Patient/ann/*?')))
  })
})
