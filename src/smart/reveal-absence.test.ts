import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type AccessFilter, type Constraint, mayRevealAbsence } from './index.ts'

const own: Constraint = { id: '1' }
const patient: Constraint = { patient: '1' }
const query = [['code', 'x']] as const
const panel = { patients: new Set(['1']), organizations: [], careTeams: [] }

// What a grant reaches, what is asked for, and whether its absence may be told.
const CASES: readonly (readonly [AccessFilter, string, string, boolean])[] = [
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

describe('mayRevealAbsence', () => {
  for (const [filter, type, id, told] of CASES) {
    const constraints = filter === 'everything' ? filter : JSON.stringify(filter)
    it(`is ${told} of ${type}/${id} for who reaches ${constraints}`, () =>
      assert.equal(mayRevealAbsence(filter, type, id), told))
  }
})
