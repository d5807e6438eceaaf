import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readRights, rightsReach } from '../consent/index.ts'
import { explain } from './explain.ts'
import { fhirBaseUrl } from './testing/auth-server.ts'

const rights = readRights({ rules: [{ clinicians: 'all', organizations: ['north'] }] })
assert(!('problem' in rights))
const userReach = rightsReach(rights)

function ask(line: string, scope: string, body?: unknown) {
  const [method = '', url = ''] = line.split(' ')
  return explain(
    {
      method,
      url,
      scope,
      fhirUser: 'Practitioner/kim',
      patient: '1',
      body,
      searchLetter: 'r',
      contexts: ['patient', 'user'],
      userReach,
    },
    fhirBaseUrl,
  )
}

describe('explain, under a policy', () => {
  it('says that a user/ scope is kept to the patients of the user, which only data can tell', () => {
    const { allowed, by, within, limits, text } = ask('GET /Condition', 'user/Condition.rs')
    assert.deepEqual([allowed, by, within, limits], [true, 'user/Condition.rs', null, []])
    assert.equal(text, 'Allowed by user/Condition.rs, within the patients of the user.')
    assert.match(ask('GET /Organization', 'user/*.rs').text, /^Allowed by user\/\*\.rs\.$/)
    assert.match(ask('GET /Condition', 'patient/*.rs').text, /, within Patient\/1\.$/)
  })

  it('names no compartment where there are several', () => {
    const several = readRights({ rules: [{ clinicians: 'all', patients: ['1', '2'] }] })
    assert(!('problem' in several))
    const asked = { method: 'GET', url: '/Condition', scope: 'user/*.rs', fhirUser: 'Practitioner/kim' }
    const settings = { searchLetter: 'r', contexts: ['user'] } as const
    const told = explain({ ...asked, ...settings, userReach: rightsReach(several) }, fhirBaseUrl)
    assert.deepEqual([told.allowed, told.within], [true, null])
  })

  it('leaves it to data whom a patch names', () => {
    const body = [{ op: 'add', path: '/subject', value: { reference: 'Patient/2' } }]
    assert(ask('PATCH /Condition/1', 'user/Condition.u', body).allowed)
  })

  it('refuses what lists patients', () => {
    assert.equal(ask('GET /Group', 'user/*.rs').status, 403)
  })
})
