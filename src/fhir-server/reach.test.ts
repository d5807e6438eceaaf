import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Access, fullAccess } from '../consent/index.ts'
import {
  condition,
  type Fhir,
  guardOf,
  idsOf,
  issueOf,
  nextOf,
  observation,
  patient,
  patientAccess,
  startFhir,
} from './testing/fhir.ts'

const NOT_WITHIN = '403 forbidden: Not within the granted patient, user or filter.'
const category = (code: string) => ({
  category: [{ coding: [{ system: 'http://terminology.hl7.org/CodeSystem/observation-category', code }] }],
})
const vitals: Access = {
  reach: type => (type === 'Observation' ? [{ patient: 'ann', query: [['category', 'vital-signs']] }] : []),
}
const noPatients: Access = { reach: type => (type === 'Patient' ? [] : 'everything') }
const unreadable: Access = {
  reach: () => [{ query: [['nothing', 'x']] }, { query: [['patient.name', 'x']] }],
}

let fhir: Fhir
let ann: Fhir
let all: Fhir

const DATA = [
  { resourceType: 'Practitioner', id: 'dr', name: [{ family: 'Who' }] },
  patient('ann', { name: [{ family: 'Ann' }], generalPractitioner: [{ reference: 'Practitioner/dr' }] }),
  patient('bob', {
    name: [{ family: 'Bob' }],
    link: [{ other: { reference: 'Patient/ann' }, type: 'seealso' }],
  }),
  condition('ca', 'ann', { recordedDate: '2020' }),
  condition('cb', 'bob', { recordedDate: '2021' }),
  condition('moved', 'bob'),
  observation('oa', 'ann', { ...category('vital-signs'), valueQuantity: { value: 1 } }),
  observation('oa-lab', 'ann', category('laboratory')),
  observation('ob', 'bob', {
    ...category('vital-signs'),
    focus: [{ reference: 'Patient/ann' }],
    hasMember: [{ reference: 'Observation/oa' }],
  }),
  observation('about-ob', 'ann', { ...category('survey'), hasMember: [{ reference: 'Observation/ob' }] }),
]

before(async () => {
  fhir = await startFhir({
    guard: guardOf({
      all: fullAccess,
      ann: patientAccess('ann'),
      bob: patientAccess('bob'),
      creator: patientAccess('ann', 'c'),
      searcher: patientAccess('ann', 's'),
      vitals,
      noPatients,
      unreadable,
      user: { reach: (type, letter) => (type === 'Practitioner' && letter === 'r' ? [{ id: 'dr' }] : []) },
    }),
  })
  all = fhir.as('all')
  ann = fhir.as('ann')
  for (const it of DATA) assert.equal((await all(`PUT ${it.resourceType}/${it.id}`, it)).status, 201)
  await all('PUT Condition/moved', condition('moved', 'ann'))
  await all('PUT Condition/moved', condition('moved', 'bob'))
  await all('PUT Condition/gone-a', condition('gone-a', 'ann'))
  await all('PUT Condition/gone-b', condition('gone-b', 'bob'))
  await all('DELETE Condition/gone-a')
  await all('DELETE Condition/gone-b')
})
after(() => fhir.close())

describe('a guarded server', () => {
  it('asks for a token first, before it reads path or body', async () => {
    for (const line of [
      'GET Patient/ann',
      'GET nothing',
      'POST ',
      'DELETE Patient/ann',
      'GET _history',
      'PUT a/b/c',
    ])
      assert.equal(
        issueOf(await fhir(line, line.startsWith('P') ? 'not json' : undefined)),
        '401 login: Who?',
        line,
      )
    assert.equal((await fhir('GET Patient/ann')).headers['www-authenticate'], 'Bearer')
  })

  it('answers what is public without one (contract 5.6)', async () => {
    for (const line of ['GET metadata', 'GET .well-known/smart-configuration', 'HEAD metadata'])
      assert.equal((await fhir(line)).status, 200, line)
    assert.equal((await fhir('OPTIONS Patient')).status, 204)
    assert.equal((await fhir('POST metadata', {})).status, 401)
  })

  it('passes the refusal of the guard on, for each entry too', async () => {
    const refusing = await startFhir({
      guard: {
        admit: async () => ({
          allowed: true,
          decide: interaction =>
            interaction.kind === 'bundle' || interaction.kind === 'read'
              ? { allowed: true, access: fullAccess }
              : {
                  allowed: false,
                  status: 403,
                  headers: { 'www-authenticate': 'Bearer error="insufficient_scope"' },
                  outcome: {
                    resourceType: 'OperationOutcome',
                    issue: [{ severity: 'error', code: 'forbidden', details: { text: 'No' } }],
                  },
                },
        }),
      },
    })
    const refused = await refusing('POST Patient', { resourceType: 'Patient' })
    assert.equal(issueOf(refused), '403 forbidden: No')
    assert.equal(refused.headers['www-authenticate'], 'Bearer error="insufficient_scope"')
    const entry = [
      { resource: { resourceType: 'Patient' }, request: { method: 'POST', url: 'Patient' } },
      { request: { method: 'GET', url: 'Patient/1' } },
    ]
    const batch = await refusing('POST ', { resourceType: 'Bundle', type: 'batch', entry })
    assert.deepEqual(
      batch.body.entry?.map(it => it.response?.status),
      ['403 Forbidden', '404 Not Found'],
    )
    const whole = await refusing('POST ', { resourceType: 'Bundle', type: 'transaction', entry })
    assert.equal(issueOf(whole), '403 forbidden: No')
    await refusing.close()
  })
})

describe('a read within a compartment', () => {
  it('answers what is inside', async () => {
    for (const line of [
      'GET Patient/ann',
      'GET Condition/ca',
      'GET Practitioner/dr',
      'GET Observation/about-ob',
    ])
      assert.equal((await ann(line)).status, 200, line)
    assert.equal((await fhir.as('user')('GET Practitioner/dr')).status, 200)
  })

  it('answers what is outside, what never was, and what was deleted outside in one way', async () => {
    const lines = ['GET Condition/cb', 'GET Condition/none', 'GET Condition/gone-b', 'GET Condition/moved']
    const replies = await Promise.all(
      [...lines, 'GET Patient/bob', 'GET Observation/ob'].map(line => ann(line)),
    )
    assert.deepEqual(
      replies.map(issueOf),
      replies.map(() => NOT_WITHIN),
    )
    assert.equal(new Set(replies.map(it => it.text)).size, 1)
    assert.equal(issueOf(await fhir.as('user')('GET Practitioner/none')), NOT_WITHIN)
  })

  it('answers 410 for what was deleted inside, 404 for what the grant itself names', async () => {
    assert.equal((await ann('GET Condition/gone-a')).status, 410)
    const lonely = await startFhir({ guard: guardOf({ ann: patientAccess('ann') }) })
    assert.equal((await lonely.as('ann')('GET Patient/ann')).status, 404)
    assert.equal(issueOf(await lonely.as('ann')('GET Patient/bob')), NOT_WITHIN)
    await lonely.close()
  })

  it('judges each version by its own content', async () => {
    assert.equal((await ann('GET Condition/moved/_history/2')).status, 200)
    for (const version of [1, 3, 4])
      assert.equal(issueOf(await ann(`GET Condition/moved/_history/${version}`)), NOT_WITHIN)
    assert.equal((await fhir.as('bob')('GET Condition/moved/_history/2')).status, 403)
  })

  it('heeds a granular limit', async () => {
    const limited = fhir.as('vitals')
    assert.equal((await limited('GET Observation/oa')).status, 200)
    for (const line of [
      'GET Observation/oa-lab',
      'GET Observation/ob',
      'GET Patient/ann',
      'GET Observation/none',
    ])
      assert.equal(issueOf(await limited(line)), NOT_WITHIN, line)
    assert.equal(issueOf(await fhir.as('unreadable')('GET Observation/oa')), NOT_WITHIN)
  })
})

describe('a search within a compartment', () => {
  /** What the patient's app finds; matches and includes together. */
  const FINDS: Readonly<Record<string, string>> = {
    Patient: 'ann',
    'Patient?_id=ann,bob': 'ann',
    'Patient?_id=bob': '',
    Condition: 'ca',
    'Condition?patient=bob': '',
    'Condition?patient=ann,bob': 'ca',
    'Condition?subject=Patient/bob': '',
    'Condition?_id=cb': '',
    'Condition?_sort=-recorded-date': 'ca',
    'Patient/bob/Condition': '',
    'Patient/bob/*': '',
    'Patient/ann/Condition': 'ca',
    '?_type=Patient,Condition,Practitioner': 'ann ca dr',
    Observation: 'about-ob oa oa-lab',
    'Observation?focus=Patient/ann': '',
    'Observation?_id=about-ob&_include=Observation:has-member': 'about-ob',
    'Observation?_id=about-ob&_include=Observation:*': 'about-ob ann',
    'Patient?_include:iterate=Patient:link&_revinclude:iterate=Patient:link': 'ann',
    'Patient?_revinclude=Condition:patient': 'ann ca',
    'Observation?_id=oa&_revinclude=Observation:has-member': 'oa',
    'Observation?_id=oa&_revinclude:iterate=Observation:has-member&_include:iterate=Observation:subject':
      'ann oa',
    'Practitioner?_revinclude=Patient:general-practitioner&_revinclude:iterate=Condition:patient':
      'ann ca dr',
    'Condition?patient.name=bob': '',
    'Condition?patient.name=ann': 'ca',
    'Observation?has-member.subject=Patient/bob': '',
    'Observation?has-member.status=final': '',
    'Patient?_has:Condition:patient:recorded-date=2021': '',
    'Practitioner?_has:Patient:general-practitioner:name=ann': 'dr',
    'Observation?_has:Observation:has-member:status=final': '',
    'Patient/ann/$everything': 'about-ob ann ca dr oa oa-lab',
  }
  for (const [url, found] of Object.entries(FINDS))
    it(`finds ${found || 'nothing'} by ${url}`, async () => {
      const reply = await ann(`GET ${url}`)
      assert.equal(reply.status, 200, reply.text)
      assert.deepEqual(
        [...idsOf(reply), ...idsOf(reply, 'include')].toSorted(),
        found.split(' ').filter(Boolean),
      )
      assert.equal(reply.body.total, idsOf(reply).length)
      const counted = await ann(`GET ${url}${url.includes('?') ? '&' : '?'}_summary=count`)
      if (!url.includes('$')) assert.equal(counted.body.total, idsOf(reply).length)
    })

  it('keeps to a granular limit in matches, counts, includes and sorting', async () => {
    const limited = fhir.as('vitals')
    assert.deepEqual(idsOf(await limited('GET Observation?_sort=-date')), ['oa'])
    assert.equal((await limited('GET Observation?_summary=count')).body.total, 1)
    const brought = await limited('GET Observation?_include=Observation:subject')
    assert.deepEqual(idsOf(brought, 'include'), [])
    assert.equal((await fhir.as('unreadable')('GET Observation?_summary=count')).body.total, 0)
  })

  it('looks into no type that a chain must not know', async () => {
    const blind = fhir.as('noPatients')
    assert.equal((await blind('GET Condition?_summary=count')).body.total, 3)
    assert.equal((await blind('GET Condition?patient.name=ann&_summary=count')).body.total, 0)
    assert.equal(
      (await blind('GET Practitioner?_has:Patient:general-practitioner:name=ann&_summary=count')).body.total,
      0,
    )
    assert.deepEqual(idsOf(await blind('GET Condition?_id=ca&_include=Condition:patient'), 'include'), [])
  })

  it('searches the next page with the access of who asks for it', async () => {
    const next = nextOf(await all('GET Condition?_count=1')) ?? ''
    const own = await ann(`GET ${next}`)
    assert.equal(own.status, 200)
    assert.deepEqual(
      idsOf(own).filter(id => id !== 'ca'),
      [],
    )
    assert.deepEqual(idsOf(await fhir.as('vitals')(`GET ${next}`)), [])
  })
})

describe('a history within a compartment', () => {
  it('shows the versions inside, and counts no others', async () => {
    const type = await ann('GET Condition/_history')
    const shown = type.body.entry?.map(it => `${it.fullUrl?.split('/').at(-1)} ${it.response?.etag}`)
    assert.deepEqual(shown, ['gone-a W/"2"', 'gone-a W/"1"', 'moved W/"2"', 'ca W/"1"'])
    assert.equal(type.body.total, 4)
    const instance = await ann('GET Condition/moved/_history')
    assert.deepEqual(
      instance.body.entry?.map(it => it.response?.etag),
      ['W/"2"'],
    )
    const system = await ann('GET _history?_count=500')
    const subjects = system.body.entry?.flatMap(it => it.resource?.subject ?? [])
    assert(subjects?.every(it => JSON.stringify(it) === '{"reference":"Patient/ann"}'))
  })

  it('answers one way for what is outside and what never was', async () => {
    assert.equal(issueOf(await ann('GET Condition/cb/_history')), NOT_WITHIN)
    assert.equal(issueOf(await ann('GET Condition/none/_history')), NOT_WITHIN)
  })

  it('looks into the content of each version for a granular limit', async () => {
    const reply = await fhir.as('vitals')('GET Observation/_history')
    assert.deepEqual(
      reply.body.entry?.map(it => it.resource?.id),
      ['oa'],
    )
    assert.equal(reply.body.total, 1)
    assert.equal((await fhir.as('unreadable')('GET Observation/_history')).body.total, 0)
  })
})

describe('a write within a compartment', () => {
  it('takes new content inside, and refuses it outside', async () => {
    assert.equal((await ann('POST Condition', condition('', 'ann'))).status, 422, 'an empty id is invalid')
    const { id: _, ...mine } = condition('x', 'ann')
    const { id: __, ...other } = condition('x', 'bob')
    assert.equal((await ann('POST Condition', mine)).status, 201)
    assert.equal(issueOf(await ann('POST Condition', other)), NOT_WITHIN)
    assert.equal(issueOf(await ann('PUT Condition/new', condition('new', 'bob'))), NOT_WITHIN)
    assert.equal((await all('GET Condition/new')).status, 404)
  })

  it('moves nothing into the compartment and nothing out of it', async () => {
    await all('PUT Condition/w', condition('w', 'bob'))
    assert.equal(issueOf(await ann('PUT Condition/w', condition('w', 'ann'))), NOT_WITHIN)
    await all('PUT Condition/w', condition('w', 'ann'))
    assert.equal(issueOf(await ann('PUT Condition/w', condition('w', 'bob'))), NOT_WITHIN)
    const patch = [{ op: 'replace', path: '/subject/reference', value: 'Patient/bob' }]
    const type = { 'content-type': 'application/json-patch+json' }
    assert.equal(issueOf(await ann('PATCH Condition/w', patch, type)), NOT_WITHIN)
    assert.equal(issueOf(await ann('PATCH Condition/cb', [], type)), NOT_WITHIN)
    assert.equal(issueOf(await ann('PATCH Condition/none', [], type)), NOT_WITHIN)
    assert.equal(
      ((await all('GET Condition/w')).body.subject as { reference: string }).reference,
      'Patient/ann',
    )
  })

  it('deletes only inside, and answers one way outside', async () => {
    await all('PUT Condition/x', condition('x', 'ann'))
    assert.equal((await ann('DELETE Condition/x')).status, 204)
    assert.equal((await ann('DELETE Condition/x')).status, 204)
    for (const id of ['cb', 'none', 'gone-b'])
      assert.equal(issueOf(await ann(`DELETE Condition/${id}`)), NOT_WITHIN)
    assert.equal((await all('GET Condition/cb')).status, 200)
  })

  it('uses no condition as an oracle', async () => {
    const header = { 'if-none-exist': 'recorded-date=2021' }
    const { id: _, ...mine } = condition('x', 'ann')
    assert.equal((await ann('POST Condition', mine, header)).status, 201, 'a match outside is no match')
    assert.equal((await ann('DELETE Condition?recorded-date=2021')).status, 204)
    assert.equal((await all('GET Condition/cb')).status, 200)
    assert.equal(issueOf(await ann('PUT Condition?recorded-date=2021', condition('cb', 'ann'))), NOT_WITHIN)
  })

  it('is answered with the minimum where the caller may not read', async () => {
    const { id: _, ...mine } = condition('x', 'ann')
    const reply = await fhir.as('creator')('POST Condition', mine)
    assert.deepEqual([reply.status, reply.text], [201, ''])
    assert.match(String(reply.headers.location), /Condition\/[\w-]+\/_history\/1$/)
  })
})
