import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { condition, NOT_WITHIN, readIds, readIssue } from '../../sqlite/testing/fhir.ts'
import { searchset } from '../testing/hostile-upstream.ts'
import { managedBy, team, usePanelledGateway } from '../testing/panelled-gateway.ts'

const { fhir, respondWith, listRequests, forget } = await usePanelledGateway()

describe('a panel of an organization', () => {
  it('is requested once for all patients of the checked resources (GATEWAY-16)', async () => {
    respondWith({
      Condition: [condition('ca', 'ann'), condition('cb', 'bob'), condition('cc', 'cat')],
      'Patient?_id': [
        managedBy('ann', 'Organization/north'),
        managedBy('bob', 'Organization/south'),
        managedBy('cat', 'Organization/east'),
      ],
    })
    const reply = await fhir.as('managed')('GET Condition?patient=ann,bob,cat')
    assert.deepEqual(readIds(reply), ['ca', 'cc'])
    assert.deepEqual(listRequests(), [
      'GET /Patient?_id=ann,bob,cat&_count=500',
      'GET /Condition?patient=ann,bob,cat&_count=51&patient=Patient/ann,Patient/cat',
    ])
  })

  for (const [what, organization] of [
    ['another type with the same id', 'Practitioner/north'],
    ['another server', 'http://elsewhere.test/fhir/Organization/north'],
    ['no organization', ''],
  ] as const)
    it(`does not contain a patient managed by ${what}`, async () => {
      respondWith({
        'Patient?_id': [managedBy('ann', organization)],
        'Patient/ann': managedBy('ann', organization),
      })
      assert.equal(readIssue(await fhir.as('managed')('GET Patient/ann')), NOT_WITHIN)
    })

  it('is requested for 300 patients at a time, and for patients who are on no other panel', async () => {
    const ids = Array.from({ length: 301 }, (_, at) => `p${at}`)
    respondWith({
      'Patient?_id': (line: string) =>
        (/_id=([^&]*)/.exec(line)?.[1]?.split(',') ?? []).map(id => managedBy(id, 'Organization/north')),
      'Condition/_search': ids.map(id => condition(`c-${id}`, id)),
      'Condition?': ids.map(id => condition(`c-${id}`, id)),
      'Condition/cz': condition('cz', 'zoe'),
    })
    assert.equal(readIds(await fhir.as('north')(`GET Condition?subject=${ids}&_count=400`)).length, 301)
    const asked = listRequests().filter(it => it.startsWith('GET /Patient'))
    assert.deepEqual(
      asked.slice(0, 2).map(it => it.split(',').length),
      [300, 1],
    )
    forget()
    await fhir.as('north')(`GET Condition?subject=${ids.slice(1)}&_count=400`)
    assert(!listRequests().some(line => line.includes('_id=&')))
    respondWith({
      'Patient?_id=zoe': [managedBy('zoe', 'Organization/north')],
      'Condition/cz': condition('cz', 'zoe'),
    })
    assert.equal((await fhir.as('several')('GET Condition/cz')).status, 200)
  })

  it('is not cached: a patient who leaves it is refused with the next request (GATEWAY-16)', async () => {
    const read = () => fhir.as('managed')('GET Patient/ann')
    const ann = managedBy('ann', 'Organization/north')
    respondWith({ 'Patient?_id': [ann], 'Patient/ann': ann })
    assert.equal((await read()).status, 200)
    respondWith({ 'Patient?_id': [managedBy('ann', 'Organization/south')], 'Patient/ann': ann })
    assert.equal(readIssue(await read()), NOT_WITHIN)
  })
})

describe('a panel of care teams', () => {
  it('contains the subject of an active team of the clinician', async () => {
    respondWith({ CareTeam: [team('t9', 'ann')], 'Condition/ca': condition('ca', 'ann') })
    assert.equal((await fhir.as('member')('GET Condition/ca')).status, 200)
    const own = 'GET /CareTeam?patient=Patient/ann&participant=Practitioner/kim&status=active&_count=500'
    assert(listRequests().includes(own))
    await fhir.as('team')('GET Condition/ca')
    assert(listRequests().includes('GET /CareTeam?patient=Patient/ann&_id=t1&status=active&_count=500'))
  })

  for (const [what, found] of [
    ['a team that has ended', team('t1', 'ann', { status: 'inactive' })],
    ['a team of another clinician', team('t2', 'ann', { participant: [] })],
    ['a team for another patient', team('t1', 'bob')],
    ['a team for a group', team('t1', 'ann', { subject: { reference: 'Group/ann' } })],
    ['a CarePlan', { ...team('t1', 'ann'), resourceType: 'CarePlan' }],
  ] as const)
    it(`does not contain the subject of ${what}, even if the upstream returns it`, async () => {
      respondWith({ CareTeam: [found], 'Condition/ca': condition('ca', 'ann') })
      for (const who of ['member', 'team'])
        assert.equal(readIssue(await fhir.as(who)('GET Condition/ca')), NOT_WITHIN, who)
    })
})

describe('the care teams of a clinician', () => {
  const ofMember = 'GET /CareTeam?participant=Practitioner/kim&status=active&_count=500'
  const searchTwice = () =>
    Promise.all(['GET Condition', 'GET Condition?subject=ann'].map(line => fhir.as('member')(line)))

  it('are requested once for simultaneous searches, and again for later ones', async () => {
    respondWith({ CareTeam: [team('t9', 'ann')], Condition: [condition('ca', 'ann')] })
    for (const _ of ['first', 'later']) {
      forget()
      for (const reply of await searchTwice()) assert.deepEqual(readIds(reply), ['ca'])
      assert.deepEqual(
        listRequests().filter(line => line.includes('status=active')),
        [ofMember],
      )
    }
    respondWith({ CareTeam: [], Condition: [condition('ca', 'ann')] })
    for (const reply of await searchTwice()) assert.deepEqual(readIds(reply), [])
  })

  it('are requested again for a search that waited for a failed request', async () => {
    let isFirst = true
    respondWith({
      'CareTeam?participant': () => {
        const answer = isFirst ? 503 : [team('t9', 'ann')]
        isFirst = false
        return answer
      },
      CareTeam: [team('t9', 'ann')],
      Condition: [condition('ca', 'ann')],
    })
    const [, named] = await searchTwice()
    assert.deepEqual(named && readIds(named), ['ca'])
  })
})

describe('a panel that the upstream does not return', () => {
  it('causes a 502, not a refusal', async () => {
    respondWith({ 'Condition/ca': condition('ca', 'ann'), CareTeam: 'broken' })
    assert.equal((await fhir.as('member')('GET Condition/ca')).status, 502)
    respondWith({ 'Condition/ca': condition('ca', 'ann') })
    const reply = await fhir.as('member')('GET Condition/ca')
    assert.equal(reply.status, 502)
  })

  for (const [answer, status] of [
    [503, 503],
    [504, 504],
    [400, 502],
    [Array.from({ length: 1000 }, (_, at) => team(`t${at}`, 'ann')), 200],
    [Array.from({ length: 1001 }, (_, at) => team(`t${at}`, 'ann')), 400],
  ] as const)
    it(`causes ${status} if the upstream returns ${typeof answer === 'number' ? answer : `${answer.length} care teams`}`, async () => {
      respondWith({ 'Condition/ca': condition('ca', 'ann'), CareTeam: answer })
      assert.equal((await fhir.as('member')('GET Condition/ca')).status, status)
    })

  it('is never treated as an empty panel, in a search or for an organization', async () => {
    respondWith({ Condition: [condition('ca', 'ann')], CareTeam: 'broken', Patient: 'broken' })
    for (const [who, line] of [
      ['member', 'GET Condition?subject=ann'],
      ['member', 'GET Condition'],
      ['managed', 'GET Condition?subject=ann'],
      ['managed', 'GET Condition'],
    ] as const)
      assert.equal((await fhir.as(who)(line)).status, 502, `${who} ${line}`)
  })

  it('allows no write', async () => {
    respondWith({ CareTeam: 'broken' })
    const { id: _, ...content } = condition('ca', 'ann')
    assert.equal((await fhir.as('member')('POST Condition', content)).status, 502)
    assert(!listRequests().some(line => line.startsWith('POST')))
  })
})

describe('a contained resource', () => {
  it('causes a refusal if its patient is not on the panel', async () => {
    const holding = (of: string) =>
      condition('ca', 'ann', {
        contained: [{ resourceType: 'Observation', id: 'o', subject: { reference: `Patient/${of}` } }],
      })
    const teams = [team('t1', 'ann'), team('t3', 'cat')]
    respondWith({ CareTeam: teams, 'Condition/ca': holding('cat') })
    assert.equal((await fhir.as('member')('GET Condition/ca')).status, 200)
    respondWith({ CareTeam: teams, 'Condition/ca': holding('bob') })
    assert.equal(readIssue(await fhir.as('member')('GET Condition/ca')), NOT_WITHIN)
  })
})

describe('a refused and an absent resource', () => {
  const unassigned = { resourceType: 'Condition', id: 'cn' }
  const countRequests = async (who: string, line: string) => {
    forget()
    assert.equal(readIssue(await fhir.as(who)(line)), NOT_WITHIN)
    return listRequests().length
  }

  for (const who of ['member', 'conditions'])
    it(`cause equally many requests to the upstream for ${who}`, async () => {
      respondWith({
        CareTeam: [],
        'Condition/cb/_history': searchset([condition('cb', 'bob')]),
        'Condition/cb': condition('cb', 'bob'),
        'Condition/cn/_history': searchset([unassigned]),
        'Condition/cn': unassigned,
      })
      for (const [tail, times] of [
        ['', 4],
        ['/_history', 4],
      ] as const)
        for (const id of ['cb', 'cn', 'none'])
          assert.equal(await countRequests(who, `GET Condition/${id}${tail}`), times, id + tail)
    })
})
