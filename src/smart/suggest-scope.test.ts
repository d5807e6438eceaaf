import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { suggestScope } from './suggest-scope.ts'

describe('suggestScope', () => {
  for (const [text, meant] of Object.entries({
    'patient/Observaton.rs': 'patient/Observation.rs',
    'patients/Observation.rs': 'patient/Observation.rs',
    'Patient/Conditions.read': 'patient/Condition.read',
    'patient/Observation.sr': 'patient/Observation.rs',
    'user/Observation.RS': 'user/Observation.rs',
    'patient/Observaton.rs?category=laboratory': 'patient/Observation.rs?category=laboratory',
    'lanch/patient': 'launch/patient',
    ofline_access: 'offline_access',
    opnid: 'openid',
  }))
    it(`suggests ${meant} for ${text}`, () => assert.equal(suggestScope(text), meant))

  for (const text of [
    'patient/Observation.rs',
    'patient/observation.rs',
    'system/*.cruds',
    'launch',
    'openid',
  ])
    it(`leaves ${text}, which means something`, () => assert.equal(suggestScope(text), undefined))

  for (const text of [
    'patient/Teapot.rs',
    'patient/Observation.execute',
    'teapot',
    '',
    `patient/${'a'.repeat(1e6)}.rs`,
  ])
    it(`has no suggestion for ${text.slice(0, 40)}`, () => assert.equal(suggestScope(text), undefined))
})
