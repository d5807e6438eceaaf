import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Limit, type Reach, tellsAbsence } from './index.ts'

const own: Limit = { id: '1' }
const patient: Limit = { patient: '1' }
const query = [['code', 'x']] as const
const panel = { patients: new Set(['1']), organizations: [], careTeams: [] }

// What a grant reaches, what is asked for, and whether its absence may be told.
const CASES: readonly (readonly [Reach, string, string, boolean])[] = [
  ['everything', 'Condition', '1', true],
  [[], 'Condition', '1', false],
  [[{}], 'Condition', '1', false],
  [[own], 'Practitioner', '1', true],
  [[own], 'Practitioner', '2', false],
  [[{ ...own, query }], 'Practitioner', '1', false],
  [[patient], 'Patient', '1', true],
  [[patient], 'Patient', '2', false],
  [[patient], 'Condition', '1', false],
  [[{ ...patient, query }], 'Patient', '1', false],
  [[{ ...patient, id: '2' }], 'Patient', '1', false],
  [[{ ...patient, id: '1' }], 'Patient', '1', true],
  [[{ query }], 'Condition', '1', false],
  [[{ panel }], 'Patient', '1', false],
  [[{ query }, patient], 'Patient', '1', true],
  [[patient, { query }], 'Patient', '1', true],
]

describe('tellsAbsence', () => {
  for (const [reach, type, id, told] of CASES) {
    const limits = reach === 'everything' ? reach : JSON.stringify(reach)
    it(`is ${told} of ${type}/${id} for who reaches ${limits}`, () =>
      assert.equal(tellsAbsence(reach, type, id), told))
  }
})
