import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { validate } from './validate.ts'

const subject = { reference: 'Patient/1' }
const observation = { resourceType: 'Observation', status: 'final', code: { text: 'x' } }
const extended = (extension: object) => ({ resourceType: 'Patient', extension: [extension] })
const timed = (repeat: object) => ({ ...observation, effectiveTiming: { repeat } })
const coded = (system: string, code: string) => ({
  coding: [{ system: `http://terminology.hl7.org/CodeSystem/${system}`, code }],
})
const bundle = (type: string, fields: object) => ({ resourceType: 'Bundle', type, ...fields })
const request = { method: 'GET', url: 'Patient' }
const resource = { resourceType: 'Basic', code: { text: 'x' } }

/** For each rule of R4: one resource that keeps it, one that breaks it and nothing else. */
const table: Readonly<Record<string, readonly [kept: object, broken: object]>> = {
  'ext-1': [extended({ url: 'u', valueString: 'x' }), extended({ url: 'u' })],
  'qty-3': [
    { ...observation, valueQuantity: { value: 1, system: 'u', code: 'x' } },
    { ...observation, valueQuantity: { value: 1, code: 'x' } },
  ],
  'per-1': [
    { ...observation, effectivePeriod: { start: '2020-05-04', end: '2020' } },
    { ...observation, effectivePeriod: { start: '2020-05-04', end: '2019' } },
  ],
  'rng-2': [
    { ...observation, valueRange: { low: { value: 1 }, high: { value: 1 } } },
    { ...observation, valueRange: { low: { value: 2 }, high: { value: 1 } } },
  ],
  'rat-1': [
    { ...observation, valueRatio: { numerator: { value: 1 }, denominator: { value: 2 } } },
    { ...observation, valueRatio: { numerator: { value: 1 } } },
  ],
  'cpt-2': [
    { resourceType: 'Patient', telecom: [{ system: 'phone', value: '1' }] },
    { resourceType: 'Patient', telecom: [{ value: '1' }] },
  ],
  'att-1': [
    { resourceType: 'Patient', photo: [{ contentType: 'image/png', data: 'AAAA' }] },
    { resourceType: 'Patient', photo: [{ data: 'AAAA' }] },
  ],
  'tim-1': [timed({ duration: 1, durationUnit: 'h' }), timed({ duration: 1 })],
  'tim-2': [timed({ period: 1, periodUnit: 'h' }), timed({ period: 1 })],
  'tim-6': [timed({ period: 1, periodUnit: 'h', periodMax: 2 }), timed({ periodMax: 2 })],
  'tim-7': [timed({ duration: 1, durationUnit: 'h', durationMax: 2 }), timed({ durationMax: 2 })],
  'tim-8': [timed({ count: 1, countMax: 2 }), timed({ countMax: 2 })],
  'tim-9': [timed({ when: ['MORN'], offset: 5 }), timed({ offset: 5 })],
  'tim-10': [timed({ when: ['MORN'] }), timed({ when: ['MORN'], timeOfDay: ['10:00:00'] })],
  'pat-1': [
    { resourceType: 'Patient', contact: [{ name: { text: 'x' } }] },
    { resourceType: 'Patient', contact: [{ gender: 'male' }] },
  ],
  'org-1': [
    { resourceType: 'Organization', name: 'x' },
    { resourceType: 'Organization', active: true },
  ],
  'obs-6': [
    { ...observation, dataAbsentReason: { text: 'x' } },
    { ...observation, dataAbsentReason: { text: 'x' }, valueString: 'y' },
  ],
  'obs-3': [
    { ...observation, referenceRange: [{ text: 'x' }] },
    { ...observation, referenceRange: [{ type: { text: 'x' } }] },
  ],
  'con-4': [
    {
      resourceType: 'Condition',
      subject,
      abatementString: 'x',
      clinicalStatus: coded('condition-clinical', 'resolved'),
    },
    {
      resourceType: 'Condition',
      subject,
      abatementString: 'x',
      clinicalStatus: coded('condition-clinical', 'active'),
    },
  ],
  'con-5': [
    {
      resourceType: 'Condition',
      subject,
      verificationStatus: coded('condition-ver-status', 'entered-in-error'),
    },
    {
      resourceType: 'Condition',
      subject,
      clinicalStatus: coded('condition-clinical', 'active'),
      verificationStatus: coded('condition-ver-status', 'entered-in-error'),
    },
  ],
  'ait-1': [
    {
      resourceType: 'AllergyIntolerance',
      patient: subject,
      clinicalStatus: coded('allergyintolerance-clinical', 'active'),
    },
    { resourceType: 'AllergyIntolerance', patient: subject },
  ],
  'ait-2': [
    {
      resourceType: 'AllergyIntolerance',
      patient: subject,
      verificationStatus: coded('allergyintolerance-verification', 'entered-in-error'),
    },
    {
      resourceType: 'AllergyIntolerance',
      patient: subject,
      clinicalStatus: coded('allergyintolerance-clinical', 'active'),
      verificationStatus: coded('allergyintolerance-verification', 'entered-in-error'),
    },
  ],
  'bdl-1': [bundle('searchset', { total: 1 }), bundle('collection', { total: 1 })],
  'bdl-3': [bundle('batch', { entry: [{ request }] }), bundle('batch', { entry: [{ resource }] })],
  'bdl-5': [
    bundle('collection', { entry: [{ resource }] }),
    bundle('collection', { entry: [{ fullUrl: 'urn:x' }] }),
  ],
  'bdl-7': [
    bundle('collection', {
      entry: [
        { fullUrl: 'urn:x', resource },
        { fullUrl: 'urn:y', resource },
      ],
    }),
    bundle('collection', {
      entry: [
        { fullUrl: 'urn:x', resource },
        { fullUrl: 'urn:x', resource },
      ],
    }),
  ],
}

describe('invariants', () => {
  for (const [key, [kept, broken]] of Object.entries(table)) {
    it(`check ${key}`, () => {
      assert.deepEqual(validate(kept), [])
      const faults = validate(broken)
      assert.deepEqual(
        faults.map(it => [it.code, /\((.+)\)$/.exec(it.text)?.[1]]),
        [['invariant', key]],
      )
    })
  }
})
