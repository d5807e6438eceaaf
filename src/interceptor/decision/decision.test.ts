import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../../core/index.ts'
import { createUserFilter, parsePolicy } from '../../smart/index.ts'
import { explain, type Question } from '../explain.ts'
import { fhirBaseUrl } from '../testing/test-issuer.ts'

function findHint(line: string, scope: string, more: Partial<Question> = {}): string | undefined {
  const [method = '', url = ''] = line.split(' ')
  const settings = { searchPermission: 'r', contexts: ['patient', 'user', 'system'] } as const
  return explain({ method, url, scope, patient: '1', ...settings, ...more }, fhirBaseUrl).hint
}

describe('the hint of a search within one patient', () => {
  const hint = (url: string) => findHint(`GET ${url}`, 'patient/*.rs')
  const say = (patients: string) =>
    `The search names ${patients}, but finds only data in the record of Patient/1`

  it('names the other patients that the search names, by reference or by id', () => {
    assert.equal(hint('/Condition?patient=2'), say('Patient/2'))
    assert.equal(hint('/Condition?subject:Patient=2'), say('Patient/2'))
    assert.equal(hint('/Condition?subject=Patient/2'), say('Patient/2'))
    assert.equal(hint(`/Condition?subject=${fhirBaseUrl}/Patient/2`), say('Patient/2'))
    assert.equal(hint('/Patient?_id=2'), say('Patient/2'))
    assert.equal(hint('/Observation/$lastn?patient=2'), say('Patient/2'))
    assert.equal(hint(`/Condition?patient=${'a'.repeat(64)}`), say(`Patient/${'a'.repeat(64)}`))
    assert.equal(
      hint('/Condition?patient=1,2,Patient/3&subject=Patient/4'),
      say('Patient/2, Patient/3, Patient/4'),
    )
  })

  it('names no patient for the patient of the token, and for other types and parameters', () => {
    for (const url of [
      '/Condition',
      '/Condition?patient=1',
      '/Condition?subject=Patient/1',
      '/Condition?_id=2',
      '/Condition?code=2',
      '/Condition?patient=',
      '/Condition?subject=Group/2',
      `/Condition?patient=${'a'.repeat(65)}`,
      '/Condition?patient=a%20b',
      '/Patient?identifier=2',
      '/Condition/2',
      '/Condition/2?patient=2',
    ])
      assert.equal(hint(url), undefined, url)
  })
})

describe('the hint of a refusal', () => {
  const policy = parsePolicy({ rules: [{ clinicians: ['Practitioner/kim'], patients: ['1'] }] })
  assert(!isFailure(policy))
  const userFilter = createUserFilter(policy)
  const kim = { fhirUser: 'Practitioner/kim', userFilter }
  const cases: readonly (readonly [line: string, scope: string, more: Partial<Question>, hint: RegExp])[] = [
    ['GET /Patient/2', 'patient/*.rs', {}, /only the patient of the token/],
    ['GET /Condition/2', 'patient/*.rs', { patient: undefined }, /no patient claim/],
    ['PUT /Practitioner/2', 'patient/*.cruds', {}, /can read Practitioner, which is shared, but never write/],
    ['PUT /Practitioner/2', 'patient/*.cud', {}, /^No patient\/ scope covers Practitioner/],
    ['PUT /Practitioner/kim', 'patient/*.cud', { fhirUser: 'Practitioner/kim' }, /which is shared/],
    ['GET /Group/2', 'patient/*.cruds', {}, /^No patient\/ scope covers Group/],
    [
      'GET /Observation',
      'patient/Observation.s?foo=x patient/Observation.r',
      { searchPermission: 's' },
      /^No patient\/ scope covers Observation/,
    ],
    ['GET /Group', 'patient/*.cruds', {}, /^No patient\/ scope covers Group/],
    ['GET /Condition/2', 'user/*.rs', {}, /no fhirUser claim/],
    ['GET /Patient/2', 'user/*.rs', kim, /The policy gives Practitioner\/kim other patients/],
    ['GET /Patient/2', 'patient/*.rs user/*.rs', kim, /The policy gives Practitioner\/kim other patients/],
    [
      'GET /Patient/2',
      'user/*.rs',
      { ...kim, fhirUser: 'Practitioner/lee' },
      /gives Practitioner\/lee no patients/,
    ],
    ['GET /Group/2', 'user/*.rs', kim, /no access to Group/],
    ['GET /Patient/2', 'user/*.rs', { ...kim, fhirUser: 'Patient/1' }, /^No granted scope covers/],
    ['GET /Patient/2', 'patient/*.rs system/*.rs?foo=x', kim, /^No granted scope covers/],
    ['GET /Condition/2', 'user/*.rs?foo=x', { fhirUser: 'Practitioner/kim' }, /^No granted scope covers/],
    ['GET /Condition/2', 'user/*.rs?foo=x', kim, /^No granted scope covers/],
  ]
  for (const [line, scope, more, hint] of cases)
    it(`explains ${line} with ${scope} of ${more.fhirUser ?? 'no user'}`, () =>
      assert.match(findHint(line, scope, more) ?? '', hint))

  it('says that a user has no patients only if every part of the policy gives none', () => {
    const empty = { patients: new Set<string>(), organizations: [], careTeams: [] }
    const mixed: Partial<Question> = { ...kim, userFilter: () => [{ panel: empty }, { patient: '9' }] }
    assert.match(findHint('GET /Patient/2', 'user/*.rs', mixed) ?? '', /other patients/)
  })
})
