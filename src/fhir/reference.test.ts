import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { resourceTypes } from './definitions.ts'
import { parseReference } from './reference.ts'

const base = 'http://localhost:8080/fhir'

describe('parseReference', () => {
  it('reads a relative reference', () => {
    assert.deepEqual(parseReference('Patient/a-1.b', base), { type: 'Patient', id: 'a-1.b' })
  })

  it('reads an absolute reference under the base, with or without its trailing slash', () => {
    assert.deepEqual(parseReference(`${base}/Patient/1`, base), { type: 'Patient', id: '1' })
    assert.deepEqual(parseReference(`${base}/Patient/1`, `${base}/`), { type: 'Patient', id: '1' })
  })

  it('separates the version', () => {
    assert.deepEqual(parseReference('Patient/1/_history/2', base), { type: 'Patient', id: '1', version: '2' })
    assert.deepEqual(parseReference(`${base}/Patient/1/_history/2`, base), {
      type: 'Patient',
      id: '1',
      version: '2',
    })
  })

  it('accepts ids and versions of up to 64 characters', () => {
    const long = 'a'.repeat(64)
    assert.deepEqual(parseReference(`Patient/${long}/_history/${long}`, base), {
      type: 'Patient',
      id: long,
      version: long,
    })
    for (const text of [`Patient/${long}a`, `Patient/1/_history/${long}a`])
      assert.equal(parseReference(text, base), undefined)
  })

  const foreign = [
    '#p',
    '#Patient/1',
    'urn:uuid:c757873d-ec9a-4326-a141-556f43239520',
    'http://other.example/fhir/Patient/1',
    'http://localhost:8080/fhir2/Patient/1',
    'http://localhost:8080/fhirPatient/1',
    'https://localhost:8080/fhir/Patient/1',
    `${base}//Patient/1`,
    `http://other.example/?${base}/Patient/1`,
    '/Patient/1',
    'fhir/Patient/1',
    './Patient/1',
    'Patient/1/',
    'Patient/1?x=y',
    'Patient/1#x',
    'Patient/1\n',
    'Patient/',
    'Patient',
    'patient/1',
    'Nonsense/1',
    'Resource/1',
    'Patient/1/_history',
    'Patient/1/_history/',
    'Patient/1/Condition',
    `Patient/${'1'.repeat(65)}`,
    'Patient/%31',
    'Patient/1,Patient/2',
    'Patient?identifier=1',
    '',
  ]
  for (const text of foreign) {
    it(`does not accept ${JSON.stringify(text).slice(0, 60)}`, () => {
      assert.equal(parseReference(text, base), undefined)
    })
  }

  it('reads back every type and id', () => {
    const ids = fc.stringMatching(/^[A-Za-z0-9\-.]{1,64}$/)
    fc.assert(
      fc.property(fc.constantFrom(...resourceTypes), ids, fc.boolean(), (type, id, absolute) => {
        const text = `${absolute ? `${base}/` : ''}${type}/${id}`
        assert.deepEqual(parseReference(text, base), { type, id })
      }),
    )
  })
})
