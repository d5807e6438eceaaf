import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fullResource } from '../../../test/support/r4-resources.ts'
import { earliest, latest } from '../date-range.ts'
import { listSearchParameters, resourceTypes } from '../definitions.ts'
import type { Resource } from '../resource.ts'
import { indexResource } from './index-entries.ts'

const base = 'http://localhost:8080/fhir'

/** Returns the entries of one parameter without their common fields. */
function entries(resource: Resource, parameter: string): readonly Record<string, unknown>[] {
  return indexResource(resource, base)
    .filter(it => it.parameter === parameter)
    .map(({ parameter: _, kind: __, ...rest }) =>
      Object.fromEntries(Object.entries(rest).filter(([, it]) => it !== undefined)),
    )
}

describe('indexResource', () => {
  it('has an entry of its type for every parameter of every type', () => {
    const missing: string[] = []
    for (const type of resourceTypes) {
      const all = Array.from({ length: 12 }, (_, variant) =>
        indexResource(fullResource(type, variant), base),
      ).flat()
      for (const { code, type: kind } of listSearchParameters(type)) {
        const own = all.filter(it => it.parameter === code)
        if (own.length === 0) missing.push(`${type}.${code}`)
        assert.ok(
          own.every(it => it.kind === kind),
          `${type}.${code}`,
        )
      }
    }
    assert.deepEqual(missing, [])
  })

  it('indexes codes as tokens with the implied system', () => {
    const patient = { resourceType: 'Patient', id: 'p1', active: true, gender: 'male' }
    assert.deepEqual(entries(patient, '_id'), [{ code: 'p1' }])
    assert.deepEqual(entries(patient, 'active'), [{ code: 'true' }])
    assert.deepEqual(entries(patient, 'gender'), [
      { system: 'http://hl7.org/fhir/administrative-gender', code: 'male' },
    ])
  })

  it('indexes each coding and the text as tokens', () => {
    const coding = [{ system: 'http://loinc.org', code: '8480-6', display: 'Systolic BP' }, { code: 'local' }]
    assert.deepEqual(
      entries({ resourceType: 'Observation', code: { coding, text: 'Blood Pressure' } }, 'code'),
      [
        { system: 'http://loinc.org', code: '8480-6', text: 'systolic bp' },
        { code: 'local' },
        { text: 'blood pressure' },
      ],
    )
  })

  it('indexes identifiers and contact points as tokens', () => {
    const patient = {
      resourceType: 'Patient',
      identifier: [{ system: 'urn:mrn', value: '7', type: { text: 'Medical Record' } }],
      telecom: [{ system: 'phone', value: '555' }],
    }
    assert.deepEqual(entries(patient, 'identifier'), [
      { system: 'urn:mrn', code: '7', text: 'medical record' },
    ])
    assert.deepEqual(entries(patient, 'phone'), [{ system: 'phone', code: '555' }])
    assert.deepEqual(entries(patient, 'email'), [])
  })

  it('distinguishes references to this server from others', () => {
    const subject = (reference: string) =>
      entries({ resourceType: 'Observation', subject: { reference } }, 'subject')
    assert.deepEqual(subject('Patient/1/_history/2'), [{ type: 'Patient', id: '1' }])
    assert.deepEqual(subject(`${base}/Patient/1`), [{ type: 'Patient', id: '1' }])
    assert.deepEqual(subject('http://other.example/Patient/1'), [{ url: 'http://other.example/Patient/1' }])
    assert.deepEqual(subject('urn:uuid:1'), [{ url: 'urn:uuid:1' }])
    assert.deepEqual(subject('#p'), [])
  })

  it('keeps the identifier of a reference', () => {
    const subject = { reference: 'Patient/1', identifier: { system: 'urn:mrn', value: '7' } }
    assert.deepEqual(entries({ resourceType: 'Observation', subject }, 'subject'), [
      { type: 'Patient', id: '1' },
      { identifierSystem: 'urn:mrn', identifierValue: '7' },
    ])
  })

  it('finds a canonical with and without its version', () => {
    const instantiatesCanonical = ['http://example.org/PlanDefinition/1|2.0']
    assert.deepEqual(entries({ resourceType: 'CarePlan', instantiatesCanonical }, 'instantiates-canonical'), [
      { url: 'http://example.org/PlanDefinition/1|2.0' },
      { url: 'http://example.org/PlanDefinition/1' },
    ])
  })

  it('indexes a resource inside a Bundle as a reference', () => {
    const entry = [{ resource: { resourceType: 'Composition', id: 'c' } }]
    assert.deepEqual(entries({ resourceType: 'Bundle', entry }, 'composition'), [
      { type: 'Composition', id: 'c' },
    ])
  })

  it('indexes the parts of a name and the full name in both orders', () => {
    const name = [{ family: 'Núñez', given: ['Ana', 'María'], prefix: ['Dr.'] }]
    assert.deepEqual(
      entries({ resourceType: 'Patient', name }, 'name').map(it => it.normal),
      ['nunez', 'ana', 'maria', 'dr.', 'ana maria nunez', 'nunez ana maria'],
    )
    assert.deepEqual(entries({ resourceType: 'Patient', name }, 'family'), [
      { normal: 'nunez', exact: 'Núñez' },
    ])
  })

  it('indexes the parts of a postal address', () => {
    const address = [{ line: ['1 Main St', 'Flat 2'], city: 'Graz', postalCode: '8010', country: 'AT' }]
    assert.deepEqual(
      entries({ resourceType: 'Patient', address }, 'address').map(it => it.exact),
      ['1 Main St', 'Flat 2', 'Graz', '8010', 'AT'],
    )
  })

  it('indexes dates, open periods and schedules as ranges', () => {
    const [start, end] = [Date.UTC(2020, 0, 1), Date.UTC(2021, 0, 1) - 1]
    const dates = (fields: object) => entries({ resourceType: 'Observation', ...fields }, 'date')
    assert.deepEqual(dates({ effectiveDateTime: '2020' }), [{ low: start, high: end }])
    assert.deepEqual(dates({ effectivePeriod: { start: '2020' } }), [{ low: start, high: latest }])
    assert.deepEqual(dates({ effectivePeriod: { end: '2020' } }), [{ low: earliest, high: end }])
    assert.deepEqual(dates({ effectivePeriod: {} }), [])
    assert.deepEqual(dates({ effectiveTiming: { event: ['2020-06', '2020-01', '2020-12'] } }), [
      { low: start, high: end },
    ])
    assert.deepEqual(
      dates({ effectiveTiming: { repeat: { boundsPeriod: { start: '2020', end: '2020' } } } }),
      [{ low: start, high: end }],
    )
    assert.deepEqual(dates({ effectiveDateTime: 'yesterday' }), [])
  })

  it('indexes quantities, ranges, money and sampled data as ranges', () => {
    const value = { value: 5.4, system: 'http://unitsofmeasure.org', code: 'mg', unit: 'milligram' }
    assert.deepEqual(entries({ resourceType: 'Observation', valueQuantity: value }, 'value-quantity'), [
      { low: 5.4, high: 5.4, system: value.system, code: 'mg', unit: 'milligram' },
    ])
    const onsetRange = { low: { value: 10, code: 'a', system: value.system } }
    assert.deepEqual(entries({ resourceType: 'Condition', onsetRange }, 'onset-age'), [
      { low: 10, high: Number.MAX_VALUE, system: value.system, code: 'a' },
    ])
    assert.deepEqual(
      entries({ resourceType: 'Invoice', totalNet: { value: 7, currency: 'EUR' } }, 'totalnet'),
      [{ low: 7, high: 7, system: 'urn:iso:std:iso:4217', code: 'EUR' }],
    )
    const valueSampledData = { origin: { value: 0, unit: 'mV' }, lowerLimit: -3, upperLimit: 3 }
    assert.deepEqual(entries({ resourceType: 'Observation', valueSampledData }, 'value-quantity'), [
      { low: -3, high: 3, unit: 'mV' },
    ])
    assert.deepEqual(
      entries({ resourceType: 'Observation', valueQuantity: { unit: 'mg' } }, 'value-quantity'),
      [],
    )
  })

  it('indexes numbers and URIs', () => {
    assert.deepEqual(entries({ resourceType: 'ChargeItem', factorOverride: 0.8 }, 'factor-override'), [
      { low: 0.8, high: 0.8 },
    ])
    const meta = { profile: ['http://example.org/profile'] }
    assert.deepEqual(entries({ resourceType: 'Patient', meta }, '_profile'), [
      { uri: 'http://example.org/profile' },
    ])
  })

  it('ignores values of the wrong form', () => {
    const broken = {
      resourceType: 'Patient',
      name: [{ family: 7, given: 'x' }, null, 'x'],
      birthDate: 7,
      gender: { x: 1 },
      generalPractitioner: [{ reference: 7 }, 'x', null],
      identifier: [{ value: {} }, []],
      active: 'maybe',
      address: 7,
    }
    const found = indexResource(broken, base).map(it => it.parameter)
    assert.deepEqual(new Set(found), new Set(['name', 'phonetic', 'given', 'deceased']))
  })
})

describe('a malformed reference of an upstream', () => {
  for (const subject of ['x', { reference: '' }, { identifier: null }, { identifier: { value: 5 } }])
    it(`has no index entries: ${JSON.stringify(subject)}`, () => {
      assert.deepEqual(indexResource({ resourceType: 'Observation', subject }, base), [])
    })
})
