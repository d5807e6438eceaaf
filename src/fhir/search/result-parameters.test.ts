import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Resource } from '../resource.ts'
import { shapeResource } from './result-parameters.ts'

describe('a part of a resource', () => {
  const patient = {
    resourceType: 'Patient',
    id: 'ann',
    implicitRules: 'http://rules.test',
    modifierExtension: [{ url: 'http://modifier.test', valueBoolean: true }],
    extension: [{ url: 'http://extension.test', valueBoolean: true }],
    active: false,
    _active: { id: 'a' },
    deceasedBoolean: true,
    link: [{ type: 'refer', other: { reference: 'Patient/eve' } }],
    gender: 'female',
    birthDate: '1980-01-01',
    contained: [],
  }

  for (const shape of [
    { summary: 'false', elements: ['birthDate'] },
    { summary: 'text', elements: [] },
  ] as const)
    it(`keeps what changes the meaning of the rest: ${JSON.stringify(shape)} (FHIR-18)`, () => {
      const { gender, birthDate, extension, contained, ...kept } = patient
      const { meta, ...shown } = shapeResource<Resource>(patient, shape)
      assert.match(JSON.stringify(meta), /SUBSETTED/)
      assert.deepEqual(shown, shape.summary === 'text' ? kept : { ...kept, birthDate })
      assert.deepEqual([gender, extension.length, contained.length], ['female', 1, 0])
    })

  it('keeps that a record was entered in error', () => {
    const condition = {
      resourceType: 'Condition',
      verificationStatus: { coding: [{ code: 'entered-in-error' }] },
    }
    const shown = shapeResource(condition, { summary: 'false', elements: ['code'] })
    assert.deepEqual(shown.verificationStatus, condition.verificationStatus)
  })
})
