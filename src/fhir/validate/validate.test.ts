import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { listPublishedFiles, readPublishedFile } from '../../../scripts/compile-r4/source.ts'
import { fullResource } from '../../../test/support/r4-resources.ts'
import { resourceTypes } from '../definitions.ts'
import { validate } from './validate.ts'

const found = (resource: unknown) => validate(resource).map(it => `${it.path} ${it.code}`)

/** The published examples that break the rules of R4: empty narratives, missing values, references to a wrong type. */
const published: readonly string[] = [
  'ActivityDefinition-blood-tubes-supply.json',
  'ActivityDefinition-heart-valve-replacement.json',
  'DeviceMetric-example.json',
  'DeviceUseStatement-example.json',
  'EventDefinition-example.json',
  'ImplementationGuide-fhir.json',
  'MedicationRequest-medrx0301.json',
  'Observation-clinical-gender.json',
  'Questionnaire-qs1.json',
  'Questionnaire-zika-virus-exposure-assessment.json',
]

describe('validate', () => {
  it('accepts every type with every element', () => {
    for (const type of resourceTypes) {
      for (let variant = 0; variant < 12; variant++) {
        // Some elements exclude each other.
        const faults = validate(fullResource(type, variant)).filter(it => it.code !== 'invariant')
        assert.deepEqual(faults, [], `${type} ${variant}`)
      }
    }
  })

  it('accepts the examples of R4, except those that break its rules (FHIR-3)', () => {
    const definitions = /^(StructureDefinition|ValueSet|CodeSystem|SearchParameter|Bundle-(dataelements|v2))/
    const files = listPublishedFiles().filter(it => !definitions.test(it))
    assert.ok(files.length > 800)
    assert.deepEqual(
      files.filter(it => validate(readPublishedFile(it)).length > 0),
      published,
    )
  })

  it('reports the path and the code of every fault', () => {
    const faults = validate({
      resourceType: 'Patient',
      name: [{ use: 'nonsense', family: 'X', nickname: 'Y' }],
      birthDate: '1970-02-30',
      gender: 'F',
    })
    assert.deepEqual(faults, [
      {
        path: 'Patient.name[0].use',
        code: 'code-invalid',
        text: 'Expected a code of the value set name-use',
      },
      { path: 'Patient.name[0].nickname', code: 'structure', text: 'Unknown element' },
      { path: 'Patient.birthDate', code: 'value', text: 'Expected a date: YYYY, YYYY-MM or YYYY-MM-DD' },
      {
        path: 'Patient.gender',
        code: 'code-invalid',
        text: 'Expected a code of the value set administrative-gender',
      },
    ])
  })

  it('does not repeat values (FHIR-3)', () => {
    const secret = 'Secretperson'
    const texts = validate({
      resourceType: 'Patient',
      gender: secret,
      birthDate: secret,
      active: secret,
      name: secret,
      managingOrganization: { reference: secret },
    })
    assert.equal(texts.length, 5)
    assert.equal(JSON.stringify(texts).includes(secret), false)
  })
})

describe('validate of a whole resource', () => {
  it('refuses values that are not resources', () => {
    for (const value of [null, undefined, 7, 'x', [], [{ resourceType: 'Patient' }]]) {
      assert.deepEqual(found(value), ['Resource structure'], JSON.stringify(value))
    }
    assert.deepEqual(found({}), ['Resource.resourceType required'])
    for (const resourceType of [
      'Nonsense',
      'patient',
      7,
      null,
      'HumanName',
      'Resource',
      'DomainResource',
      '__proto__',
    ]) {
      assert.deepEqual(found({ resourceType }), ['Resource.resourceType value'], String(resourceType))
    }
  })

  it('stops at a hundred faults', () => {
    assert.equal(
      validate({ resourceType: 'Patient', name: Array.from({ length: 5000 }, () => ({ x: 1 })) }).length,
      100,
    )
  })

  it('refuses nesting of ten thousand levels', () => {
    const deep = (open: string, close: string) => JSON.parse(`${open.repeat(10_000)}1${close.repeat(10_000)}`)
    const extension = deep('[{"url":"urn:u","extension":', '}]')
    assert.ok(
      validate({ resourceType: 'Patient', extension }).some(it => it.text.startsWith('Nested deeper')),
    )
    const contained = deep('[{"resourceType":"Patient","contained":', '}]')
    assert.ok(
      validate({ resourceType: 'Patient', contained }).some(it => it.text.startsWith('Nested deeper')),
    )
    const entry = deep('[{"resource":{"resourceType":"Bundle","type":"collection","entry":', '}}]')
    const bundle = { resourceType: 'Bundle', type: 'collection', entry }
    assert.ok(validate(bundle).some(it => it.text.startsWith('Nested deeper')))
    assert.deepEqual(found({ resourceType: 'Patient', name: deep('[', ']') }), ['Patient.name[0] structure'])
  })

  it('accepts in a Bundle or Parameters every depth that it accepts alone (FHIR-3)', () => {
    const nest = (levels: number): object =>
      levels === 0 ? { linkId: '0', text: 'x' } : { linkId: `${levels}`, item: [nest(levels - 1)] }
    const response = (levels: number) => ({
      resourceType: 'QuestionnaireResponse',
      status: 'completed',
      item: [nest(levels)],
    })
    const inBundle = (resource: object) => ({
      resourceType: 'Bundle',
      type: 'collection',
      entry: [{ resource }],
    })
    const inParameters = (resource: object) => ({
      resourceType: 'Parameters',
      parameter: [{ name: 'x', resource }],
    })
    for (const wrap of [(it: object) => it, inBundle, (it: object) => inBundle(inParameters(it))]) {
      assert.deepEqual(validate(wrap(response(98))), [])
      assert.equal(validate(wrap(response(99))).length, 1)
    }
  })

  it('refuses names of inherited members', () => {
    const hostile = JSON.parse(
      '{"resourceType":"Patient","__proto__":{"x":1},"constructor":1,"toString":1,"name":[{"__proto__":1}],"_":1,"__proto":2}',
    )
    assert.deepEqual(found(hostile), [
      'Patient.__proto__ structure',
      'Patient.constructor structure',
      'Patient.toString structure',
      'Patient.name[0].__proto__ structure',
      'Patient._ structure',
      'Patient.__proto structure',
    ])
  })

  it('never throws, whatever JSON it is given', () => {
    fc.assert(
      fc.property(fc.constantFrom(...resourceTypes), fc.jsonValue(), (resourceType, value) => {
        validate(value)
        validate(typeof value === 'object' && value !== null ? { ...value, resourceType } : { resourceType })
      }),
    )
  })

  it('finds a fault wherever a valid value is replaced by an invalid one', () => {
    const types = fc.constantFrom(...resourceTypes)
    const rubbish = fc.constantFrom<unknown>(null, [], {}, '', { x: 1 }, [null], [[]], [{}])
    fc.assert(
      fc.property(types, fc.nat(11), fc.nat(), rubbish, (type, variant, pick, junk) => {
        const resource = fullResource(type, variant)
        const keys = Object.keys(resource).filter(it => it !== 'resourceType')
        const key = keys[pick % keys.length] ?? 'id'
        const faults = validate({ ...resource, [key]: junk })
        assert.ok(
          faults.some(it => it.path.startsWith(`${type}.${key}`)),
          `${type}.${key} = ${JSON.stringify(junk)}`,
        )
      }),
    )
  })
})
