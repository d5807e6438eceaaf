import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { namesOtherPatient } from './other-patients.ts'

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
})
