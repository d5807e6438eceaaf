import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseInteraction } from '../../fhir/index.ts'
import type { Access, AccessFilter } from '../../smart/index.ts'
import { fhirBaseUrl } from '../testing/test-issuer.ts'
import { checkHostRules, findConditionalTypes } from './host-rules.ts'

const OWN: AccessFilter = [{ patient: '1' }]
const panel = { patients: new Set(['1']), organizations: [], careTeams: [] }

/** Full access except for the named limits: `s` for all types, `Patient` for all permissions. */
function without(...limited: readonly string[]): Access {
  return {
    filterFor: (type, permission) =>
      limited.includes(type) || limited.includes(permission) ? OWN : 'everything',
  }
}

function isRefused(line: string, access: Access, headers: Record<string, string> = {}): boolean {
  const [method = '', url = ''] = line.split(' ')
  const [path = '', query = ''] = url.split('?')
  const interaction = parseInteraction({ method, path, query, headers })
  assert(interaction.kind !== 'misunderstood', line)
  return checkHostRules(interaction, access, fhirBaseUrl) !== undefined
}

describe('checkHostRules', () => {
  it('permits everything with access to all data', () => {
    for (const line of [
      'GET /Condition?foo=1',
      'GET /',
      'GET /_history',
      'GET /Condition/_history',
      'GET /Patient/1/*',
      'PATCH /Condition/1',
      'PATCH /Condition?code=1',
      'PUT /Condition?code=1',
      'DELETE /Condition?code=1',
      'POST /Condition',
    ])
      assert.equal(isRefused(line, without()), false, line)
  })

  it('refuses searches of all data, except for types that the grant covers completely', () => {
    for (const line of ['GET /', 'GET /_history', 'GET /Condition/_history', 'GET /Patient/1/*'])
      assert.equal(isRefused(line, without('s')), true, line)
    const most = without('Condition')
    for (const [line, refused] of [
      ['GET /', true],
      ['GET /?_type=Condition', true],
      ['GET /?_type=Practitioner,Condition', true],
      ['GET /?_type=Practitioner', false],
      ['GET /_history?_type=Practitioner,Organization&_count=5', false],
    ] as const)
      assert.equal(isRefused(line, most), refused, line)
  })

  it('requires the patient in $lastn, as in a search', () => {
    assert.equal(isRefused('GET /Observation/$lastn', without()), false)
    assert.equal(isRefused('GET /Observation/$lastn?patient=1', without('Observation')), false)
    for (const query of ['', '?patient=2', '?code=x'])
      assert.equal(isRefused(`GET /Observation/$lastn${query}`, without('Observation')), true, query)
    assert.equal(isRefused('GET /Patient/1/$everything', without('Patient')), false)
  })

  it('refuses to validate a stored resource of a limited type (OPERATION-5)', () => {
    for (const line of ['GET /Patient/1/$validate', 'POST /Patient/1/$validate']) {
      assert.equal(isRefused(line, without('Patient')), true, line)
      assert.equal(isRefused(line, without()), false, line)
    }
    assert.equal(isRefused('POST /Patient/$validate', without('Patient')), false)
  })

  it('refuses a conditional write if the write or the search is limited', () => {
    const ifNoneExist = { 'if-none-exist': 'code=1' }
    for (const [line, permission] of [
      ['PUT /Condition?code=1', 'u'],
      ['PATCH /Condition?code=1', 'u'],
      ['DELETE /Condition?code=1', 'd'],
    ] as const)
      for (const limited of [permission, 's']) assert.equal(isRefused(line, without(limited)), true, line)
    for (const limited of ['c', 's'])
      assert.equal(isRefused('POST /Condition', without(limited), ifNoneExist), true, limited)
    assert.equal(isRefused('POST /Condition', without('d', 'u'), ifNoneExist), false)
    assert.equal(isRefused('DELETE /Condition?code=1', without('u', 'c', 'r')), false)
    assert.equal(isRefused('PUT /Condition?code=1', without('d', 'c', 'r')), false)
  })

  it('permits a search that is limited to one of the constraints', () => {
    const filter = (...limits: Exclude<AccessFilter, 'everything'>): Access => ({ filterFor: () => limits })
    const line = 'GET /Condition?patient=1'
    assert.equal(isRefused(line, filter({ patient: '2' }, { patient: '1' })), false)
    assert.equal(isRefused(line, filter({ patient: '2' })), true)
    assert.equal(isRefused(line, filter({ patient: '1', id: '5' })), true)
    assert.equal(isRefused(line, filter({ patient: '1', panel })), true)
    assert.equal(isRefused(line, filter({ patient: '1', query: [['code', 'x']] })), true)
    assert.equal(isRefused(`${line}&code=x`, filter({ patient: '1', query: [['code', 'x']] })), false)
    assert.equal(isRefused('GET /Schedule?date=2020', filter({ patient: '1' })), true)
    assert.equal(isRefused('GET /Schedule?actor=Patient/1', filter({ patient: '1' })), false)
  })

  it('refuses a chain with a limited type', () => {
    const chain = 'GET /Observation?subject:Patient.general-practitioner:Practitioner.name=x'
    assert.equal(isRefused(chain, without()), false)
    for (const type of ['Patient', 'Practitioner']) assert.equal(isRefused(chain, without(type)), true, type)
    assert.equal(isRefused('GET /Practitioner?_has:Foo:bar:baz=1', without()), true)
  })
})

describe('findConditionalTypes', () => {
  it('finds the types of conditional references, and no others', () => {
    assert.deepEqual(findConditionalTypes({ subject: { reference: 'Patient?name=x' } }), ['Patient'])
    assert.deepEqual(findConditionalTypes([{ a: [{ reference: { reference: 'Group?x=1' } }] }]), ['Group'])
    assert.deepEqual(findConditionalTypes({ display: 'Patient?name=x', reference: 'Patient/1', n: 5 }), [])
  })
})
