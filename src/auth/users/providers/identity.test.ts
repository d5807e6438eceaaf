import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { FhirUserRule } from '../../../config/index.ts'
import type { Claims } from '../../../jwt/index.ts'
import { makeProvider } from '../../testing/test-sign-in.ts'
import { checkAllowed, isAdministratorBy } from './groups.ts'
import { findClaim, mapFhirUser, readNames } from './identity.ts'
import { SignInRefusal } from './refusal.ts'

const BASE = 'https://fhir.ehr.example/fhir'

function map(fhirUser: FhirUserRule | undefined, claims: Claims) {
  const result = mapFhirUser(makeProvider({ issuer: 'https://idp.example' }, { fhirUser }), claims, BASE)
  return result instanceof SignInRefusal ? `${result.reason}: ${result.detail}` : result
}

describe('the Practitioner of claims', () => {
  const claim = { kind: 'claim', claim: 'fhirUser' } as const
  const template = { kind: 'template', template: 'Practitioner/{employee.number}' } as const
  const search = { kind: 'search', search: 'Practitioner?identifier=urn:x|{number}' } as const

  it('is the reference in a claim, relative or below the FHIR base (SIGNIN-7)', () => {
    assert.deepEqual(map(claim, { fhirUser: 'Practitioner/7' }), { kind: 'id', id: '7' })
    assert.deepEqual(map(claim, { fhirUser: `${BASE}/Practitioner/7` }), { kind: 'id', id: '7' })
  })

  it('is never one of another server, another type, or a path (SIGNIN-7)', () => {
    for (const fhirUser of [
      'https://evil.example/fhir/Practitioner/7',
      `${BASE}.evil.example/Practitioner/7`,
      'urn:uuid:7',
    ])
      assert.equal(map(claim, { fhirUser }), 'bad-claims: The fhirUser names another FHIR server', fhirUser)
    for (const fhirUser of [
      'Patient/7',
      '7',
      'Practitioner/7/_history/1',
      'Practitioner/../Patient/7',
      'Practitioner/..',
      'Practitioner/.',
      `${BASE}/Practitioner/..`,
      'Practitioner/',
    ])
      assert.equal(
        map(claim, { fhirUser }),
        'bad-claims: The fhirUser does not name a Practitioner',
        fhirUser,
      )
    for (const fhirUser of [undefined, '', ['Practitioner/7'], { reference: 'Practitioner/7' }])
      assert.equal(map(claim, { fhirUser }), 'bad-claims: The claim fhirUser is missing')
  })

  it('is a template filled with claims that are FHIR ids (SIGNIN-7)', () => {
    assert.deepEqual(map(template, { employee: { number: 7 } }), { kind: 'id', id: '7' })
    assert.equal(map(template, {}), 'bad-claims: The claim employee.number is missing')
    assert.match(String(map(template, { employee: { number: '7?x=1' } })), /does not name a Practitioner/)
    assert.match(
      String(map(template, { employee: { number: '../Patient/7' } })),
      /does not name a Practitioner/,
    )
    assert.match(String(map(template, { employee: { number: '..' } })), /does not name a Practitioner/)
  })

  it('is found by a search to which a claim cannot add values or parameters (SIGNIN-7)', () => {
    assert.deepEqual(map(search, { number: 'e-7' }), {
      kind: 'search',
      query: 'Practitioner?identifier=urn:x|e-7',
    })
    assert.deepEqual(map(search, { number: '7,8|9&active=true#' }), {
      kind: 'search',
      query: `Practitioner?identifier=urn:x|${encodeURIComponent('7\\,8\\|9&active=true#')}`,
    })
    assert.equal(map(undefined, {}), 'bad-claims: The provider has no fhir-user setting')
  })
})

describe('claims', () => {
  it('are found by name before they are found below other claims, and only as own members', () => {
    assert.equal(findClaim({ 'https://x/groups': 1 }, 'https://x/groups'), 1)
    assert.equal(findClaim({ a: { b: 1 }, 'a.b': 2 }, 'a.b'), 2)
    assert.deepEqual(findClaim({ realm_access: { roles: ['x'] } }, 'realm_access.roles'), ['x'])
    assert.equal(findClaim({}, 'constructor'), undefined)
    assert.equal(findClaim({ a: [] }, 'a.length'), undefined)
  })

  it('match a rule by a whole value', () => {
    const admin = { claim: 'groups', values: ['clinicians', 'nurses'] }
    const provider = makeProvider({ issuer: 'https://idp.example' }, { admin })
    assert.equal(isAdministratorBy(provider, { groups: ['x', 'nurses'] }), true)
    assert.equal(isAdministratorBy(provider, { groups: 'clinicians' }), true)
    for (const groups of [undefined, [], 'clinicians,x', ['Clinicians'], { clinicians: true }, [['nurses']]])
      assert.equal(isAdministratorBy(provider, { groups }), false)
  })

  it('name the account, and control characters are refused or removed', () => {
    const provider = makeProvider({ issuer: 'https://idp.example' })
    assert.deepEqual(readNames(provider, { preferred_username: ' ada ', name: 'Ada\n\u202eByron' }), {
      username: 'ada',
      displayName: 'Ada Byron',
    })
    assert.deepEqual(readNames(provider, { preferred_username: 'ada', name: '\u202e' }), {
      username: 'ada',
      displayName: 'ada',
    })
    for (const preferred_username of [undefined, '', 'a\u0007b', 'a\u202eb', 'x'.repeat(101), ['ada']])
      assert(readNames(provider, { preferred_username }) instanceof SignInRefusal)
  })

  it('allow everyone if the settings name no group', () => {
    assert.equal(checkAllowed(makeProvider({ issuer: 'https://idp.example' }), {}), undefined)
  })
})
