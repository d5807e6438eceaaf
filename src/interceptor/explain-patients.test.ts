import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../core/index.ts'
import { createUserFilter, parsePolicy } from '../smart/index.ts'
import { explain } from './explain.ts'
import { fhirBaseUrl } from './testing/test-issuer.ts'

const rights = parsePolicy({
  rules: [
    { clinicians: ['Practitioner/kim'], organizations: ['north'] },
    { clinicians: ['Practitioner/lee'], patients: ['1', '2'] },
    { clinicians: ['Practitioner/max'], patients: ['3'], careTeams: ['t'] },
    { clinicians: ['Practitioner/max'], careTeams: 'own' },
    { clinicians: ['Practitioner/many'], patients: Array.from({ length: 51 }, (_, at) => `p${at}`) },
    { clinicians: ['Practitioner/five'], patients: ['1', '2', '3', '4', '5'] },
    { clinicians: ['Practitioner/root'], patients: 'all' },
  ],
})
assert(!isFailure(rights))
const userFilter = createUserFilter(rights)

function ask(line: string, scope: string, body?: unknown, user = 'kim') {
  const [method = '', url = ''] = line.split(' ')
  const settings = { searchPermission: 'r', contexts: ['patient', 'user'], userFilter } as const
  const token = { scope, fhirUser: `Practitioner/${user}`, patient: '1' }
  return explain({ method, url, body, ...token, ...settings }, fhirBaseUrl)
}

const NOT_WITHIN = 'Not within the granted patient, user or filter.'

describe('explain with a policy', () => {
  const explainFor = (line: string, user: string) => {
    const { allowed, status, text, hint } = ask(line, 'user/*.cruds', undefined, user)
    return allowed ? text.replace('Allowed by user/*.cruds', '') : [status, text, hint]
  }

  it('reports which patients a user/ scope is limited to, and what depends on stored data', () => {
    const { allowed, by, within, limits, text } = ask('GET /Condition', 'user/Condition.rs')
    assert.deepEqual([allowed, by, within, limits], [true, 'user/Condition.rs', null, []])
    assert.equal(
      text,
      'Allowed by user/Condition.rs, within the patients of the user: those of Organization/north.',
    )
    assert.equal(explainFor('GET /Patient/1', 'kim'), ', if Patient/1 is of Organization/north.')
    const max = 'of CareTeam/t or of a care team with Practitioner/max'
    assert.equal(explainFor('GET /Patient/1/Condition', 'max'), `, if Patient/1 is ${max}.`)
    assert.equal(explainFor('GET /Patient/3', 'max'), ', as Patient/3 is a patient of the user.')
    assert.equal(
      explainFor('DELETE /Condition/9', 'max'),
      `, if it is of one of the patients of the user: Patient/3, those of CareTeam/t or those of a care team with Practitioner/max.`,
    )
    assert.match(ask('GET /Organization', 'user/*.rs').text, /^Allowed by user\/\*\.rs\.$/)
    assert.match(ask('GET /Condition', 'patient/*.rs').text, /, within Patient\/1\.$/)
  })

  it('decides by id if the policy lists patients, and names them', () => {
    const others = (user: string) => [403, NOT_WITHIN, `The policy gives Practitioner/${user} other patients`]
    assert.equal(
      explainFor('GET /Condition', 'lee'),
      ', within the patients of the user: Patient/1 or Patient/2.',
    )
    assert.equal(explainFor('GET /Patient/2', 'lee'), ', within Patient/2.')
    for (const line of [
      'GET /Patient/3',
      'PUT /Patient/3',
      'GET /Patient/3/Condition',
      'GET /Patient/3/$everything',
    ]) {
      assert.deepEqual(explainFor(line, 'lee'), others('lee'), line)
      assert.deepEqual(explainFor(line, 'many'), others('many'), line)
    }
    assert.equal(explainFor('GET /Patient/p50', 'many'), ', as Patient/p50 is a patient of the user.')
    assert.match(String(explainFor('GET /Condition', 'five')), /: Patient\/1, .*Patient\/4 or Patient\/5\.$/)
    assert.match(
      String(explainFor('GET /Condition', 'many')),
      /: Patient\/p0, .*Patient\/p4 or 46 more by id\.$/,
    )
  })

  it('refuses a user without patients, except for a search, which finds nothing', () => {
    const refused = [403, NOT_WITHIN, 'The policy gives Practitioner/nobody no patients']
    for (const line of [
      'GET /Patient/1',
      'GET /Condition/1',
      'GET /Condition/1/_history',
      'GET /Patient/1/Condition',
      'POST /Condition',
      'PUT /Condition/1',
      'DELETE /Condition?code=x',
    ])
      assert.deepEqual(explainFor(line, 'nobody'), refused, line)
    for (const line of ['GET /Condition', 'GET /Patient?_id=1'])
      assert.equal(
        explainFor(line, 'nobody'),
        ', within no patient, as the policy gives the user none: it finds nothing.',
      )
    assert.equal(explainFor('GET /Organization/1', 'nobody'), '.')
  })

  it('does not mention patients to a user who may see all of them', () => {
    for (const line of ['GET /Patient/1', 'GET /Condition', 'GET /Group/1'])
      assert.equal(explainFor(line, 'root'), '.')
  })

  it('explains that the policy limits a scope', () => {
    assert.match(ask('GET /Group/1', 'user/*.rs').hint ?? '', /gives Practitioner\/kim no access to Group/)
    const filtered = ask('GET /Condition/1', 'user/Condition.rs?no-such=x')
    assert.match(filtered.hint ?? '', /scope without a filter/)
  })

  it('reports no compartment if there are several', () => {
    const several = parsePolicy({ rules: [{ clinicians: 'all', patients: ['1', '2'] }] })
    assert(!isFailure(several))
    const request = { method: 'GET', url: '/Condition', scope: 'user/*.rs', fhirUser: 'Practitioner/kim' }
    const settings = { searchPermission: 'r', contexts: ['user'] } as const
    const result = explain({ ...request, ...settings, userFilter: createUserFilter(several) }, fhirBaseUrl)
    assert.deepEqual([result.allowed, result.within], [true, null])
  })

  it('does not decide which patient a patch is about', () => {
    const body = [{ op: 'add', path: '/subject', value: { reference: 'Patient/2' } }]
    assert(ask('PATCH /Condition/1', 'user/Condition.u', body).allowed)
  })

  it('refuses types that list patients', () => {
    assert.equal(ask('GET /Group', 'user/*.rs').status, 403)
  })
})
