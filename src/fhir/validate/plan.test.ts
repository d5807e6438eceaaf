import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { definitions } from '../definitions.ts'
import { getPlan, listInvariants } from './plan.ts'
import { validate } from './validate.ts'

const subject = { reference: 'Patient/1' }
const observation = { resourceType: 'Observation', status: 'final', code: { text: 'x' } }
const extended = (fields: object) => ({
  resourceType: 'Patient',
  extension: [{ url: 'urn:x', ...fields }],
})
const timed = (repeat: object) => ({ ...observation, effectiveTiming: { repeat } })
const coded = (system: string, code: string) => ({
  coding: [{ system: `http://terminology.hl7.org/CodeSystem/${system}`, code }],
})
const bundle = (type: string, fields: object) => ({ resourceType: 'Bundle', type, ...fields })
const request = { method: 'GET', url: 'Patient' }
const resource = { resourceType: 'Basic', code: { text: 'x' } }

const UCUM = 'http://unitsofmeasure.org'
const active = coded('condition-clinical', 'active')
const condition = { resourceType: 'Condition', subject, clinicalStatus: active }
const questionnaire = (...linkIds: string[]) => ({
  resourceType: 'Questionnaire',
  status: 'draft',
  item: [{ linkId: 'g', type: 'group', item: linkIds.map(linkId => ({ linkId, type: 'string' })) }],
})
const composition = {
  resourceType: 'Composition',
  status: 'final',
  type: { text: 'x' },
  date: '2020',
  author: [{ reference: 'Practitioner/1' }],
  title: 'x',
}
const document = ({ timestamp = '2020-01-01T00:00:00Z', ...fields }: Record<string, unknown>) =>
  bundle('document', {
    ...(timestamp !== null && { timestamp }),
    identifier: { system: 'urn:x', value: '1' },
    entry: [{ resource: composition }],
    ...fields,
  })

/** A resource that keeps an invariant, and one that breaks it but no other rule. */
const table: Readonly<Record<string, readonly [kept: object, broken: object]>> = {
  'ext-1': [extended({ valueString: 'x' }), extended({})],
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
  'obs-7': [
    { ...observation, valueInteger: 1, component: [{ code: coded('x', '1'), valueInteger: 1 }] },
    {
      ...observation,
      code: coded('x', '1'),
      valueInteger: 1,
      component: [{ code: coded('x', '1'), valueInteger: 1 }],
    },
  ],
  'con-1': [
    { resourceType: 'Condition', subject, clinicalStatus: active, stage: [{ summary: { text: 'x' } }] },
    { resourceType: 'Condition', subject, clinicalStatus: active, stage: [{ type: { text: 'x' } }] },
  ],
  'con-2': [
    { resourceType: 'Condition', subject, clinicalStatus: active, evidence: [{ code: [{ text: 'x' }] }] },
    {
      resourceType: 'Condition',
      subject,
      clinicalStatus: active,
      evidence: [{ extension: [{ url: 'urn:x', valueString: 'x' }] }],
    },
  ],
  'org-2': [
    { resourceType: 'Organization', name: 'x', address: [{ use: 'work' }] },
    { resourceType: 'Organization', name: 'x', address: [{ use: 'home' }] },
  ],
  'age-1': [
    { ...condition, onsetAge: { value: 1, system: UCUM, code: 'a' } },
    { ...condition, onsetAge: { value: -1, system: UCUM, code: 'a' } },
  ],
  'drt-1': [
    timed({ boundsDuration: { value: 1, system: UCUM, code: 'h' } }),
    timed({ boundsDuration: { value: 1, system: 'urn:x', code: 'h' } }),
  ],
  'tim-4': [timed({ duration: 0, durationUnit: 'h' }), timed({ duration: -1, durationUnit: 'h' })],
  'app-3': [
    {
      resourceType: 'Appointment',
      status: 'proposed',
      participant: [{ status: 'accepted', actor: subject }],
    },
    { resourceType: 'Appointment', status: 'booked', participant: [{ status: 'accepted', actor: subject }] },
  ],
  'lst-1': [
    { resourceType: 'List', status: 'current', mode: 'working', emptyReason: { text: 'x' } },
    {
      resourceType: 'List',
      status: 'current',
      mode: 'working',
      emptyReason: { text: 'x' },
      entry: [{ item: subject }],
    },
  ],
  'que-2': [questionnaire('1', '2'), questionnaire('1', '1')],
  'bdl-2': [
    bundle('searchset', { entry: [{ resource, search: { mode: 'match' } }] }),
    bundle('collection', { entry: [{ resource, search: { mode: 'match' } }] }),
  ],
  'bdl-4': [
    bundle('batch-response', { entry: [{ response: { status: '200' } }] }),
    bundle('collection', { entry: [{ resource, response: { status: '200' } }] }),
  ],
  'bdl-8': [
    bundle('collection', { entry: [{ fullUrl: 'http://x.example/Basic/1', resource }] }),
    bundle('collection', { entry: [{ fullUrl: 'http://x.example/Basic/1/_history/2', resource }] }),
  ],
  'bdl-9': [document({}), document({ identifier: { value: '1' } })],
  'bdl-10': [document({}), document({ timestamp: null })],
  'bdl-11': [document({}), document({ entry: [{ resource }] })],
  'bdl-12': [
    bundle('message', {
      entry: [
        { resource: { resourceType: 'MessageHeader', eventUri: 'urn:x', source: { endpoint: 'urn:y' } } },
      ],
    }),
    bundle('message', { entry: [{ resource }] }),
  ],
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
        faults.map(it => [it.code, /\(([^()]+)\)$/.exec(it.text)?.[1]]),
        [['invariant', key]],
      )
    })
  }

  it('all compile (FHIR-15)', () => {
    const paths = Object.keys(definitions.invariants)
    const keys = paths.flatMap(path => listInvariants(path)).map(it => it.key)
    assert.ok(new Set(keys).size > 200)
    for (const type of Object.keys(definitions.structures)) getPlan(type)
  })

  it('report recommendations only on request', () => {
    const patient = { resourceType: 'Patient', active: true }
    assert.deepEqual(validate(patient), [])
    assert.deepEqual(
      validate(patient, { warns: true }).map(it => [it.path, it.severity, it.text.slice(-7)]),
      [['Patient', 'warning', '(dom-6)']],
    )
  })

  it('take time in proportion to the size of a resource (FHIR-15)', () => {
    const codings = Array.from({ length: 10_000 }, (_, at) => ({ system: 'urn:x', code: `${at}` }))
    const component = codings.map(it => ({
      code: { coding: [{ ...it, code: `c${it.code}` }] },
      valueInteger: 1,
    }))
    const began = process.cpuUsage()
    assert.deepEqual(validate({ ...observation, code: { coding: codings }, valueInteger: 1, component }), [])
    assert.ok(process.cpuUsage(began).user < 2_000_000)
  })
})
