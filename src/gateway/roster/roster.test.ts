import assert from 'node:assert/strict'
import { after, beforeEach, describe, it } from 'node:test'
import type { Access, Panel } from '../../consent/index.ts'
import { condition, guardOf, idsOf, issueOf, patient, patientAccess } from '../../fhir-server/testing/fhir.ts'
import { NOT_WITHIN } from '../testing/hostile-gateway.ts'
import { type Handler, json, searchset, startHostile } from '../testing/hostile-upstream.ts'
import { startGateway } from '../testing/start-gateway.ts'

const kim = { type: 'Practitioner', id: 'kim' }
const limitsOf = (more: Partial<Panel>) => [
  { panel: { patients: new Set<string>(), organizations: [], careTeams: [], ...more } },
]
const panelOf = (more: Partial<Panel>): Access => {
  const [{ panel } = assert.fail()] = limitsOf(more)
  return {
    reach: (type, letter) =>
      type === 'Practitioner'
        ? 'everything'
        : [{ panel, ...(letter !== 'r' && letter !== 's' && { sole: true }) }],
  }
}

const upstream = await startHostile()
const fhir = await startGateway(upstream.url, {
  guard: guardOf({
    managed: panelOf({ organizations: ['north', 'east'] }),
    member: panelOf({ member: kim }),
    team: panelOf({ careTeams: ['t1'] }),
    mixed: panelOf({ patients: new Set(['zoe']), organizations: ['north'], member: kim }),
    north: panelOf({ organizations: ['north'] }),
    teamed: panelOf({ organizations: ['north'], careTeams: ['t1'] }),
    launched: { reach: () => [{ patient: 'zoe' }, ...limitsOf({ member: kim })] },
    several: {
      reach: () => [
        ...limitsOf({ patients: new Set(['zoe']) }).map(it => ({ ...it, query: [['code', 'x']] as const })),
        ...limitsOf({ organizations: ['north'] }),
      ],
    },
    nobody: panelOf({}),
    ann: patientAccess('ann'),
    conditions: {
      reach: (type, letter) => (type === 'Condition' ? panelOf({ member: kim }).reach(type, letter) : []),
    },
  }),
  timeoutMs: 800,
  narrowing: 'parameter',
})
after(async () => {
  await fhir.close()
  await upstream.close()
})

const managedBy = (id: string, organization: string) =>
  patient(id, { managingOrganization: { reference: organization } })
const team = (id: string, of: string, more: object = {}) => ({
  resourceType: 'CareTeam',
  id,
  status: 'active',
  subject: { reference: `Patient/${of}` },
  participant: [{ member: { reference: 'Practitioner/kim' } }],
  ...more,
})

/** Answers by the begin of what is asked for; whatever else is asked is not there. */
function tells(answers: Readonly<Record<string, unknown>>): void {
  const handler: Handler = (request, response) => {
    const line = decodeURIComponent(request.url ?? '').slice('/up/'.length)
    const [, told] = Object.entries(answers).find(([begin]) => line.startsWith(begin)) ?? []
    const answer = typeof told === 'function' ? told(line) : told
    if (typeof answer === 'number') json(response, {}, answer)
    else if (answer === 'broken') response.writeHead(200, { 'content-type': 'text/html' }).end('<p>')
    else if (answer === undefined) json(response, {}, 404)
    else json(response, Array.isArray(answer) ? searchset(answer) : answer)
  }
  upstream.answer(handler)
}

let from = 0
beforeEach(() => {
  from = upstream.seen.length
})
const asked = () => upstream.seen.slice(from).map(it => decodeURIComponent(it.line).replace(' /up', ' '))

describe('a panel of an organization', () => {
  it('is asked for by the patients of what is judged, once for all of them', async () => {
    tells({
      Condition: [condition('ca', 'ann'), condition('cb', 'bob'), condition('cc', 'cat')],
      'Patient?_id': [
        managedBy('ann', 'Organization/north'),
        managedBy('bob', 'Organization/south'),
        managedBy('cat', 'Organization/east'),
      ],
    })
    const reply = await fhir.as('managed')('GET Condition?patient=ann,bob,cat')
    assert.deepEqual(idsOf(reply), ['ca', 'cc'])
    assert.deepEqual(asked(), [
      'GET /Patient?_id=ann,bob,cat&_count=500',
      'GET /Condition?patient=ann,bob,cat&patient=Patient/ann,Patient/cat',
      'GET /Patient?_id=ann,bob,cat&_count=500',
    ])
  })

  for (const [what, organization] of [
    ['another type of the same id', 'Practitioner/north'],
    ['another server', 'http://elsewhere.test/fhir/Organization/north'],
    ['none', ''],
  ] as const)
    it(`holds nobody by ${what}`, async () => {
      tells({
        'Patient?_id': [managedBy('ann', organization)],
        'Patient/ann': managedBy('ann', organization),
      })
      assert.equal(issueOf(await fhir.as('managed')('GET Patient/ann')), NOT_WITHIN)
    })

  it('narrows a search for patients by itself', async () => {
    tells({ 'Patient?name': [managedBy('ann', 'Organization/north')], 'Patient?_id': [] })
    await fhir.as('managed')('GET Patient?name=a')
    assert.equal(asked()[0], 'GET /Patient?name=a&organization=Organization/north,Organization/east')
    from = upstream.seen.length
    await fhir.as('north')('GET Patient?name=a')
    assert.equal(asked()[0], 'GET /Patient?name=a&organization=Organization/north')
  })

  it("narrows no search for what is nobody's", async () => {
    tells({ Practitioner: [] })
    await fhir.as('managed')('GET Practitioner?name=a')
    assert.deepEqual(asked(), ['GET /Practitioner?name=a'])
  })

  it('is asked about by fifty, and by who is not on another panel too', async () => {
    const ids = Array.from({ length: 51 }, (_, at) => `p${at}`)
    tells({
      'Patient?_id': (line: string) =>
        (/_id=([^&]*)/.exec(line)?.[1]?.split(',') ?? []).map(id => managedBy(id, 'Organization/north')),
      'Condition?': ids.map(id => condition(`c-${id}`, id)),
      'Condition/cz': condition('cz', 'zoe'),
    })
    assert.equal(idsOf(await fhir.as('north')('GET Condition?subject=p0,p1&_count=60')).length, 51)
    assert.equal(asked().at(-2)?.split(',').length, 50)
    assert.equal(asked().at(-1), 'GET /Patient?_id=p50&_count=500')
    tells({
      'Patient?_id=zoe': [managedBy('zoe', 'Organization/north')],
      'Condition/cz': condition('cz', 'zoe'),
    })
    assert.equal((await fhir.as('several')('GET Condition/cz')).status, 200)
  })

  it('is not kept: who leaves it is out of reach with the next request', async () => {
    const read = () => fhir.as('managed')('GET Patient/ann')
    const ann = managedBy('ann', 'Organization/north')
    tells({ 'Patient?_id': [ann], 'Patient/ann': ann })
    assert.equal((await read()).status, 200)
    tells({ 'Patient?_id': [managedBy('ann', 'Organization/south')], 'Patient/ann': ann })
    assert.equal(issueOf(await read()), NOT_WITHIN)
  })
})

describe('a panel of care teams', () => {
  it('holds the subject of an active team of the clinician', async () => {
    tells({ CareTeam: [team('t9', 'ann')], 'Condition/ca': condition('ca', 'ann') })
    assert.equal((await fhir.as('member')('GET Condition/ca')).status, 200)
    const own = 'GET /CareTeam?patient=Patient/ann&participant=Practitioner/kim&status=active&_count=500'
    assert(asked().includes(own))
    await fhir.as('team')('GET Condition/ca')
    assert(asked().includes('GET /CareTeam?patient=Patient/ann&_id=t1&status=active&_count=500'))
  })

  for (const [what, found] of [
    ['a team that has ended', team('t1', 'ann', { status: 'inactive' })],
    ['a team of somebody else', team('t2', 'ann', { participant: [] })],
    ['a team for somebody else', team('t1', 'bob')],
    ['a team for a group', team('t1', 'ann', { subject: { reference: 'Group/ann' } })],
    ['something else', { ...team('t1', 'ann'), resourceType: 'CarePlan' }],
  ] as const)
    it(`holds nobody by ${what}, though the upstream found it`, async () => {
      tells({ CareTeam: [found], 'Condition/ca': condition('ca', 'ann') })
      for (const who of ['member', 'team'])
        assert.equal(issueOf(await fhir.as(who)('GET Condition/ca')), NOT_WITHIN, who)
    })

  it('narrows a search to the patients of the teams, and of all else that is on it', async () => {
    tells({
      'CareTeam?participant': [team('t9', 'ann'), team('t8', 'bob', { status: 'proposed' })],
      'CareTeam?_id': [team('t1', 'cat', { participant: [] }), team('t2', 'dan', { participant: [] })],
      'Patient?organization': [managedBy('eve', 'Organization/north')],
      Condition: [],
    })
    await fhir.as('member')('GET Condition')
    assert.equal(asked().at(-1), 'GET /Condition?patient=Patient/ann')
    await fhir.as('team')('GET Condition')
    assert.equal(asked().at(-1), 'GET /Condition?patient=Patient/cat')
    await fhir.as('mixed')('GET Condition?code=x')
    assert.equal(asked().at(-1), 'GET /Condition?code=x&patient=Patient/zoe,Patient/ann,Patient/eve')
    await fhir.as('launched')('GET Condition')
    assert.equal(asked().at(-1), 'GET /Condition?patient=Patient/zoe,Patient/ann')
    tells({
      'CareTeam?_id': [team('t1', 'cat')],
      'Patient?organization': [{ resourceType: 'Patient' }, managedBy('eve', 'Organization/north')],
      'Patient?': [],
    })
    await fhir.as('teamed')('GET Patient?name=a')
    assert.equal(asked().at(-1), 'GET /Patient?name=a&_id=cat,eve')
  })

  for (const [count, isListed] of [
    [100, true],
    [101, false],
  ] as const)
    it(`of ${count} patients ${isListed ? 'are' : 'are not'} listed`, async () => {
      tells({
        'CareTeam?participant': Array.from({ length: count }, (_, at) => team(`t${at}`, `p${at}`)),
        Condition: [],
      })
      await fhir.as('member')('GET Condition')
      const patients = `patient=${Array.from({ length: count }, (_, at) => `Patient/p${at}`)}`
      assert.equal(asked().at(-1), `GET /Condition?${isListed ? patients : '_count=100'}`)
    })

  it('is posted where it is too long for an address', async () => {
    const ids = Array.from({ length: 90 }, (_, at) => `${at}-`.padEnd(64, 'x'))
    tells({
      'Condition/_search': [],
      'CareTeam?participant': ids.map((id, at) => team(`t${at}`, id)),
    })
    assert.equal((await fhir.as('member')('GET Condition')).status, 200)
    const { line, body } = upstream.seen.at(-1) ?? {}
    assert.equal(line, 'POST /up/Condition/_search')
    assert.equal(decodeURIComponent(body ?? ''), `patient=${ids.map(id => `Patient/${id}`)}`)
  })

  it('searches nothing for who has no patient, or asks for those of others', async () => {
    tells({ CareTeam: [] })
    for (const [who, line] of [
      ['member', 'GET Condition'],
      ['member', 'GET Condition?subject=Patient/bob'],
      ['member', 'GET Patient?_id=bob'],
      ['nobody', 'GET Patient'],
      ['nobody', 'GET Patient?_summary=count'],
    ] as const) {
      const reply = await fhir.as(who)(line)
      assert.deepEqual([reply.status, reply.body.total, reply.body.entry], [200, 0, undefined], line)
    }
    assert(!asked().some(line => /^GET \/(?:Condition|Patient)/.test(line)), asked().join('\n'))
  })
})

describe('all of a compartment', () => {
  it('is looked through for a patient on the panel alone', async () => {
    tells({ CareTeam: [team('t9', 'ann')], 'Patient/ann/*': [condition('ca', 'ann')] })
    assert.deepEqual(idsOf(await fhir.as('conditions')('GET Patient/ann/*')), ['ca'])
    for (const line of ['GET Patient/bob/*', 'GET Patient/none/*?_summary=count']) {
      from = upstream.seen.length
      assert.equal((await fhir.as('conditions')(line)).body.total, 0)
      assert.deepEqual(
        asked().map(it => it.slice(0, 'GET /CareTeam?'.length)),
        ['GET /CareTeam?'],
      )
    }
  })

  it('is looked through in the own one by who sees one patient', async () => {
    const both = condition('both', 'bob', { asserter: { reference: 'Patient/ann' } })
    tells({ 'Patient/ann/*': [condition('ca', 'ann'), both] })
    assert.deepEqual(idsOf(await fhir.as('ann')('GET Patient/bob/*')), ['both'])
    assert.deepEqual(idsOf(await fhir.as('ann')('GET Patient/ann/*')), ['ca', 'both'])
    assert(asked().every(it => it.startsWith('GET /Patient/ann/*?')))
  })
})

describe('a panel that the upstream does not tell', () => {
  it('is its trouble and not a refusal, and its words stay behind', async () => {
    tells({ 'Condition/ca': condition('ca', 'ann'), CareTeam: 'broken' })
    assert.equal((await fhir.as('member')('GET Condition/ca')).status, 502)
    tells({ 'Condition/ca': condition('ca', 'ann') })
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
    it(`is ${status} for ${typeof answer === 'number' ? answer : `${answer.length} care teams`}`, async () => {
      tells({ 'Condition/ca': condition('ca', 'ann'), CareTeam: answer })
      assert.equal((await fhir.as('member')('GET Condition/ca')).status, status)
    })

  it('is not taken for one that holds nobody, by a search or of an organization', async () => {
    tells({ Condition: [condition('ca', 'ann')], CareTeam: 'broken', Patient: 'broken' })
    for (const [who, line] of [
      ['member', 'GET Condition?subject=ann'],
      ['member', 'GET Condition'],
      ['managed', 'GET Condition?subject=ann'],
      ['managed', 'GET Condition'],
    ] as const)
      assert.equal((await fhir.as(who)(line)).status, 502, `${who} ${line}`)
  })

  it('writes nothing', async () => {
    tells({ CareTeam: 'broken' })
    const { id: _, ...content } = condition('ca', 'ann')
    assert.equal((await fhir.as('member')('POST Condition', content)).status, 502)
    assert(!asked().some(line => line.startsWith('POST')))
  })
})

describe('what a resource contains', () => {
  it('is about nobody off the panel', async () => {
    const holding = (of: string) =>
      condition('ca', 'ann', {
        contained: [{ resourceType: 'Observation', id: 'o', subject: { reference: `Patient/${of}` } }],
      })
    const teams = [team('t1', 'ann'), team('t3', 'cat')]
    tells({ CareTeam: teams, 'Condition/ca': holding('cat') })
    assert.equal((await fhir.as('member')('GET Condition/ca')).status, 200)
    tells({ CareTeam: teams, 'Condition/ca': holding('bob') })
    assert.equal(issueOf(await fhir.as('member')('GET Condition/ca')), NOT_WITHIN)
  })
})

describe('refused and absent', () => {
  const nobodys = { resourceType: 'Condition', id: 'cn' }
  const often = async (who: string, line: string) => {
    from = upstream.seen.length
    assert.equal(issueOf(await fhir.as(who)(line)), NOT_WITHIN)
    return asked().length
  }

  for (const who of ['member', 'conditions'])
    it(`ask the upstream equally often, for ${who}`, async () => {
      tells({
        CareTeam: [],
        'Condition/cb/_history': searchset([condition('cb', 'bob')]),
        'Condition/cb': condition('cb', 'bob'),
        'Condition/cn/_history': searchset([nobodys]),
        'Condition/cn': nobodys,
      })
      for (const [tail, times] of [
        ['', 4],
        ['/_history', 2],
      ] as const)
        for (const id of ['cb', 'cn', 'none'])
          assert.equal(await often(who, `GET Condition/${id}${tail}`), times, id + tail)
    })
})
