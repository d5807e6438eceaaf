import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { validate } from './validate.ts'

const found = (resource: unknown) => validate(resource).map(it => `${it.path} ${it.code}`)

const patient = (fields: object) => found({ resourceType: 'Patient', ...fields })
const observation = (fields: object) =>
  found({ resourceType: 'Observation', status: 'final', code: { text: 'x' }, ...fields })

describe('validate of cardinality', () => {
  it('requires mandatory elements and choices', () => {
    assert.deepEqual(found({ resourceType: 'Observation' }), [
      'Observation.status required',
      'Observation.code required',
    ])
    const request = { status: 'active', intent: 'order', subject: { reference: 'Patient/1' } }
    assert.deepEqual(found({ resourceType: 'MedicationRequest', ...request }), [
      'MedicationRequest.medication[x] required',
    ])
  })

  it('requires arrays for repeating elements only', () => {
    assert.deepEqual(patient({ name: { family: 'X' } }), ['Patient.name structure'])
    assert.deepEqual(patient({ birthDate: ['1970'] }), ['Patient.birthDate structure'])
  })

  it('refuses empty values', () => {
    assert.deepEqual(patient({ name: [] }), ['Patient.name structure'])
    assert.deepEqual(patient({ name: [{}] }), ['Patient.name[0] structure'])
    assert.deepEqual(patient({ name: [{ family: '' }] }), ['Patient.name[0].family value'])
    assert.deepEqual(patient({ name: null }), ['Patient.name structure'])
    assert.deepEqual(patient({ name: [null] }), ['Patient.name[0] structure'])
    assert.deepEqual(patient({ birthDate: null }), ['Patient.birthDate value'])
  })

  it('allows one type of a choice', () => {
    assert.deepEqual(patient({ deceasedBoolean: true, deceasedDateTime: '2020' }), [
      'Patient.deceasedDateTime structure',
    ])
    assert.deepEqual(observation({ valueString: 'x', valueInteger: 1 }), [
      'Observation.valueInteger structure',
    ])
    assert.deepEqual(observation({ valueNonsense: 'x' }), ['Observation.valueNonsense structure'])
    assert.deepEqual(observation({ value: 'x' }), ['Observation.value structure'])
  })
})

describe('validate of primitives', () => {
  const extension = [{ url: 'http://example.org/x', valueString: 'x' }]

  it('accepts extensions beside and instead of values', () => {
    assert.deepEqual(patient({ birthDate: '1970', _birthDate: { extension } }), [])
    assert.deepEqual(patient({ _birthDate: { extension } }), [])
    assert.deepEqual(patient({ name: [{ given: ['A', null], _given: [null, { extension }] }] }), [])
    assert.deepEqual(patient({ name: [{ _given: [{ extension }] }] }), [])
    const { status: _, ...rest } = { status: 'final', code: { text: 'x' } }
    assert.deepEqual(found({ resourceType: 'Observation', ...rest, _status: { extension } }), [])
  })

  it('accepts fewer extensions than values (FHIR-3)', () => {
    assert.deepEqual(patient({ name: [{ given: ['A', 'B'], _given: [{ extension }] }] }), [])
    assert.deepEqual(patient({ name: [{ given: ['A', 'B'], _given: [null, null, { extension }] }] }), [
      'Patient.name[0]._given structure',
    ])
  })

  it('requires an absolute URL of an extension, except inside another (FHIR-3)', () => {
    const nested = [{ url: 'http://example.org/x', extension: [{ url: 'part', valueString: 'x' }] }]
    assert.deepEqual(patient({ extension: nested }), [])
    const relative = [{ url: 'part', valueString: 'x' }]
    assert.deepEqual(patient({ extension: relative }), ['Patient.extension[0].url value'])
    assert.deepEqual(patient({ modifierExtension: relative }), ['Patient.modifierExtension[0].url value'])
    assert.deepEqual(patient({ _birthDate: { extension: relative } }), [
      'Patient._birthDate.extension[0].url value',
    ])
  })

  it('refuses a primitive that has only an id', () => {
    assert.deepEqual(patient({ birthDate: '1970', _birthDate: { id: 'a' } }), [])
    assert.deepEqual(patient({ _birthDate: { id: 'a' } }), ['Patient._birthDate invariant'])
    assert.deepEqual(patient({ name: [{ given: ['A', null], _given: [{ id: 'a' }, { id: 'b' }] }] }), [
      'Patient.name[0]._given[1] invariant',
    ])
  })

  it('refuses extensions of a narrative', () => {
    const div = '<div xmlns="http://www.w3.org/1999/xhtml">x</div>'
    assert.deepEqual(patient({ text: { status: 'generated', div, _div: { extension } } }), [
      'Patient.text._div structure',
    ])
  })

  it('refuses extensions of the wrong form', () => {
    assert.deepEqual(patient({ _birthDate: {} }), ['Patient._birthDate structure'])
    assert.deepEqual(patient({ _birthDate: [{ extension }] }), ['Patient._birthDate structure'])
    assert.deepEqual(patient({ _birthDate: { value: 'x' } }), ['Patient._birthDate.value structure'])
    assert.deepEqual(patient({ _name: [{ extension }] }), ['Patient._name structure'])
    assert.deepEqual(patient({ _nonsense: { extension } }), ['Patient._nonsense structure'])
    assert.deepEqual(patient({ name: [{ given: ['A', null], _given: [{ extension }, null] }] }), [
      'Patient.name[0].given[1] value',
    ])
    assert.deepEqual(patient({ name: [{ _given: [null] }] }), ['Patient.name[0]._given[0] structure'])
  })
})

describe('validate of codes', () => {
  const clinical = 'http://terminology.hl7.org/CodeSystem/condition-clinical'
  const condition = (clinicalStatus: unknown) =>
    found({ resourceType: 'Condition', subject: { reference: 'Patient/1' }, clinicalStatus })

  it('requires one coding of a required value set in a concept', () => {
    assert.deepEqual(condition({ coding: [{ system: clinical, code: 'active' }] }), [])
    assert.deepEqual(condition({ coding: [{ code: 'x' }, { system: clinical, code: 'resolved' }] }), [])
    assert.deepEqual(condition({ extension: [{ url: 'urn:absent', valueCode: 'unknown' }] }), [])
    for (const concept of [
      { coding: [{ code: 'active' }] },
      { coding: [{ system: 'urn:other', code: 'active' }] },
      { coding: [{ system: clinical, code: 'nonsense' }] },
      { text: 'active' },
    ]) {
      assert.deepEqual(condition(concept), ['Condition.clinicalStatus code-invalid'], JSON.stringify(concept))
    }
  })

  it('requires a currency of ISO 4217 (FHIR-3)', () => {
    const claim = (currency: string) =>
      found({ resourceType: 'PaymentNotice', ...notice, amount: { value: 1, currency } })
    const notice = {
      status: 'active',
      created: '2020',
      payment: { reference: 'PaymentReconciliation/1' },
      recipient: { reference: 'Organization/1' },
    }
    assert.deepEqual(claim('EUR'), [])
    assert.deepEqual(claim('ZZZ'), ['PaymentNotice.amount.currency code-invalid'])
  })

  it('does not check value sets that R4 does not list', () => {
    assert.deepEqual(found({ resourceType: 'Binary', contentType: 'application/x-anything' }), [])
  })
})

describe('validate of references', () => {
  const practitioner = (reference: unknown) => patient({ generalPractitioner: [{ reference }] })

  it('accepts every form of R4', () => {
    for (const reference of [
      'Practitioner/1',
      'Practitioner/1/_history/2',
      'Practitioner?identifier=urn:npi|9',
      'http://example.org/fhir/Practitioner/1',
      'urn:uuid:c757873d-ec9a-4326-a141-556f43239520',
      'urn:oid:1.2.3',
      '#',
    ]) {
      assert.deepEqual(practitioner(reference), [], reference)
    }
  })

  it('refuses other forms and other types', () => {
    for (const reference of [
      'Practitioner',
      'Practitioner/',
      'Nonsense/1',
      'practitioner/1',
      '/Practitioner/1',
      'Practitioner/1/Patient/2',
      'some text',
      'Condition/1',
      'http://example.org/fhir/Condition/1',
    ]) {
      assert.deepEqual(practitioner(reference), ['Patient.generalPractitioner[0].reference value'], reference)
    }
    assert.deepEqual(practitioner(7), ['Patient.generalPractitioner[0].reference value'])
  })
})

describe('validate of Reference.type', () => {
  const practitioner = (reference: object) => patient({ generalPractitioner: [reference] })

  it('refuses a type that the reference contradicts (FHIR-3)', () => {
    assert.deepEqual(practitioner({ reference: 'Practitioner/1', type: 'Practitioner' }), [])
    assert.deepEqual(practitioner({ reference: 'urn:uuid:x', type: 'Practitioner' }), [])
    assert.deepEqual(practitioner({ identifier: { value: '1' }, type: 'Practitioner' }), [])
    const definition = 'http://hl7.org/fhir/StructureDefinition/Practitioner'
    assert.deepEqual(practitioner({ reference: 'Practitioner/1', type: definition }), [])
    const refused = ['Patient.generalPractitioner[0].type value']
    for (const reference of ['Practitioner/1', 'http://example.org/fhir/Practitioner/1'])
      for (const type of ['Organization', 'Nonsense', 'urn:x'])
        assert.deepEqual(practitioner({ reference, type }), refused)
    assert.deepEqual(practitioner({ identifier: { value: '1' }, type: 'Nonsense' }), refused)
  })
})

describe('validate of quantities', () => {
  it('refuses a comparator in a SimpleQuantity only (FHIR-3)', () => {
    const quantity = { value: 1, comparator: '<' }
    assert.deepEqual(observation({ valueQuantity: quantity }), [])
    assert.deepEqual(observation({ referenceRange: [{ low: quantity }] }), [
      'Observation.referenceRange[0].low.comparator invariant',
    ])
  })
})

describe('validate of contained resources', () => {
  const organization = { resourceType: 'Organization', id: 'o', name: 'X' }
  const managingOrganization = { reference: '#o' }

  it('accepts contained resources that are referred to', () => {
    assert.deepEqual(patient({ contained: [organization], managingOrganization }), [])
    const back = { resourceType: 'Organization', id: 'o', name: 'X', partOf: { reference: '#' } }
    assert.deepEqual(patient({ contained: [back] }), [])
  })

  it('refuses two with one id (FHIR-3)', () => {
    assert.deepEqual(patient({ contained: [organization, organization], managingOrganization }), [
      'Patient.contained structure',
    ])
  })

  it('refuses a reference to one of another type', () => {
    const contained = [{ resourceType: 'Basic', id: 'o', code: { text: 'x' } }]
    assert.deepEqual(patient({ contained, managingOrganization }), [
      'Patient.managingOrganization.reference value',
    ])
  })

  it('validates them', () => {
    assert.deepEqual(patient({ contained: [{ ...organization, nonsense: 1 }], managingOrganization }), [
      'Patient.contained[0].nonsense structure',
    ])
    assert.deepEqual(patient({ contained: [{ name: 'X' }] }), ['Patient.contained[0].resourceType required'])
    assert.deepEqual(patient({ contained: ['x'] }), ['Patient.contained[0] structure'])
  })

  it('checks ref-1, dom-2, dom-3, dom-4 and dom-5', () => {
    assert.deepEqual(patient({ managingOrganization }), ['Patient.managingOrganization.reference invariant'])
    assert.deepEqual(patient({ contained: [organization] }), ['Patient.contained invariant'])
    const nested = { ...organization, contained: [{ ...organization, id: 'p' }] }
    assert.deepEqual(patient({ contained: [nested], managingOrganization }), [
      'Patient.contained[0].contained invariant',
    ])
    const meta = { versionId: '1', security: [{ code: 'R' }] }
    assert.deepEqual(patient({ contained: [{ ...organization, meta }], managingOrganization }), [
      'Patient.contained[0].meta invariant',
      'Patient.contained[0].meta invariant',
    ])
  })

  it('resolves # references in the resource of a Bundle entry only', () => {
    const entry = [{ resource: { resourceType: 'Patient', managingOrganization } }]
    assert.deepEqual(
      found({ resourceType: 'Bundle', type: 'collection', contained: [organization], entry }),
      [
        'Bundle.contained structure',
        'Bundle.entry[0].resource.managingOrganization.reference invariant',
        'Bundle.contained invariant',
      ],
    )
  })
})
