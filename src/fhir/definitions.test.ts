import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { compileR4 } from '../../scripts/compile-r4/compile.ts'
import { readUsCore } from '../../scripts/compile-r4/us-core.ts'
import {
  definitions,
  findSearchParameter,
  isResourceType,
  listProfiles,
  listSearchParameters,
  resourceTypes,
} from './definitions.ts'

const file = new URL('./definitions/r4.json', import.meta.url)

describe('definitions/r4.json', () => {
  it('is the output of the compiler for the installed definitions', () => {
    assert.ok(
      readFileSync(file, 'utf8') === compileR4(),
      'Run node scripts/compile-r4.ts and commit what it writes',
    )
  })

  it('is small', () => {
    assert.ok(readFileSync(file).length < 750_000)
  })

  it('has the codes of every required value set that R4 lists', () => {
    const bound = Object.values(definitions.structures)
      .flatMap(it => Object.values(it.elements))
      .flatMap(it => / #(.+)$/.exec(it)?.[1] ?? [])
    const without = new Set(bound.filter(it => !Object.hasOwn(definitions.codes, it)))
    assert.deepEqual(
      [...without].toSorted(),
      ['http://loinc.org/vs/LL379-9', 'mimetypes', 'ucum-units'].toSorted(),
    )
  })
})

describe('resourceTypes', () => {
  it('lists the 146 types of R4 and none of another version (SERVICE-5)', () => {
    assert.equal(resourceTypes.length, 146)
    assert.ok(resourceTypes.includes('Patient'))
    for (const other of ['Resource', 'DomainResource', 'SubscriptionStatus', 'HumanName', 'User']) {
      assert.equal(resourceTypes.includes(other), false, other)
    }
  })
})

describe('isResourceType', () => {
  it('accepts only exact names of types', () => {
    assert.equal(isResourceType('Condition'), true)
    for (const text of ['condition', 'Conditions', '', '*', 'constructor', '__proto__']) {
      assert.equal(isResourceType(text), false, text)
    }
  })
})

describe('findSearchParameter', () => {
  it('returns the expression for one type', () => {
    assert.deepEqual(findSearchParameter('Patient', 'family'), {
      code: 'family',
      type: 'string',
      expression: 'Patient.name.family',
    })
  })

  it('limits the targets of a reference to those of its expression', () => {
    assert.deepEqual(findSearchParameter('Condition', 'patient')?.target, ['Patient'])
    assert.deepEqual(findSearchParameter('Condition', 'subject')?.target, ['Group', 'Patient'])
  })

  it('has the parameters of all types on every type', () => {
    for (const type of resourceTypes) {
      assert.equal(findSearchParameter(type, '_id')?.type, 'token', type)
      assert.equal(findSearchParameter(type, '_lastUpdated')?.type, 'date', type)
    }
  })

  it('is undefined for other names', () => {
    assert.equal(findSearchParameter('Patient', 'nonsense'), undefined)
    assert.equal(findSearchParameter('Nonsense', '_id'), undefined)
    assert.equal(findSearchParameter('Patient', 'constructor'), undefined)
  })
})

describe('listSearchParameters', () => {
  it('has every search parameter of US Core 6.1.0, 7.0.0, 8.0.0 and 9.0.0, with its type (FHIR-19)', () => {
    const { search } = readUsCore()
    assert.equal(search.length, 112)
    for (const { base = [], code, type } of search)
      for (const on of base) assert.equal(findSearchParameter(on, code)?.type, type, `${on}.${code}`)
  })

  it('lists only supported parameters', () => {
    const types = new Set(resourceTypes.flatMap(it => listSearchParameters(it)).map(it => it.type))
    assert.deepEqual([...types].toSorted(), [
      'date',
      'number',
      'quantity',
      'reference',
      'string',
      'token',
      'uri',
    ])
  })

  it('lists nothing for an unknown type', () => {
    assert.deepEqual(listSearchParameters('Nonsense'), [])
  })
})

describe('listProfiles', () => {
  it('lists the profiles of US Core of a type', () => {
    const profile = (name: string) => `http://hl7.org/fhir/us/core/StructureDefinition/us-core-${name}`
    assert.deepEqual(listProfiles('Condition'), [
      profile('condition-encounter-diagnosis'),
      profile('condition-problems-health-concerns'),
    ])
    assert.equal(resourceTypes.flatMap(listProfiles).length, 56)
    for (const type of ['Basic', 'Nonsense', 'constructor']) assert.deepEqual(listProfiles(type), [], type)
  })
})
