import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../../core/index.ts'
import { type Access, fullAccess } from '../../smart/index.ts'
import { readResource } from './plan-write.ts'

const ofAnn: Access = { filterFor: () => [{ patient: 'ann' }] }
const condition = (id: string) => ({
  resourceType: 'Condition',
  id,
  subject: { reference: 'Patient/ann' },
})
const remote = {}

const read = (
  body: unknown,
  access = fullAccess,
  id?: string,
  session: Parameters<typeof readResource>[0] = remote,
) => readResource(session, { body, access }, 'u', 'Condition', id)
const findProblem = (...of: Parameters<typeof read>) => {
  const found = read(...of)
  return isFailure(found) ? found.reason : undefined
}

describe('the body of a write', () => {
  const invalid = { ...condition('c'), onsetDateTime: 'yesterday' }

  it('must be valid if Sallyport checks or stores it, and otherwise is validated by the upstream server', () => {
    assert.equal(findProblem(invalid, ofAnn), 'invalid-resource')
    assert.equal(read(invalid), invalid)
    const local = { newId: () => '1', plan: <T>(work: () => Promise<T>) => work() }
    assert.equal(findProblem(invalid, fullAccess, undefined, { local }), 'invalid-resource')
  })

  it('must have the type and the id of the URL, whoever writes it', () => {
    for (const access of [fullAccess, ofAnn]) {
      assert.notEqual(findProblem({ resourceType: 'Patient', id: 'c' }, access), undefined)
      assert.notEqual(findProblem(condition('other'), access, 'c'), undefined)
      assert.equal(findProblem(condition('c'), access, 'c'), undefined)
    }
  })
})
