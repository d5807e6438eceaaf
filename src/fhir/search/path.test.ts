import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { evalFhirPathTyped, indexStructureDefinitionBundle, toTypedValue } from '@medplum/core'
import { readPublished } from '../../../scripts/compile-r4/source.ts'
import { fullResource } from '../../../test/support/r4-resources.ts'
import { listSearchParameters, resourceTypes } from '../definitions.ts'
import type { Resource } from '../resource.ts'
import { compilePath, evaluatePath, findPaths } from './path.ts'

type OracleStructure = Extract<
  Parameters<typeof indexStructureDefinitionBundle>[0],
  readonly unknown[]
>[number]

const variants = Array.from({ length: 12 }, (_, index) => index)

function evaluate(resource: Resource, expression: string): readonly unknown[] {
  const paths = compilePath(resource.resourceType, expression)
  assert.ok(paths, `Cannot compile ${expression}`)
  return paths.flatMap(it => evaluatePath(resource, it))
}

const asSet = (values: readonly unknown[]) => [...new Set(values.map(it => JSON.stringify(it)))].toSorted()

describe('search expressions of R4 and US Core', () => {
  before(() => {
    const structures = readPublished<OracleStructure>('StructureDefinition')
    indexStructureDefinitionBundle(structures.filter(it => it.derivation !== 'constraint'))
  })

  it('all compile', () => {
    const compiled = resourceTypes.flatMap(type => listSearchParameters(type).map(it => findPaths(type, it)))
    assert.equal(compiled.length, 2507)
    assert.ok(compiled.every(it => it.length > 0))
  })

  it('select the same values as a full FHIRPath engine in every element of every type', () => {
    const found = new Set<string>()
    for (const type of resourceTypes) {
      for (const resource of variants.map(variant => fullResource(type, variant))) {
        for (const parameter of listSearchParameters(type)) {
          const ours = asSet(findPaths(type, parameter).flatMap(it => evaluatePath(resource, it)))
          const expression = parameter.expression.replace(/^Resource\b/, type)
          const theirs = evalFhirPathTyped(expression, [toTypedValue(resource)]).map(it => it.value)
          assert.deepEqual(ours, asSet(theirs), `${type}.${parameter.code} of variant ${resource.id}`)
          if (ours.length > 0) found.add(`${type}.${parameter.code}`)
        }
      }
    }
    assert.equal(found.size, 2507, 'Every parameter has been found at least once')
  })
})

describe('compilePath', () => {
  it('refuses unsupported expressions and unknown elements', () => {
    for (const expression of [
      'Patient.nonsense',
      'Patient.name.first()',
      'Patient.name.where(use = %x)',
      'Patient.name.select(family)',
      'Patient.deceased.ofType(Quantity)',
      'name',
      '',
      'Patient.',
    ]) {
      assert.equal(compilePath('Patient', expression), undefined, expression)
    }
  })

  it('reads `as` in all its spellings', () => {
    const resource = { resourceType: 'Observation', valueQuantity: { value: 1 } }
    for (const expression of [
      'Observation.value.ofType(Quantity)',
      'Observation.value.as(Quantity)',
      'Observation.value as Quantity',
      '(Observation.value as Quantity)',
      '(Observation.value as Quantity) | Observation.bodySite',
    ]) {
      assert.deepEqual(evaluate(resource, expression), [{ value: 1 }], expression)
    }
  })

  it('evaluates parentheses before the next element', () => {
    const resource = { resourceType: 'Observation', valueCodeableConcept: { text: 'High' } }
    assert.deepEqual(evaluate(resource, '(Observation.value as CodeableConcept).text'), ['High'])
  })
})

describe('evaluatePath', () => {
  it('selects every type of a choice without ofType', () => {
    assert.deepEqual(
      evaluate({ resourceType: 'Observation', effectivePeriod: { start: '2020' } }, 'Observation.effective'),
      [{ start: '2020' }],
    )
  })

  it('filters by a field and by an index', () => {
    const telecom = [
      { system: 'phone', value: '1' },
      { system: 'email', value: '2' },
    ]
    assert.deepEqual(
      evaluate({ resourceType: 'Patient', telecom }, "Patient.telecom.where(system='email').value"),
      ['2'],
    )
    assert.deepEqual(evaluate({ resourceType: 'Patient', telecom }, 'Patient.telecom[0].value'), ['1'])
    assert.deepEqual(evaluate({ resourceType: 'Patient', telecom }, 'Patient.telecom[7]'), [])
  })

  it('reads the type of a reference from its URL, otherwise from Reference.type', () => {
    const subjects = (subject: unknown) =>
      evaluate({ resourceType: 'Condition', subject }, 'Condition.subject.where(resolve() is Patient)').length
    assert.equal(subjects({ reference: 'Patient/1' }), 1)
    assert.equal(subjects({ reference: 'http://x.example/fhir/Patient/1/_history/2' }), 1)
    assert.equal(subjects({ reference: 'urn:uuid:1', type: 'Patient' }), 1)
    assert.equal(subjects({ reference: 'Group/1', type: 'Patient' }), 0)
    assert.equal(subjects({ reference: 'Group/1' }), 0)
    assert.equal(subjects({ display: 'A patient' }), 0)
  })

  it('always returns whether a patient is deceased', () => {
    const deceased = (fields: object) =>
      evaluate(
        { resourceType: 'Patient', ...fields },
        'Patient.deceased.exists() and Patient.deceased != false',
      )
    assert.deepEqual(deceased({}), [false])
    assert.deepEqual(deceased({ deceasedBoolean: false }), [false])
    assert.deepEqual(deceased({ deceasedBoolean: true }), [true])
    assert.deepEqual(deceased({ deceasedDateTime: '2020' }), [true])
  })

  it('finds nothing in content of the wrong form or in inherited members', () => {
    for (const name of [null, 'x', 7, [null, ['x'], 7], {}]) {
      assert.deepEqual(
        evaluate({ resourceType: 'Patient', name }, 'Patient.name.family'),
        [],
        JSON.stringify(name),
      )
    }
    const inherited = Object.create(
      { name: [{ family: 'Inherited' }] },
      { resourceType: { value: 'Patient' } },
    )
    assert.deepEqual(evaluate(inherited, 'Patient.name.family'), [])
  })

  it('handles very long arrays', () => {
    const given = Array.from({ length: 300_000 }, () => 'A')
    assert.equal(
      evaluate({ resourceType: 'Patient', name: [{ given }] }, 'Patient.name.given').length,
      300_000,
    )
  })
})
