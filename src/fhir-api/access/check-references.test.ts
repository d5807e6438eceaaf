import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import {
  BASE,
  condition,
  createAuthenticator,
  NOT_WITHIN,
  readIssue,
} from '../../backends/sqlite/testing/fhir.ts'
import { makeOutside } from '../../backends/upstream/testing/hostile-gateway.ts'
import { json, searchset, startHostile } from '../../backends/upstream/testing/hostile-upstream.ts'
import { startGateway } from '../../backends/upstream/testing/start-gateway.ts'
import { Work } from '../../fhir/index.ts'
import { type Access, fullAccess } from '../../smart/index.ts'
import { findHiddenSearch } from './check-references.ts'

/** A clinician of one patient, with full access to two types without patients. */
const clinician: Access = {
  filterFor: type => (['Practitioner', 'Organization'].includes(type) ? 'everything' : [{ patient: 'ann' }]),
}

const upstream = await startHostile()
const fhir = await startGateway(upstream.url, { guard: createAuthenticator({ clinician, all: fullAccess }) })
const as = fhir.as('clinician')
after(async () => {
  await fhir.close()
  await upstream.close()
})

const referring = (reference: string) => {
  const { id: _, ...content } = condition('c', 'ann', { recorder: { reference } })
  return content
}
const practitionerAbout = (reference: string) => ({
  resourceType: 'Practitioner',
  extension: [{ url: 'http://x.test/about', valueReference: { reference } }],
})

// Some server resolves each of these (R4 http.html#trules; HAPI reads the part after the last slash, in any write).
const HIDDEN = [
  'Patient?name=Bob',
  `${BASE}/Patient?name=Bob`,
  'http://elsewhere.test/x/Patient?name=Bob',
  'Practitioner?_has:Observation:performer:patient=bob',
  'Practitioner?%5Fhas:Observation:performer:patient=bob',
  'Practitioner?identifier=1&_filter=x',
  'Practitioner?_list=7',
  'Practitioner?%zz=1',
]

// Not R4 references: only the upstream server reads content of an unlimited type.
const UNREADABLE = ['Patient/?name=Bob', 'patient?name=Bob', '?name=Bob', 'Organization?partof.name=x']

describe('findHiddenSearch', () => {
  const hides = (content: unknown, access = clinician) =>
    findHiddenSearch(content, access, BASE, new Work()) !== undefined
  const hidden = { reference: 'Patient?name=Bob' }

  it('finds a conditional reference among others, in any element', () => {
    assert(hides({ a: [{ reference: 'Patient/ann' }, hidden, { reference: 'Patient/bob' }] }))
    assert(hides({ a: { b: [[hidden]] } }))
    assert(!hides({ a: [{ reference: 'Patient/ann' }] }))
    assert(!hides(hidden, fullAccess))
  })

  it('reads no other text as a reference', () => {
    assert(!hides({ note: [{ text: 'Patient?name=Bob' }], reference: 5 }))
    assert(hides({ reference: hidden }))
  })

  it('requires the permission to search', () => {
    const only = (permission: string): Access => ({
      filterFor: (_type, it) => (it === permission ? 'everything' : []),
    })
    assert(!hides({ reference: 'Practitioner?name=x' }, only('s')))
    assert(hides({ reference: 'Practitioner?name=x' }, only('r')))
  })
})

describe('a conditional reference', () => {
  for (const reference of HIDDEN)
    it(`is not sent if it searches outside the access filter: ${reference}`, async () => {
      const from = upstream.seen.length
      upstream.answer((_request, response) => json(response, {}, 201))
      const ofPatient = reference.includes('Patient?')
      assert.equal(
        readIssue(await as('POST Condition', referring(reference))),
        ofPatient ? NOT_WITHIN : makeOutside('Condition.recorder'),
      )
      assert.equal(
        readIssue(await as('POST Practitioner', practitionerAbout(reference))),
        makeOutside('Practitioner.extension[0].valueReference'),
      )
      // The gateway asks by itself, too, whether the server responds.
      const isProbe = ({ line }: { readonly line: string }) => line.endsWith('?_summary=count&_count=0')
      assert.deepEqual(
        upstream.seen.slice(from).filter(it => !isProbe(it)),
        [],
      )
    })

  for (const reference of UNREADABLE)
    it(`is not sent in content that only the upstream server validates: ${reference}`, async () => {
      upstream.answer((_request, response) => json(response, {}, 201))
      assert.equal(
        readIssue(await as('POST Practitioner', practitionerAbout(reference))),
        makeOutside('Practitioner.extension[0].valueReference'),
      )
    })

  it('is sent if the caller may see everything that it searches', async () => {
    upstream.answer((_request, response) => response.writeHead(201).end())
    for (const reference of [
      'Practitioner?identifier=http://x.test|1',
      'Practitioner/dr',
      '#a',
      'urn:uuid:1',
    ])
      assert.equal((await as('POST Practitioner', practitionerAbout(reference))).status, 201, reference)
    assert.equal(
      (await fhir.as('all')('POST Practitioner', practitionerAbout('Patient?name=Bob'))).status,
      201,
    )
  })

  it('is resolved within the access filter in a transaction, including its chain', async () => {
    const from = upstream.seen.length
    upstream.answer((request, response) =>
      request.method === 'POST'
        ? json(response, { resourceType: 'Bundle', entry: [{ response: { status: '201' } }] })
        : json(response, searchset([])),
    )
    const entry = [
      {
        request: { method: 'POST', url: 'Condition' },
        resource: referring('Practitioner?_has:Observation:performer:patient=bob'),
      },
    ]
    const reply = await as('POST', { resourceType: 'Bundle', type: 'transaction', entry })
    assert.equal(reply.status, 404)
    const requested = upstream.seen.slice(from).map(it => decodeURIComponent(it.line))
    assert.deepEqual(requested, ['GET /up/Observation?patient=bob&_count=500&patient=Patient/ann'])
  })
})
