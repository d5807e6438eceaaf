import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  findContainedPatients,
  findReferredPatients,
  namesOtherPatient,
  UNKNOWN_PATIENT,
} from './other-patients.ts'

const base = 'http://localhost:8080/fhir'
const names = (asserter: string) =>
  namesOtherPatient(
    {
      resourceType: 'Condition',
      subject: { reference: 'Patient/1' },
      asserter: { reference: asserter },
    },
    '1',
    base,
  )
const long = 'a'.repeat(64)

describe('namesOtherPatient', () => {
  it('finds another patient on this server and on others', () => {
    for (const reference of [
      'Patient/2',
      'Patient/2/_history/1',
      `${base}/Patient/2`,
      'http://other.test/fhir/Patient/1',
      'https://other.test/Patient/2/_history/1',
    ])
      assert.equal(names(reference), true, reference)
  })

  it('is false for the patient and for resources that are not patients', () => {
    for (const reference of [
      'Patient/1',
      `${base}/Patient/1`,
      'Practitioner/2',
      '#p',
      'http://other.test/fhir/Practitioner/2',
      'http://other.test/fhir/Practitioner/2/_history/1',
      `http://other.test/fhir/Practitioner/${long}`,
      `http://other.test/fhir/Practitioner/2/_history/${long}`,
    ])
      assert.equal(names(reference), false, reference)
  })

  it('is true if the subject has no type', () => {
    const names = (reference: string) =>
      namesOtherPatient({ resourceType: 'Condition', subject: { reference } }, '1', base)
    for (const reference of ['urn:uuid:3b5a1c70-0000-4000-8000-000000000000', 'Patient?identifier=1'])
      assert.equal(names(reference), true, reference)
    for (const reference of ['Patient/1', 'Group/1', '#p', 'http://other.test/fhir/Group/1'])
      assert.equal(names(reference), false, reference)
  })

  it('is true for unknown patients', () => {
    for (const reference of [
      'urn:uuid:3b5a1c70-0000-4000-8000-000000000000',
      'Patient?identifier=1',
      'http://other.test/fhir/Practitioner',
      `http://other.test/fhir/Practitioner/${long}a`,
      `http://other.test/fhir/Practitioner/2/_history/${long}a`,
      'http://other.test/fhir/Practitioner/2/_history/',
    ])
      assert.equal(names(reference), true, reference)
  })

  // Condition.patient is Condition.subject.where(resolve() is Patient).
  const subject = (reference: string, type?: string) =>
    namesOtherPatient(
      {
        resourceType: 'Condition',
        subject: { reference, ...(type !== undefined && { type }) },
        asserter: { reference: 'Patient/1' },
      },
      '1',
      base,
    )

  it('is true for references of unknown type, whatever Reference.type says', () => {
    for (const reference of [
      'urn:uuid:3b5a1c70-0000-4000-8000-000000000000',
      `${base}/Patient/2/`,
      `${base}/Patient/%32`,
    ])
      for (const type of [undefined, 'Group']) assert.equal(subject(reference, type), true, reference)
    for (const reference of ['Group/2', '#g', 'http://other.test/fhir/Group/2', 'Patient/1'])
      assert.equal(subject(reference), false, reference)
  })

  it('is false for a reference without a URL', () => {
    for (const subject of [{ identifier: { value: '2' } }, { reference: 5 }, { reference: '' }])
      assert.equal(namesOtherPatient({ resourceType: 'Condition', subject }, '1', base), false)
  })

  it('reads the security context of a Binary', () => {
    const binary = (securityContext?: unknown) =>
      namesOtherPatient({ resourceType: 'Binary', securityContext }, '1', base)
    for (const reference of ['Patient/2', 'http://other.test/fhir/Patient/1', 'urn:uuid:1', 'Patient?name=x'])
      assert.equal(binary({ reference }), true, reference)
    for (const reference of [
      'Patient/1',
      'Practitioner/2',
      'http://other.test/fhir/Practitioner/2',
      '#a',
      '',
      5,
    ])
      assert.equal(binary({ reference }), false, String(reference))
    for (const value of [undefined, 'Patient/2', {}]) assert.equal(binary(value), false)
  })
})

describe('findContainedPatients', () => {
  const find = (contained?: unknown) => [
    ...findContainedPatients(
      { resourceType: 'Condition', subject: { reference: 'Patient/1' }, contained },
      base,
    ),
  ]
  const condition = (id: string) => ({ resourceType: 'Condition', subject: { reference: `Patient/${id}` } })

  it('finds the patients of contained resources, at any depth', () => {
    assert.deepEqual(find(), [])
    assert.deepEqual(find([{ resourceType: 'Medication' }]), [])
    assert.deepEqual(find([condition('2')]), ['2'])
    assert.deepEqual(find([{ resourceType: 'Binary', securityContext: { reference: 'Patient/2' } }]), ['2'])
    assert.deepEqual(find([{ resourceType: 'Medication', contained: [condition('3')] }]), ['3'])
  })

  it('finds an unknown patient in content that cannot be read', () => {
    for (const contained of [{}, 'x', null, [5], [{ id: '1' }], [condition('2?name=x')]])
      assert.deepEqual(find(contained), [UNKNOWN_PATIENT], JSON.stringify(contained))
    assert.deepEqual(find([condition('2'), 'x']).sort(), [UNKNOWN_PATIENT, '2'])
  })
})

describe('findReferredPatients', () => {
  it('finds the patients of references in any element', () => {
    const find = (reference: unknown) => [...findReferredPatients({ a: [{ b: { reference } }] }, base)]
    for (const reference of ['Patient/2', 'Patient/2/_history/1', `${base}/Patient/2`])
      assert.deepEqual(find(reference), ['2'], reference)
    for (const reference of [
      'Patient?name=x',
      'http://other.test/fhir/Patient/2',
      'Patient/%32',
      '%50atient/2',
    ])
      assert.deepEqual(find(reference), [UNKNOWN_PATIENT], reference)
    for (const reference of [
      'Practitioner/2',
      'urn:uuid:patient',
      '#patient-1',
      'Practitioner?patient=2',
      'http://patients.test/Practitioner/2',
      5,
    ])
      assert.deepEqual(find(reference), [], String(reference))
  })
})
