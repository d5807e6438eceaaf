import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { countRuns } from '../../../test/support/thorough.ts'
import { nameGroup } from '../../fhir/index.ts'
import { computeAccess, type ScopeContext, satisfies } from '../../smart/index.ts'
import { decideRequest, makeGrant, policy, type TestDecisionContext } from '../testing/decide-request.ts'
import { fhirBaseUrl } from '../testing/test-issuer.ts'

const TYPES = ['Patient', 'Condition', 'Observation', 'Practitioner', 'Group', 'Questionnaire'] as const
const PERMISSIONS = ['c', 'r', 'u', 'd', 's'] as const

interface RequestCase {
  readonly line: string
  readonly type: string
  /** All of these are required; `search` is the configured permission to search. */
  readonly needs: readonly ('c' | 'r' | 'u' | 'd' | 'search')[]
  readonly id?: string
  readonly compartment?: string
}

const type = fc.constantFrom(...TYPES)
const id = fc.constantFrom('1', '2', 'p1')
const requestCase: fc.Arbitrary<RequestCase> = fc
  .tuple(type, id, fc.nat(14))
  .map(([type, id, kind]): RequestCase => {
    const forms: RequestCase[] = [
      { line: `GET /${type}/${id}`, type, needs: ['r'], id },
      { line: `HEAD /${type}/${id}`, type, needs: ['r'], id },
      { line: `GET /${type}/${id}/_history`, type, needs: ['r'], id },
      { line: `GET /${type}/${id}/_history/3`, type, needs: ['r'], id },
      { line: `GET /${type}?_id=${id}`, type, needs: ['search'] },
      { line: `POST /${type}/_search`, type, needs: ['search'] },
      { line: `GET /${type}/_history`, type, needs: ['search'] },
      { line: `GET /Patient/${id}/${type}`, type, needs: ['search'], compartment: id },
      { line: `POST /${type}`, type, needs: ['c'] },
      { line: `PUT /${type}/${id}`, type, needs: ['u'], id },
      { line: `PATCH /${type}/${id}`, type, needs: ['u'], id },
      { line: `DELETE /${type}/${id}`, type, needs: ['d'], id },
      { line: `PUT /${type}?_id=${id}`, type, needs: ['u', 'search'] },
      { line: `DELETE /${type}?_id=${id}`, type, needs: ['d', 'search'] },
      { line: `PATCH /${type}?_id=${id}`, type, needs: ['u', 'search'] },
    ]
    return forms[kind] as RequestCase
  })

const scope = fc
  .tuple(
    fc.constantFrom('patient', 'patient', 'patient', 'user', 'system', 'launch'),
    fc.constantFrom(...TYPES, '*', '*', '*', 'condition', 'OBSERVATION', 'Obs'),
    fc.constantFrom(
      'rs',
      'r',
      's',
      'c',
      'u',
      'd',
      'cud',
      'cruds',
      'cruds',
      'cruds',
      'read',
      'write',
      '*',
      'sr',
      'rr',
      'readonly',
      '',
    ),
    fc.constantFrom('', '', '', '?category=lab', '?category=lab&code=x', '?foo=1', '?'),
  )
  .map(([context, type, permissions, query]) => `${context}/${type}.${permissions}${query}`)
const every: ScopeContext[] = ['patient', 'user', 'system']
const contexts = fc.oneof(fc.constant(every), fc.subarray(every))
const context = fc
  .record({
    scopes: fc.array(scope, { maxLength: 5 }),
    patient: fc.option(id, { nil: undefined }),
    fhirUser: fc.option(fc.constantFrom('Practitioner/p1', 'Patient/2'), { nil: undefined }),
    contexts,
    searchPermission: fc.constantFrom('r' as const, 's' as const),
  })
  .map(
    ({ scopes, patient, fhirUser, ...policy }): TestDecisionContext => ({
      scope: scopes.join(' '),
      policy,
      ...(patient !== undefined && { patient }),
      ...(fhirUser !== undefined && { fhirUser }),
    }),
  )

/** The rules SCOPE, ROUTE, PATIENT and USER implemented a second time, without the code under test. */
function decideNaively(
  { type, needs, id, compartment }: RequestCase,
  { scope, patient, fhirUser, policy = {} }: TestDecisionContext,
): string {
  for (const need of needs) {
    const permission = need === 'search' ? (policy.searchPermission ?? 'r') : need
    let covered = false
    let granted = need === 'r' && fhirUser === `${type}/${id}`
    for (const text of scope.split(' ')) {
      const [level = '', rest = ''] = split(text, '/')
      const [name = '', tail = ''] = split(rest, '.')
      const [permissions = '', query] = split(tail, '?')
      if (
        !['patient', 'user', 'system'].includes(level) ||
        !listPermissions(permissions, query).includes(permission)
      )
        continue
      if (query === '' || !(policy.contexts ?? []).includes(level as ScopeContext)) continue
      if (name !== '*' && name.toLowerCase() !== type.toLowerCase()) continue
      covered = true
      if (query !== undefined && !evaluable(query, type)) continue
      if (level === 'system' || (level === 'user' && fhirUser?.startsWith('Practitioner/'))) granted = true
      // A user who is a patient is not a clinician, and may access only their own data.
      if (level === 'user' && fhirUser === 'Patient/2') granted ||= isWithin(type, need, id, compartment, '2')
      if (level === 'patient' && patient !== undefined)
        granted ||= isWithin(type, need, id, compartment, patient)
    }
    if (!granted) return covered ? 'not-within' : 'insufficient-scope'
  }
  return 'allowed'
}

function split(text: string, by: string): readonly [string, string?] {
  const at = text.indexOf(by)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

function listPermissions(text: string, query: string | undefined): string {
  if (text === 'read') return query === undefined ? 'rs' : ''
  if (text === 'write') return query === undefined ? 'cud' : ''
  if (text === '*') return query === undefined ? 'cruds' : ''
  return PERMISSIONS.filter(permission => text.includes(permission)).join('') === text ? text : ''
}

function evaluable(query: string, type: string): boolean {
  const known: Record<string, readonly string[]> = {
    category: ['Condition', 'Observation'],
    code: ['Condition', 'Observation', 'Group', 'Questionnaire'],
  }
  return query.split('&').every(pair => known[pair.split('=')[0] ?? '']?.includes(type))
}

function isWithin(
  type: string,
  need: string,
  id: string | undefined,
  compartment: string | undefined,
  patient: string,
): boolean {
  if (type === 'Practitioner' || type === 'Questionnaire') return need === 'r' || need === 'search'
  if (type === 'Group') return false
  if (type === 'Patient' && need === 'c') return true
  if (compartment !== undefined && compartment !== patient) return false
  return type !== 'Patient' || id === undefined || id === patient
}

function decideOutcome(line: string, context: TestDecisionContext): string {
  const decision = decideRequest(line, context)
  return decision.allowed ? 'allowed' : nameGroup(decision.refusal.reason)
}

describe('decide with random scopes and requests', () => {
  it('agrees with a second, naive implementation of the rules (SCOPE-5, USER-3)', () => {
    const tally: Record<string, number> = {}
    fc.assert(
      fc.property(requestCase, context, (question, given) => {
        const expected = decideNaively(question, given)
        tally[expected] = (tally[expected] ?? 0) + 1
        assert.equal(decideOutcome(question.line, given), expected)
      }),
      { numRuns: countRuns(20_000) },
    )
    const tried = Object.values(tally).reduce((sum, count) => sum + count, 0)
    for (const kind of ['allowed', 'not-within', 'insufficient-scope'])
      assert((tally[kind] ?? 0) > tried / 40, `${kind} was hardly tried: ${tally[kind]} of ${tried}`)
  })

  it('never allows less with an additional scope (SCOPE-6)', () => {
    fc.assert(
      fc.property(requestCase, context, scope, ({ line }, given, more) => {
        if (decideOutcome(line, given) === 'allowed')
          assert.equal(decideOutcome(line, { ...given, scope: `${given.scope} ${more}` }), 'allowed')
      }),
      { numRuns: countRuns(5_000) },
    )
  })

  it('never narrows the filter with an additional scope', () => {
    const reference = fc.constantFrom(
      'Patient/1',
      'Patient/2',
      'Practitioner/p1',
      '#x',
      'http://o.example/Patient/1',
    )
    const resource = fc.record({
      resourceType: fc.constantFrom('Condition', 'Observation'),
      id,
      subject: fc.record({ reference }),
      category: fc.constantFrom([{ coding: [{ code: 'lab' }] }], [{ coding: [{ code: 'vital' }] }], []),
    })
    const permission = fc.constantFrom(...PERMISSIONS)
    fc.assert(
      fc.property(resource, permission, context, scope, (held, by, given, more) => {
        const sees = (scopes: string) => {
          const access = computeAccess(makeGrant({ ...given, scope: scopes }), { ...policy, ...given.policy })
          return satisfies(held, access.filterFor(held.resourceType, by), fhirBaseUrl)
        }
        if (sees(given.scope)) assert(sees(`${given.scope} ${more}`))
      }),
      { numRuns: countRuns(5_000) },
    )
  })

  it('grants access to no other patient, whatever the patient/ scopes', () => {
    const wide = fc.array(
      scope.filter(text => text.startsWith('patient/')),
      { minLength: 1, maxLength: 6 },
    )
    const held = fc.constantFrom(
      { resourceType: 'Patient', id: '2' },
      { resourceType: 'Condition', id: '1', subject: { reference: 'Patient/2' } },
      {
        resourceType: 'Observation',
        id: '1',
        subject: { reference: 'Patient/2' },
        focus: [{ reference: 'Patient/1' }],
      },
      { resourceType: 'Group', id: '1', member: [{ entity: { reference: 'Patient/1' } }] },
    )
    fc.assert(
      fc.property(wide, held, fc.constantFrom('r', 'u', 'd', 's'), (scopes, resource, permission) => {
        const access = computeAccess(makeGrant({ scope: scopes.join(' '), patient: '1' }), policy)
        assert(!satisfies(resource, access.filterFor(resource.resourceType, permission), fhirBaseUrl))
      }),
      { numRuns: countRuns(5_000) },
    )
  })
})
