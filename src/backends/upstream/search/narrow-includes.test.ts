import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../../../core/index.ts'
import { parseInclude } from '../../../fhir/index.ts'
import type { Access } from '../../../smart/index.ts'
import { narrowIncludes } from './includes.ts'

describe('narrowIncludes', () => {
  const makeAccess = (...permitted: string[]): Access => ({
    filterFor: (type, permission) => (permitted.includes(`${type}.${permission}`) ? [{ patient: 'a' }] : []),
  })
  const narrowed = (name: string, value: string, access: Access) => {
    const rules = parseInclude(name, value, ['Observation'])
    assert(!isFailure(rules))
    return narrowIncludes(rules, access).map(pair => pair.join('='))
  }
  const targets = ['Patient', 'Group', 'Device', 'Location']
  const all = makeAccess(...targets.map(type => `${type}.r`), 'Provenance.s', 'Observation.s')

  it('limits an include to the types that the caller may read', () => {
    assert.deepEqual(narrowed('_include', 'Observation:subject', all), ['_include=Observation:subject'])
    assert.deepEqual(narrowed('_include', 'Observation:subject', makeAccess('Patient.r', 'Device.r')), [
      '_include=Observation:subject:Device',
      '_include=Observation:subject:Patient',
    ])
    assert.deepEqual(narrowed('_include', 'Observation:subject', makeAccess('Patient.s')), [])
  })

  it('sends an include of one type if the caller may read it', () => {
    for (const access of [all, makeAccess('Patient.r')])
      assert.deepEqual(narrowed('_include:iterate', 'Observation:subject:Patient', access), [
        '_include:iterate=Observation:subject:Patient',
      ])
    assert.deepEqual(narrowed('_include', 'Observation:subject:Patient', makeAccess('Device.r')), [])
  })

  it('sends a reverse include if the caller may search its type', () => {
    assert.deepEqual(narrowed('_revinclude', 'Provenance:target', all), ['_revinclude=Provenance:target'])
    assert.deepEqual(narrowed('_revinclude:iterate', 'Provenance:target:Observation', all), [
      '_revinclude:iterate=Provenance:target:Observation',
    ])
    assert.deepEqual(narrowed('_revinclude', 'Provenance:target', makeAccess('Provenance.r')), [])
  })

  it('sends a star if the caller may search any type that it stands for', () => {
    assert.deepEqual(narrowed('_revinclude', '*', makeAccess('Provenance.s')), ['_revinclude=*'])
    assert.deepEqual(narrowed('_revinclude', '*', makeAccess('Provenance.r')), [])
    assert.deepEqual(narrowed('_revinclude', 'Provenance:target', makeAccess('Observation.s')), [])
  })
})
