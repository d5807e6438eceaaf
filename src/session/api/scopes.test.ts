import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findMissingScopes } from './endpoint.ts'

const CONDITION = ['patient/Condition.rs']

describe('missingScopes', () => {
  for (const granted of [
    'patient/Condition.rs',
    'patient/Condition.cruds',
    'patient/*.rs',
    'patient/*.cruds',
    'patient/Condition.read',
    'patient/*.read',
    'patient/Condition.*',
    'user/Condition.rs',
    'user/*.read',
    'patient/condition.rs',
    'patient/Condition.rs?category=problem-list-item',
    'patient/Condition.r patient/Condition.s',
    'patient/Condition.r user/Condition.s',
    'openid patient/Patient.rs patient/Condition.crs',
  ])
    it(`finds patient/Condition.rs in ${granted} (API-10)`, () =>
      assert.deepEqual(findMissingScopes(CONDITION, granted), []))

  for (const granted of [
    '',
    'patient/Condition.r',
    'patient/Condition.s',
    'patient/Condition.write',
    'patient/Condition.cud',
    'patient/Patient.rs',
    'patient/ConditionX.rs',
    'patient/Conditio.rs',
    'system/Condition.rs',
    'system/*.cruds',
    'patient/Condition.sr',
    'patient/Condition.rsx',
    'xpatient/Condition.rs',
    'launch/patient openid fhirUser',
  ])
    it(`does not find patient/Condition.rs in "${granted}"`, () =>
      assert.deepEqual(findMissingScopes(CONDITION, granted), CONDITION))

  it('compares scopes without a resource type exactly', () => {
    assert.deepEqual(findMissingScopes(['openid', 'fhirUser'], 'openid fhirUser'), [])
    assert.deepEqual(findMissingScopes(['openid', 'fhirUser'], 'openid profile'), ['fhirUser'])
    assert.deepEqual(findMissingScopes(['openid', 'fhirUser'], 'openidx fhiruser __fhirUser'), [
      'openid',
      'fhirUser',
    ])
  })

  it('names only missing scopes, in the required order', () => {
    const required = ['patient/Patient.rs', 'patient/Condition.rs', 'patient/MedicationRequest.rs']
    assert.deepEqual(findMissingScopes(required, 'patient/Condition.rs'), [
      'patient/Patient.rs',
      'patient/MedicationRequest.rs',
    ])
  })
})
