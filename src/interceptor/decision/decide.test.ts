import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  failFor,
  isFor,
  listGatewayOperations,
  nameGroup,
  parsePassedOperation,
  resourceTypes,
} from '../../fhir/index.ts'
import { refuse } from '../refuse.ts'
import { decideRequest, type TestDecisionContext } from '../testing/decide-request.ts'

function decideText(line: string, context: TestDecisionContext): string | undefined {
  const decision = decideRequest(line, context)
  return decision.allowed ? 'allowed' : refuse(decision.refusal).outcome.issue[0]?.details.text
}

const NOT_WITHIN = 'Not within the granted patient, user or filter.'
const one = (scope: string): TestDecisionContext => ({ scope, patient: '1' })

// ROUTE-2
const PERMITTED: [line: string, letter: string][] = [
  ['GET /Condition/1', 'r'],
  ['GET /Condition?patient=1', 'r'],
  ['HEAD /Condition/1', 'r'],
  ['GET /Condition/1/_history', 'r'],
  ['GET /Condition/1/_history/2', 'r'],
  ['GET /Condition/_history', 'r'],
  ['POST /Condition/_search', 'r'],
  ['GET /Patient/1/Condition', 'r'],
  ['POST /Patient/1/Condition/_search', 'r'],
  ['POST /Condition', 'c'],
  ['PUT /Condition/1', 'u'],
  ['PATCH /Condition/1', 'u'],
  ['DELETE /Condition/1', 'd'],
]

describe('decide', () => {
  for (const [line, letter] of PERMITTED)
    it(`requires ${letter} for ${line} (SCOPE-5, ROUTE-2)`, () => {
      for (const other of ['c', 'r', 'u', 'd', 's']) {
        const decision = decideRequest(line, one(`patient/Condition.${other}`))
        assert.equal(decision.allowed, other === letter, other)
        assert.equal(decideRequest(line, one(`patient/*.${other}`)).allowed, other === letter, `* ${other}`)
        assert.equal(
          decideRequest(line, one(`patient/condition.${other}`)).allowed,
          other === letter,
          `case ${other}`,
        )
      }
      assert(!decideRequest(line, one('patient/Observation.cruds')).allowed)
    })

  it('requires s for a search and r for a read if the setting distinguishes them (SCOPE-7)', () => {
    const smart = { searchPermission: 's' } as const
    for (const line of [
      'GET /Condition',
      'POST /Condition/_search',
      'GET /Condition/_history',
      'GET /Patient/1/Condition',
      'GET /?_type=Condition',
      'GET /_history',
    ]) {
      assert(decideRequest(line, { ...one('patient/Condition.s'), policy: smart }).allowed, line)
      assert(!decideRequest(line, { ...one('patient/Condition.cr'), policy: smart }).allowed, line)
    }
    for (const line of ['GET /Condition/1', 'GET /Condition/1/_history', 'GET /Condition/1/_history/1']) {
      assert(decideRequest(line, { ...one('patient/Condition.r'), policy: smart }).allowed, line)
      assert(!decideRequest(line, { ...one('patient/Condition.s'), policy: smart }).allowed, line)
    }
  })

  // ERROR-2, ERROR-3
  const TEXTS: Record<string, string> = {
    'GET /Condition?patient=1': 'GET on Condition. Required: patient/Condition.r or patient/*.rs',
    'GET /Condition/1': 'GET on Condition. Required: patient/Condition.r or patient/*.rs',
    'HEAD /Condition/1': 'GET on Condition. Required: patient/Condition.r or patient/*.rs',
    'POST /Condition': 'POST on Condition. Required: patient/Condition.c or patient/*.c',
    'PUT /Condition/1': 'PUT on Condition. Required: patient/Condition.u or patient/*.u',
    'PATCH /Condition/1': 'PATCH on Condition. Required: patient/Condition.u or patient/*.u',
    'PATCH /Condition?code=1': 'PATCH on Condition. Required: patient/Condition.u or patient/*.u',
    'DELETE /Condition/1': 'DELETE on Condition. Required: patient/Condition.d or patient/*.d',
    'POST /Condition/_search': 'POST on Condition. Required: patient/Condition.r or patient/*.rs',
    'GET /Patient/1/Condition': 'GET on Condition. Required: patient/Condition.r or patient/*.rs',
    'GET /': 'GET on *. Required: patient/*.r or patient/*.rs',
    'GET /_history': 'GET on *. Required: patient/*.r or patient/*.rs',
    'GET /?_type=Condition,Patient': 'GET on *. Required: patient/*.r or patient/*.rs',
    'POST /_search': 'POST on *. Required: patient/*.r or patient/*.rs',
    'GET /Patient/1/$everything': 'GET on Patient. Required: patient/Patient.r or patient/*.rs',
    'POST /Patient/$validate': 'POST on Patient. Required: patient/Patient.c or patient/*.c',
  }
  for (const [line, text] of Object.entries(TEXTS))
    it(`refuses ${line} without a scope with the specified text (ERROR-2, ERROR-3)`, () => {
      assert.equal(decideText(line, one('openid launch fhirUser')), `Insufficient scope for ${text}`)
    })

  it('names the search permission that is set (ERROR-3)', () => {
    assert.equal(
      decideText('POST /Condition/_search', { ...one('openid'), policy: { searchPermission: 's' } }),
      'Insufficient scope for POST on Condition. Required: patient/Condition.s or patient/*.rs',
    )
  })

  it('challenges with the first scope that the text names, and lists scopes that would permit the request (ERROR-3)', () => {
    const decision = decideRequest('GET /Condition?patient=1', one('patient/Observation.rs'))
    assert(!decision.allowed)
    const { status, headers, outcome, hint } = refuse(decision.refusal)
    assert.equal(status, 403)
    assert.equal(
      headers['www-authenticate'],
      'Bearer error="insufficient_scope", scope="patient/Condition.r"',
    )
    assert.equal(outcome.issue[0]?.code, 'forbidden')
    assert.equal(
      hint,
      'Any one of these scopes would permit it: patient/Condition.r, patient/*.rs, system/Condition.r, system/*.rs; a user/ scope needs a fhirUser in the token',
    )
  })

  it('responds with 403 without a challenge if a covering scope does not permit the request (ERROR-4)', () => {
    for (const [line, context] of [
      ['GET /Patient/2', one('patient/*.cruds')],
      ['GET /Patient/2/_history', one('patient/*.cruds')],
      ['GET /Patient/2/Condition', one('patient/*.cruds')],
      ['GET /Patient/2/*', one('patient/*.cruds')],
      ['POST /Patient/2/_search', one('patient/*.cruds')],
      ['GET /Patient/2/$everything', one('patient/*.cruds')],
      ['PUT /Patient/2', one('patient/*.cruds')],
      ['PATCH /Patient/2', one('patient/*.cruds')],
      ['DELETE /Patient/2', one('patient/*.cruds')],
      ['POST /Practitioner', one('patient/*.cruds')],
      ['PUT /Organization/1', one('patient/*.cruds')],
      ['GET /Group/1', one('patient/*.cruds')],
      ['GET /Group', one('patient/*.cruds')],
      ['PUT /Questionnaire/1', one('patient/*.cruds')],
      ['GET /?_type=Condition,Group', one('patient/*.cruds')],
      ['GET /Condition/1', { scope: 'patient/*.cruds' }],
      ['GET /', { scope: 'patient/*.cruds' }],
      ['GET /Condition/1', { scope: 'user/*.cruds', patient: '1' }],
      ['GET /Observation', one('patient/Observation.rs?foo=bar')],
    ] as const) {
      assert.equal(decideText(line, context), NOT_WITHIN, line)
      const decision = decideRequest(line, context)
      assert(!decision.allowed)
      assert.deepEqual(refuse(decision.refusal).headers, {})
      assert.equal(refuse(decision.refusal).status, 403)
    }
  })

  for (const line of [
    'GET /$export',
    'POST /$graphql',
    'GET /Patient/$everything',
    'POST /Patient/$match',
    'POST /Condition/1/$everything',
    'POST /Patient/1/$meta-add',
    'POST /Patient/1/$expunge',
    'POST /$validate',
    'GET /ValueSet/$expand',
    'GET /Patient/1/$summary',
  ])
    it(`refuses ${line}, which is not offered, and does not mention scopes (OPERATION-1)`, () => {
      const all = {
        scope: 'patient/*.cruds user/*.cruds system/*.cruds',
        patient: '1',
        fhirUser: 'Practitioner/1',
      }
      const name = line.slice(line.indexOf('$'))
      for (const context of [all, one('openid'), { scope: 'system/*.cruds' }]) {
        const decision = decideRequest(line, context)
        assert(!decision.allowed)
        const { status, headers, outcome, hint } = refuse(decision.refusal)
        const { severity, code, details, diagnostics } = outcome.issue[0] ?? assert.fail()
        assert.deepEqual([status, headers, severity, code], [404, {}, 'error', 'not-supported'])
        assert.deepEqual(
          [details.text, diagnostics, hint],
          [`The operation ${name} is not supported here.`, details.text, undefined],
        )
      }
    })

  it('permits the listed operations with a sufficient grant (OPERATION-5)', () => {
    assert(decideRequest('GET /Patient/1/$everything', one('patient/Patient.rs')).allowed)
    assert(decideRequest('POST /Patient/1/$everything', one('patient/*.rs')).allowed)
    assert(
      !decideRequest('POST /Patient/1/$everything', one('patient/Condition.rs patient/Patient.c')).allowed,
    )
    for (const letter of ['c', 'r', 'u', 'd'])
      assert(decideRequest('POST /Patient/$validate', one(`patient/Patient.${letter}`)).allowed)
    assert(decideRequest('POST /Patient/1/$validate', one('patient/Patient.r')).allowed)
    assert(!decideRequest('POST /Patient/1/$validate', one('patient/Patient.c')).allowed)
  })

  it('checks operations that the gateway forwards like $everything, or by the whole type (OPERATION-2)', () => {
    const policy = { operations: listGatewayOperations() }
    const through = (line: string, scope: string) => decideRequest(line, { ...one(scope), policy })
    for (const [line, type] of [
      ['GET /Encounter/1/$everything', 'Encounter'],
      ['GET /Observation/$lastn', 'Observation'],
      ['GET /DocumentReference/$docref?patient=1', 'DocumentReference'],
      ['GET /Patient/1/$summary', 'Patient'],
      ['GET /Composition/1/$document', 'Composition'],
      ['GET /ValueSet/$expand?url=x', 'ValueSet'],
      ['POST /ValueSet/1/$validate-code', 'ValueSet'],
      ['GET /CodeSystem/$lookup', 'CodeSystem'],
      ['POST /CodeSystem/$validate-code', 'CodeSystem'],
      ['GET /ConceptMap/1/$translate', 'ConceptMap'],
    ] as const) {
      assert(through(line, `patient/${type}.rs`).allowed, line)
      assert(through(line, 'patient/*.rs').allowed, line)
      const refused = through(line, 'patient/Condition.rs')
      assert(!refused.allowed && refused.refusal.reason === 'insufficient-scope', line)
    }
    for (const line of ['GET /Patient/2/$summary', 'GET /Patient/2/$everything'])
      assert(!through(line, 'patient/*.rs').allowed, line)
    const filtered = through('GET /ValueSet/$expand?url=x', 'patient/ValueSet.rs?url=y')
    assert(!filtered.allowed)
    assert.deepEqual(filtered.refusal, failFor('operation-needs-whole-type', { type: 'ValueSet' }))
    assert(!through('GET /ValueSet/$lookup', 'patient/*.rs').allowed)
  })

  it('permits an operation by the whole type with the permission to read or to search it', () => {
    const policy = { operations: listGatewayOperations(), searchPermission: 's' } as const
    for (const letter of ['r', 's', 'c'])
      assert.equal(
        decideRequest('GET /ValueSet/$expand?url=x', { ...one(`system/ValueSet.${letter}`), policy }).allowed,
        letter !== 'c',
        letter,
      )
  })

  it('refuses an operation on no type that needs permissions on a type', () => {
    const rule = { name: '$x', levels: ['system'], types: 'any' } as const
    for (const needs of [{ kind: 'all', permissions: ['r'] }, { kind: 'whole-type' }] as const) {
      const decision = decideRequest('GET /$x', {
        scope: 'system/*.cruds',
        policy: { operations: [{ ...rule, needs }] },
      })
      assert(!decision.allowed)
      assert.deepEqual(decision.refusal, failFor('unsupported-operation', { name: '$x' }))
    }
  })

  describe('with an operation that the site permits', () => {
    const passed = ['$meta', 'Patient/$match:read', 'Patient/$merge'].map(it => parsePassedOperation(it))
    const policy = { operations: listGatewayOperations(passed.filter(it => it !== undefined)) }
    const decided = (line: string, scope: string, more: object = {}) => {
      const decision = decideRequest(line, { scope, policy, ...more })
      return decision.allowed ? 'allowed' : nameGroup(decision.refusal.reason)
    }

    it('requires access to all data, and write access for a POST that may write (GATEWAY-15)', () => {
      for (const line of [
        'GET /$meta',
        'GET /Patient/$meta',
        'GET /Patient/1/$meta',
        'POST /Patient/$match',
      ]) {
        assert.equal(decided(line, 'system/*.rs'), 'allowed', line)
        assert.equal(decided(line, 'user/*.rs', { fhirUser: 'Practitioner/1' }), 'allowed', line)
        for (const scope of ['patient/*.cruds', 'system/Patient.cruds', 'system/*.cud', 'openid'])
          assert.equal(decided(line, scope, { patient: '1' }), 'not-within', `${line} ${scope}`)
      }
      for (const line of ['POST /$meta', 'POST /Patient/1/$merge']) {
        assert.equal(decided(line, 'system/*.rs'), 'not-within', line)
        assert.equal(decided(line, 'system/*.cruds'), 'allowed', line)
      }
    })

    it('takes one scope for each type as access to all data', () => {
      const scope = resourceTypes.map(type => `system/${type}.rs`).join(' ')
      assert.equal(decided('GET /$meta', scope), 'allowed')
      assert.equal(decided('GET /$meta', scope.replace('system/Patient.rs', '')), 'not-within')
    })

    it('says which scope would permit it', () => {
      const hint = (line: string) => {
        const decision = decideRequest(line, { scope: 'system/Patient.rs', policy })
        return !decision.allowed && refuse(decision.refusal).hint
      }
      const text = 'This operation needs access to all data, such as'
      assert.equal(hint('GET /$meta'), `${text} system/*.rs`)
      assert.equal(hint('POST /$meta'), `${text} system/*.cruds`)
    })

    it('permits it only on the configured types', () => {
      for (const line of ['GET /$match', 'GET /Practitioner/$match', 'POST /$merge', 'GET /$meta-add'])
        assert.equal(decided(line, 'system/*.cruds'), 'unsupported-operation', line)
    })
  })

  it('requires the search permission too for a conditional write (ROUTE-3)', () => {
    const headers = { 'if-none-exist': 'code=1' }
    for (const [line, letter] of [
      ['PUT /Condition?code=1', 'u'],
      ['PATCH /Condition?code=1', 'u'],
      ['DELETE /Condition?code=1', 'd'],
      ['POST /Condition', 'c'],
    ] as const) {
      const method = line.split(' ')[0]
      assert.equal(
        decideText(line, { ...one(`patient/Condition.${letter}`), ...(letter === 'c' && { headers }) }),
        `Insufficient scope for ${method} on Condition. Required: patient/Condition.r or patient/*.rs`,
      )
      const both = one(`patient/Condition.${letter} patient/Condition.r`)
      assert(decideRequest(line, letter === 'c' ? { ...both, headers } : both).allowed, line)
    }
  })

  it('requires access to every type that a chain searches (ROUTE-4)', () => {
    const chains = {
      'GET /Condition?subject:Patient.name=a': 'Patient',
      'GET /Condition?patient.name=a': 'Patient',
      'GET /Condition?encounter.service-provider.name=a': 'Encounter',
      'GET /Patient?_has:Observation:patient:code=a': 'Observation',
      'GET /Patient?_has:Observation:patient:_has:AuditEvent:entity:action=a': 'Observation',
      'DELETE /Condition?subject:Patient.name=a': 'Patient',
    }
    for (const [line, type] of Object.entries(chains)) {
      const own = one('patient/Condition.rd')
      const scope = line.includes('/Patient?') ? one('patient/Patient.rd') : own
      const method = line.split(' ')[0]
      assert.equal(
        decideText(line, scope),
        `Insufficient scope for ${method} on ${type}. Required: patient/${type}.r or patient/*.rs`,
      )
      assert(decideRequest(line, one('patient/*.rd')).allowed, line)
    }
    // One target type of the chain is enough: the server searches only types within the grant.
    assert(
      decideRequest('GET /Observation?subject.name=a', one('patient/Observation.rs patient/Patient.rs'))
        .allowed,
    )
    assert(
      !decideRequest(
        'GET /Condition?encounter.service-provider.name=a',
        one('patient/Condition.rs patient/Encounter.rs'),
      ).allowed,
    )
    assert.equal(
      decideText('GET /?_has:Observation:patient:code=a', one('patient/*.rs')),
      'Cannot follow a chain in a search of several types: search one type.',
    )
  })

  it('limits included resources instead of refusing the search (ROUTE-5)', () => {
    const decision = decideRequest(
      'GET /Condition?_include=Condition:subject&_revinclude=Provenance:target',
      one('patient/Condition.rs'),
    )
    assert(decision.allowed)
    assert.deepEqual(decision.access.filterFor('Patient', 's'), [])
    assert.deepEqual(decision.access.filterFor('Condition', 's'), [{ patient: '1' }])
  })

  it('refuses a chain that takes too many steps to read', () => {
    const chains = Array(300).fill('focus.focus.focus.identifier=x').join('&')
    for (const scope of ['patient/Observation.rs', 'patient/*.rs', 'system/*.rs'])
      assert.match(
        decideText(`GET /Observation?${chains}&subject:Patient.name=x`, one(scope)) ?? '',
        /2500 steps/,
      )
    const decision = decideRequest(`GET /Observation?${chains}`, one('system/*.rs'))
    assert(!decision.allowed)
    assert.equal(decision.refusal.reason, 'search-steps-too-many')
  })

  it('reports the deciding scope and its access filter', () => {
    for (const [line, scope, by, within] of [
      ['GET /Condition/1', 'openid patient/*.rs', 'patient/*.rs', [{ patient: '1' }]],
      ['GET /Condition/1', 'patient/Condition.rs system/*.rs', 'system/*.rs', 'everything'],
      [
        'GET /Observation',
        'patient/Observation.rs?category=a',
        'patient/Observation.rs?category=a',
        [{ patient: '1', query: [['category', 'a']] }],
      ],
      [
        'GET /Observation',
        'patient/Observation.rs?category=a patient/Observation.rs?category=b',
        'patient/Observation.rs?category=a',
        [
          { patient: '1', query: [['category', 'a']] },
          { patient: '1', query: [['category', 'b']] },
        ],
      ],
      ['GET /Practitioner/1', 'patient/*.rs', 'patient/*.rs', 'everything'],
      ['GET /', 'patient/Practitioner.rs patient/Condition.rs', 'patient/Condition.rs', [{ patient: '1' }]],
    ] as const) {
      const decision = decideRequest(line, one(scope))
      assert(decision.allowed && typeof decision.by === 'object')
      assert.equal(decision.by.text, by)
      assert.deepEqual(decision.within, within)
    }
  })

  it('permits reading the user’s own resource without a scope, and no other (PATIENT-7)', () => {
    const context: TestDecisionContext = {
      scope: 'openid fhirUser',
      patient: '1',
      fhirUser: 'Practitioner/p1',
    }
    const decision = decideRequest('GET /Practitioner/p1', context)
    assert(decision.allowed)
    assert.equal(decision.by, 'fhirUser')
    assert.match(
      decideText('GET /Practitioner/p2', context) ?? '',
      /^Insufficient scope for GET on Practitioner\./,
    )
    assert.match(decideText('GET /Practitioner?_id=p1', context) ?? '', /^Insufficient scope/)
    assert.match(decideText('PUT /Practitioner/p1', context) ?? '', /^Insufficient scope/)
    const patient = decideRequest('GET /Patient/9', {
      scope: 'patient/Patient.rs',
      patient: '1',
      fhirUser: 'Patient/9',
    })
    assert(patient.allowed)
    assert.equal(patient.by, 'fhirUser')
  })

  it('explains what would permit the request, from the token and the request alone', () => {
    const HINTS: [line: string, context: TestDecisionContext, hint: RegExp][] = [
      ['GET /Condition/1', { scope: 'patient/*.rs' }, /has no patient claim/],
      ['GET /Condition/1', { scope: 'user/*.rs', patient: '1' }, /has no fhirUser claim/],
      ['GET /Patient/2', one('patient/*.rs'), /only the patient of the token/],
      [
        'PUT /Practitioner/1',
        one('patient/*.cruds'),
        /can read Practitioner, which is shared, but never write/,
      ],
      ['DELETE /Group/1', one('patient/*.cruds'), /No patient\/ scope covers Group/],
      ['GET /Group/1', one('patient/*.cruds'), /No patient\/ scope covers Group/],
      ['GET /Observation', one('patient/Observation.rs?foo=1'), /its filter cannot be evaluated/],
      [
        'GET /Observation/1',
        { scope: 'patient/*.rs user/*.rs' },
        /scope without a filter, or with a wider context/,
      ],
      [
        'GET /Observation/1',
        { scope: 'user/*.rs?foo=1', fhirUser: 'Practitioner/1' },
        /scope without a filter/,
      ],
    ]
    for (const [line, context, expected] of HINTS) {
      const decision = decideRequest(line, context)
      assert(!decision.allowed && isFor('not-within', decision.refusal.reason), line)
      assert.match(refuse(decision.refusal).hint ?? '', expected, `${line} ${context.scope}`)
    }
  })

  it('distinguishes a scope that grants nothing from a missing scope, also for all types', () => {
    assert.equal(decideText('GET /', { scope: 'patient/Condition.rs' }), NOT_WITHIN)
    assert.match(
      decideText('GET /', { scope: 'patient/Condition.c', patient: '1' }) ?? '',
      /^Insufficient scope for GET on \*/,
    )
  })

  it('names the first covering scope of a refused request', () => {
    const decision = decideRequest('GET /Patient/2', one('patient/*.rs'))
    assert(!decision.allowed && isFor('not-within', decision.refusal.reason))
    assert.equal(refuse(decision.refusal).by, 'patient/*.rs')
  })

  it('permits reading a resource that may belong to the only patient of a panel', () => {
    const panel = { patients: new Set(['7']), organizations: [], careTeams: [] }
    const context = {
      scope: 'user/*.rs',
      fhirUser: 'Practitioner/p1',
      policy: { userFilter: () => [{ panel }] },
    }
    assert(decideRequest('GET /Condition/1', context).allowed)
    assert(decideRequest('GET /Patient/7', context).allowed)
    assert(!decideRequest('GET /Patient/8', context).allowed)
  })

  it('requires a system/ scope that names a type which changes how the server works', () => {
    const text = 'Insufficient scope for POST on SearchParameter. Required: system/SearchParameter.c'
    assert.equal(decideText('POST /SearchParameter', one('system/*.cruds')), text)
    assert.equal(decideText('POST /SearchParameter', one('system/SearchParameter.c')), 'allowed')
  })

  it('accepts any of several limits of a user', () => {
    const rights = { userFilter: () => [{ patient: '1' }, { patient: '2' }] }
    const context: TestDecisionContext = { scope: 'user/*.rs', fhirUser: 'Practitioner/p1', policy: rights }
    for (const id of ['1', '2']) assert(decideRequest(`GET /Patient/${id}`, context).allowed)
    assert.equal(decideText('GET /Patient/3', context), NOT_WITHIN)
    assert.equal(decideText('GET /Patient/3/Condition', context), NOT_WITHIN)
  })

  it('permits metadata and the SMART configuration to everyone, without access to data (BEARER-3)', () => {
    for (const line of ['GET /metadata', 'GET /.well-known/smart-configuration']) {
      const decision = decideRequest(line, { scope: '' })
      assert(decision.allowed)
      assert.equal(decision.by, 'public')
      assert.deepEqual(decision.access.filterFor('Patient', 'r'), [])
    }
  })

  it('permits a Bundle, whose entries are checked one by one (BUNDLE-1)', () => {
    const decision = decideRequest('POST /', one('patient/Condition.rs'))
    assert(decision.allowed)
    assert.equal(decision.by, 'entries')
  })

  it('refuses a Bundle if no scope could permit any entry (BUNDLE-1)', () => {
    for (const scope of ['openid fhirUser', 'launch/patient offline_access', '']) {
      const decision = decideRequest('POST /', one(scope))
      assert(!decision.allowed, scope)
      const { status, outcome } = refuse(decision.refusal)
      assert.equal(status, 403)
      assert.match(outcome.issue[0]?.details.text ?? '', /^Insufficient scope for POST on \*\. /)
    }
  })

  it('refuses a Bundle of a token without the patient that its scopes need', () => {
    const { patient: _, ...unbound } = one('patient/*.cruds')
    const decision = decideRequest('POST /', unbound)
    assert(!decision.allowed)
    assert(isFor('not-within', decision.refusal.reason))
  })

  it('responds to an unreadable request with its status and the reason (ROUTE-6)', () => {
    const decision = decideRequest('GET /Patient/%31', one('patient/*.cruds'))
    assert(!decision.allowed)
    const { status, outcome } = refuse(decision.refusal)
    assert.equal(status, 400)
    assert.equal(outcome.issue[0]?.details.text, 'Cannot read path: it has an encoded character.')
  })
})
