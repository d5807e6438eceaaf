import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { countRuns } from '../../test/support/thorough.ts'
import { findScopeListFault, type Permission, parseScope, parseScopes, permits } from './index.ts'

const PERMISSIONS = ['c', 'r', 'u', 'd', 's'] as const

function listPermissions(text: string, type = 'Observation'): string {
  const scope = parseScope(text)
  return scope === undefined
    ? ''
    : PERMISSIONS.filter(permission => permits(scope, type, permission)).join('')
}

// SCOPE-1 to SCOPE-4, with scopes that would grant too much if they were read character by character.
const PERMITTED: Record<string, string> = {
  'patient/Observation.rs': 'rs',
  'patient/Observation.cruds': 'cruds',
  'patient/*.rs': 'rs',
  'patient/*.cruds': 'cruds',
  'patient/observation.rs': 'rs',
  'patient/OBSERVATION.c': 'c',
  'user/Observation.u': 'u',
  'system/*.d': 'd',
  'patient/Observation.read': 'rs',
  'patient/Observation.write': 'cud',
  'patient/Observation.*': 'cruds',
  'patient/Observation.rs?category=http://terminology.hl7.org/CodeSystem/observation-category|laboratory':
    'rs',
  'patient/Observation.rs?category=http://terminology.hl7.org/CodeSystem/observation-category|survey': 'rs',
  'patient/Observation.s?code=http://loinc.org|4548-4': 's',
  'patient/Observation.r?_security=R': 'r',
  'patient/Patient.rs': '',
  'patient/ObservationX.rs': '',
  'patient/Obs.rs': '',
}

const OUTSIDE_THE_GRAMMAR = [
  '',
  'patient',
  'patient/',
  'patient/Observation',
  'patient/Observation.',
  'patient/.rs',
  'patient/Observation.dus',
  'patient/Observation.sr',
  'patient/Observation.rrs',
  'patient/Observation.RS',
  'patient/Observation.readonly',
  'patient/Observation.read-only',
  'patient/Observation.rsXYZ',
  'patient/Observation.rs.c',
  'patient/Observation.rs?',
  'patient/Observation.rs?category',
  'patient/Observation.rs?=laboratory',
  'patient/Observation.rs?category=',
  'patient/Observation.rs?category=a&',
  'patient/Observation.rs?category=a?status=b',
  'patient/Observation.rs?category=%',
  'patient/Observation.read?category=a',
  'patient/Observation.*?category=a',
  'patient/Obser*.rs',
  'patient/Observation/1.rs',
  'Patient/Observation.rs',
  'patients/Observation.rs',
  'xpatient/Observation.rs',
  'patient/Observation.rs\n',
  'patient/Observation.rs"',
  'patient\\Observation.rs',
]

describe('parseScope and permits', () => {
  for (const [text, permissions] of Object.entries(PERMITTED))
    it(`reads ${text} as ${permissions || 'nothing'} on Observation (SERVICE-5, SCOPE-1, SCOPE-4)`, () =>
      assert.equal(listPermissions(text), permissions))

  for (const text of OUTSIDE_THE_GRAMMAR)
    it(`reads ${JSON.stringify(text)} as nothing (SCOPE-3)`, () => assert.equal(parseScope(text), undefined))

  it('separates the query of a granular scope, and decodes it', () => {
    const scope = parseScope('patient/Observation.rs?category=a%7Cb&status=final')
    assert.deepEqual(scope?.kind === 'resource' && scope.query, [
      ['category', 'a|b'],
      ['status', 'final'],
    ])
  })

  it('accepts one permission with a search parameter, and marks v1 scopes', () => {
    const read = (text: string) => {
      const scope = parseScope(text)
      return scope?.kind === 'resource' ? [scope.query, scope.v1] : undefined
    }
    assert.deepEqual(read('patient/Observation.rs?x=1'), [[['x', '1']], false])
    assert.deepEqual(read('patient/Observation.read'), [[], true])
  })

  it('recognizes scopes without a resource type, which permit nothing (SCOPE-9)', () => {
    for (const text of [
      'openid',
      'fhirUser',
      'launch',
      'launch/patient',
      'online_access',
      '__private',
      'http://a.b/c',
    ])
      assert.deepEqual(parseScope(text), { kind: 'plain', text })
    assert.equal(listPermissions('launch/patient', 'Patient'), '')
  })

  it('agrees with a second implementation of the grammar for each permission (SCOPE-2)', () => {
    const suffix = fc.oneof(
      fc.constantFrom('read', 'write', '*', 'rs', 'cruds', 'c', 's', 'cud', 'rr', 'sr', ''),
      fc.string({ unit: fc.constantFrom(...PERMISSIONS), maxLength: 6 }),
      fc.string({ maxLength: 6 }),
    )
    const scope = fc.tuple(
      fc.constantFrom('patient', 'user', 'system', 'Patient', ''),
      fc.constantFrom('Observation', 'observation', '*', 'Patient', 'Observations', ''),
      suffix,
      fc.constantFrom('', '?category=a', '?category', '?'),
    )
    fc.assert(
      fc.property(
        scope,
        fc.constantFrom(...PERMISSIONS),
        ([context, type, permissions, query], permission) => {
          const text = `${context}/${type}.${permissions}${query}`
          assert.equal(
            listPermissions(text).includes(permission),
            permitsNaively(context, type, permissions, query, permission),
            text,
          )
        },
      ),
      { numRuns: countRuns(20_000) },
    )
  })
})

/** SCOPE-1 to SCOPE-3 for Observation, implemented a second time without a regular expression. */
function permitsNaively(
  context: string,
  type: string,
  permissions: string,
  query: string,
  permission: Permission,
): boolean {
  if (!['patient', 'user', 'system'].includes(context)) return false
  if (type !== '*' && type.toLowerCase() !== 'observation') return false
  const v1: Record<string, string> = { read: 'rs', write: 'cud', '*': 'cruds' }
  if (Object.hasOwn(v1, permissions)) return query === '' && (v1[permissions] ?? '').includes(permission)
  const sorted = PERMISSIONS.filter(it => permissions.includes(it)).join('')
  return (
    permissions !== '' &&
    sorted === permissions &&
    (query === '' || query === '?category=a') &&
    permissions.includes(permission)
  )
}

describe('parseScopes', () => {
  it('splits a string on spaces, or takes an array of strings (BEARER-11)', () => {
    const texts = (claim: unknown) => parseScopes(claim).map(scope => scope.text)
    assert.deepEqual(texts('openid  patient/*.rs patient/*.rs'), ['openid', 'patient/*.rs'])
    assert.deepEqual(texts(['openid', 'patient/*.rs', 1, null, 'a b']), ['openid', 'patient/*.rs'])
    for (const claim of [undefined, null, 1, {}, '', 'patient/*.rs\tpatient/*.c', 'patient/*.rs,patient/*.c'])
      assert.deepEqual(texts(claim), [])
  })
})

const repeat = (count: number, text: string): string => Array(count).fill(text).join(' ')

const makeScope = (parameters: number): string =>
  `patient/Observation.rs?${Array.from({ length: parameters }, (_, at) => `p${at}=x`).join('&')}`

describe('findScopeListFault', () => {
  it('accepts 8,000 characters', () => {
    assert.deepEqual(findScopeListFault('x'.repeat(8000)), undefined)
    assert.deepEqual(findScopeListFault('x'.repeat(8001)), {
      reason: 'scope-list-too-long',
      most: 8000,
    })
  })

  it('accepts 100 scopes, with any number of spaces between them', () => {
    assert.deepEqual(findScopeListFault(repeat(100, 'openid ')), undefined)
    assert.deepEqual(findScopeListFault(repeat(101, 'openid')), {
      reason: 'scopes-too-many',
      most: 100,
    })
  })

  it('accepts 6 search parameters in a scope', () => {
    assert.deepEqual(findScopeListFault(makeScope(6)), undefined)
    assert.deepEqual(findScopeListFault(`openid ${makeScope(7)}`), {
      reason: 'scope-parameters-too-many',
      most: 6,
    })
  })

  it('accepts 50 search parameters in scopes with several, and any number of scopes with one', () => {
    const fifty = `${repeat(9, makeScope(5))} ${makeScope(3)} ${makeScope(2)}`
    const fault = { reason: 'scope-combined-too-many', most: 50 }
    assert.deepEqual(findScopeListFault(`${fifty} ${repeat(60, makeScope(1))} openid`), undefined)
    assert.deepEqual(findScopeListFault(`${fifty} ${makeScope(2)}`), fault)
    assert.deepEqual(findScopeListFault(`${repeat(9, makeScope(5))} ${makeScope(6)}`), fault)
  })
})

describe('parseScope with a granular scope', () => {
  it('grants nothing with more than 6 search parameters', () => {
    assert.notEqual(parseScope(makeScope(6)), undefined)
    assert.deepEqual(parseScope(makeScope(7)), undefined)
  })
})
