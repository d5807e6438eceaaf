import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { measureGrowth } from '../../test/support/growth.ts'
import type { Resource } from '../fhir/index.ts'
import { mergeValues } from './access.ts'
import type { Constraint } from './access-filter.ts'
import {
  type Access,
  type AccessFilter,
  computeAccess,
  type EnforcementPolicy,
  type Grant,
  grantsBinary,
  type Permission,
  parseScopes,
  satisfies,
} from './index.ts'

const fhirBaseUrl = 'http://localhost:8080/fhir'
const policy: EnforcementPolicy = {
  fhirBaseUrl,
  contexts: ['patient', 'user', 'system'],
  searchPermission: 'r',
}
const user = { type: 'Practitioner', id: 'p1' }

function filter(
  scope: string,
  type: string,
  permission: Permission,
  more: Partial<Grant> = { patient: '1' },
  rules = policy,
): AccessFilter {
  return computeAccess({ scopes: parseScopes(scope), ...more }, rules).filterFor(type, permission)
}

describe('computeAccess', () => {
  it('lets no limited caller write what gives others access, unless the setting names the context of the scope (WRITE-13)', () => {
    for (const permission of ['c', 'u', 'd'] as const) {
      assert.deepEqual(filter('patient/*.cruds', 'RelatedPerson', permission), [])
      assert.deepEqual(filter('patient/RelatedPerson.cruds', 'RelatedPerson', permission), [])
      const relative = { fhirUser: { type: 'RelatedPerson', id: 'r' }, userPatients: ['1'] }
      assert.deepEqual(filter('user/*.cruds', 'RelatedPerson', permission, relative), [])
      assert.equal(filter('user/*.cruds', 'RelatedPerson', permission, { fhirUser: user }), 'everything')
      assert.equal(filter('system/*.cruds', 'RelatedPerson', permission), 'everything')
      const relationContexts = ['patient'] as const
      const allowed = { ...policy, relationContexts }
      assert.notDeepEqual(
        filter('patient/*.cruds', 'RelatedPerson', permission, { patient: '1' }, allowed),
        [],
      )
    }
    assert.notDeepEqual(filter('patient/*.cruds', 'RelatedPerson', 'r'), [])
  })

  it('protects care teams in the same way while a policy gives access by them (WRITE-13)', () => {
    const byTeam = { ...policy, careTeamsGiveAccess: () => true }
    assert.notDeepEqual(filter('patient/*.cruds', 'CareTeam', 'u'), [])
    assert.deepEqual(filter('patient/*.cruds', 'CareTeam', 'u', { patient: '1' }, byTeam), [])
    const ofPanel = { ...byTeam, userFilter: () => [{ patient: '1' }] }
    assert.deepEqual(filter('user/*.cruds', 'CareTeam', 'c', { fhirUser: user }, ofPanel), [])
    assert.notDeepEqual(filter('user/*.cruds', 'CareTeam', 's', { fhirUser: user }, ofPanel), [])
  })

  it('limits patient/ to the patient of the token (PATIENT-1)', () => {
    assert.deepEqual(filter('patient/Condition.rs', 'Condition', 'r'), [{ patient: '1' }])
    assert.deepEqual(filter('patient/*.rs', 'Patient', 's'), [{ patient: '1' }])
    assert.deepEqual(filter('patient/Device.r', 'Device', 'r'), [{ patient: '1' }])
    assert.deepEqual(filter('patient/Binary.r', 'Binary', 'r'), [{ patient: '1' }])
  })

  it('refuses a write that names another patient', () => {
    for (const permission of ['c', 'u', 'd'] as const)
      assert.deepEqual(filter('patient/*.cruds', 'Condition', permission), [
        { patient: '1', exclusive: true },
      ])
  })

  it('grants nothing by patient/ scopes without a patient (PATIENT-1)', () => {
    for (const type of ['Condition', 'Patient', 'Practitioner'])
      assert.deepEqual(filter('patient/*.cruds', type, 'r', {}), [])
    assert.deepEqual(filter('patient/Patient.c', 'Patient', 'c', {}), [])
  })

  it('grants all data by user/ scopes with a fhirUser, and nothing without one (USER-1, USER-2)', () => {
    assert.deepEqual(filter('user/*.cruds', 'Condition', 'r', { patient: '1' }), [])
    assert.equal(filter('user/*.cruds', 'Condition', 'd', { fhirUser: user }), 'everything')
  })

  it('permits reads and searches of shared types under patient/ scopes, and no writes (PATIENT-5)', () => {
    for (const type of [
      'Practitioner',
      'PractitionerRole',
      'Organization',
      'Location',
      'Medication',
      'HealthcareService',
    ]) {
      assert.equal(filter('patient/*.cruds', type, 'r'), 'everything')
      assert.equal(filter('patient/*.cruds', type, 's'), 'everything')
      for (const permission of ['c', 'u', 'd'] as const)
        assert.deepEqual(filter('patient/*.cruds', type, permission), [])
      assert.deepEqual(filter('patient/Condition.rs', type, 'r'), [])
    }
  })

  it('permits reads and searches of conformance resources, which hold no patient data, under patient/ scopes', () => {
    for (const type of [
      'CapabilityStatement',
      'CodeSystem',
      'CompartmentDefinition',
      'ConceptMap',
      'GraphDefinition',
      'MessageDefinition',
      'NamingSystem',
      'OperationDefinition',
      'Questionnaire',
      'SearchParameter',
      'StructureDefinition',
      'StructureMap',
      'TerminologyCapabilities',
      'ValueSet',
    ])
      for (const scope of ['patient/*.cruds', `patient/${type}.cruds`]) {
        for (const permission of ['r', 's'] as const)
          assert.equal(filter(scope, type, permission), 'everything', type)
        for (const permission of ['c', 'u', 'd'] as const)
          assert.deepEqual(filter(scope, type, permission), [], type)
        assert.deepEqual(filter('patient/QuestionnaireResponse.rs', type, 'r'), [])
      }
    assert.deepEqual(filter('patient/*.rs', 'QuestionnaireResponse', 'r'), [{ patient: '1' }])
  })

  it('grants nothing of other types outside the compartment, including Group (PATIENT-6)', () => {
    for (const type of [
      'Group',
      'ImplementationGuide',
      'Library',
      'Bundle',
      'Subscription',
      'Substance',
      'Slot',
    ])
      for (const permission of ['c', 'r', 'u', 'd', 's'] as const)
        assert.deepEqual(filter('patient/*.cruds', type, permission), [], type)
  })

  it('permits creating a Patient by patient/Patient.c, and updating only the patient of the token (WRITE-3)', () => {
    assert.deepEqual(filter('patient/Patient.c', 'Patient', 'c'), [{ refersTo: '1' }])
    assert.deepEqual(filter('patient/Patient.cruds', 'Patient', 'u'), [{ patient: '1', exclusive: true }])
  })

  it('grants write access to a protected type only by a system/ scope that names the type (SCOPE-10)', () => {
    const by = { fhirUser: user }
    for (const permission of ['c', 'u', 'd'] as const) {
      for (const scope of ['user/*.cruds', 'system/*.cruds', 'user/SearchParameter.cruds'])
        assert.deepEqual(filter(scope, 'SearchParameter', permission, by), [], scope)
      assert.equal(filter('system/SearchParameter.cruds', 'SearchParameter', permission), 'everything')
    }
    assert.equal(filter('user/*.rs', 'SearchParameter', 'r', by), 'everything')
    assert.equal(filter('user/*.c', 'Questionnaire', 'c', by), 'everything')
    assert.deepEqual(
      filter('user/*.c', 'Questionnaire', 'c', by, { ...policy, protectedTypes: ['Questionnaire'] }),
      [],
    )
  })

  it('permits a read of the user’s own resource, and no other interaction with it (PATIENT-7)', () => {
    assert.deepEqual(filter('openid', 'Practitioner', 'r', { fhirUser: user }), [{ id: 'p1' }])
    for (const permission of ['c', 'u', 'd', 's'] as const)
      assert.deepEqual(filter('openid', 'Practitioner', permission, { fhirUser: user }), [])
    assert.deepEqual(filter('openid', 'Patient', 'r', { fhirUser: user }), [])
  })

  it('permits a search by r or by s, according to the setting (SCOPE-7)', () => {
    const smart: EnforcementPolicy = { ...policy, searchPermission: 's' }
    assert.deepEqual(filter('patient/Condition.r', 'Condition', 's'), [{ patient: '1' }])
    assert.deepEqual(filter('patient/Condition.s', 'Condition', 's'), [])
    assert.deepEqual(filter('patient/Condition.s', 'Condition', 'r'), [])
    assert.deepEqual(filter('patient/Condition.r', 'Condition', 's', { patient: '1' }, smart), [])
    assert.deepEqual(filter('patient/Condition.s', 'Condition', 's', { patient: '1' }, smart), [
      { patient: '1' },
    ])
    assert.deepEqual(filter('patient/Condition.s', 'Condition', 'r', { patient: '1' }, smart), [])
  })

  it('honours only the configured contexts, and every scope of the portal (SCOPE-8)', () => {
    const narrow: EnforcementPolicy = { ...policy, contexts: ['patient'] }
    assert.deepEqual(filter('user/*.rs system/*.rs', 'Patient', 'r', { fhirUser: user }, narrow), [])
    const portal = { fhirUser: user, clientId: 'sallyport-portal' }
    assert.equal(filter('user/Patient.rs', 'Patient', 's', portal, narrow), 'everything')
    const own = { clientId: 'sallyport-portal' }
    assert.equal(filter('system/Practitioner.rs', 'Practitioner', 's', own, narrow), 'everything')
  })

  it('combines granular scopes with OR, and the parameters of one scope with AND (GRANULAR-1)', () => {
    assert.deepEqual(
      filter(
        'patient/Observation.rs?category=a&status=final patient/Observation.rs?code=b',
        'Observation',
        'r',
      ),
      [
        {
          patient: '1',
          query: [
            ['category', 'a'],
            ['status', 'final'],
          ],
        },
        { patient: '1', query: [['code', 'b']] },
      ],
    )
    assert.deepEqual(filter('system/Observation.rs?category=a', 'Observation', 'r', {}), [
      { query: [['category', 'a']] },
    ])
  })

  it('ignores a granular scope beside an unrestricted one, in either order (GRANULAR-1)', () => {
    for (const scope of [
      'patient/Observation.rs patient/Observation.rs?category=a',
      'patient/Observation.rs?category=a patient/Observation.rs',
    ])
      assert.deepEqual(filter(scope, 'Observation', 'r'), [{ patient: '1' }])
    assert.equal(
      filter('patient/Observation.rs user/Observation.rs', 'Observation', 'r', {
        patient: '1',
        fhirUser: user,
      }),
      'everything',
    )
  })

  it('grants nothing by a search parameter that cannot be evaluated (GRANULAR-3)', () => {
    for (const query of [
      'foo=a',
      'category=a&foo=b',
      'code:in=http://x',
      'subject.name=a',
      '_has:Provenance:target:agent=a',
      '_count=5',
      '_filter=a',
      '_include=Observation:subject',
      'date=yesterday',
      '_sort=date',
      '_elements=id',
      'combo-code-value-quantity=a$1',
    ])
      assert.deepEqual(filter(`patient/Observation.rs?${query}`, 'Observation', 'r'), [], query)
    assert.deepEqual(filter('patient/*.rs?category=a', 'Immunization', 'r'), [])
  })

  it('limits a user to the rights that the policy gives', () => {
    const rights: EnforcementPolicy = {
      ...policy,
      userFilter: ({ id }, type) => (id === 'p1' && type === 'Condition' ? [{ patient: '7' }] : []),
    }
    assert.deepEqual(filter('user/*.rs', 'Condition', 'r', { fhirUser: user }, rights), [{ patient: '7' }])
    assert.deepEqual(filter('user/Condition.rs?code=a', 'Condition', 'r', { fhirUser: user }, rights), [
      { patient: '7', query: [['code', 'a']] },
    ])
    assert.deepEqual(filter('user/*.rs', 'Observation', 'r', { fhirUser: user }, rights), [])
    assert.deepEqual(filter('user/*.rs', 'Condition', 'r', { fhirUser: { ...user, id: 'p2' } }, rights), [])
  })
})

describe('satisfies', () => {
  const read: AccessFilter = [{ patient: '1' }]
  const write: AccessFilter = [{ patient: '1', exclusive: true }]
  const within = (resource: Resource, constraints: AccessFilter = read) =>
    satisfies(resource, constraints, fhirBaseUrl)
  const condition = (reference: string) => ({ resourceType: 'Condition', subject: { reference } })

  it('accepts the patient and the compartment, whatever form the reference has', () => {
    assert(within({ resourceType: 'Patient', id: '1' }))
    assert(!within({ resourceType: 'Patient', id: '2' }))
    for (const reference of ['Patient/1', 'Patient/1/_history/3', `${fhirBaseUrl}/Patient/1`])
      assert(within(condition(reference)), reference)
  })

  for (const reference of [
    'Patient/2',
    'Patient/11',
    'patient/1',
    '#1',
    'urn:uuid:1',
    'http://other.example/fhir/Patient/1',
    'Group/1',
    '1',
    '',
  ])
    it(`does not read ${reference || 'an empty text'} as a reference to Patient/1`, () =>
      assert(!within(condition(reference))))

  it('ignores references that do not put a resource into the compartment (PATIENT-3)', () => {
    assert(
      !within({
        resourceType: 'Observation',
        focus: [{ reference: 'Patient/1' }],
        subject: { reference: 'Patient/2' },
      }),
    )
    assert(
      !within({
        resourceType: 'Patient',
        id: '2',
        link: [{ other: { reference: 'Patient/1' }, type: 'seealso' }],
      }),
    )
    assert(!within({ resourceType: 'Group', member: [{ entity: { reference: 'Patient/1' } }] }))
    assert(!within({ resourceType: 'Condition', subject: { identifier: { value: '1' } } }))
    assert(!within({ resourceType: 'Condition' }))
    assert(
      !within({
        resourceType: 'Condition',
        contained: [{ resourceType: 'Patient', id: '1' }],
        subject: { reference: '#1' },
      }),
    )
  })

  it('finds the patient of a Device in patient and of a Binary in securityContext', () => {
    assert(within({ resourceType: 'Device', patient: { reference: 'Patient/1' } }))
    assert(!within({ resourceType: 'Device' }))
    assert(within({ resourceType: 'Binary', securityContext: { reference: 'Patient/1' } }))
    assert(!within({ resourceType: 'Binary', securityContext: { reference: 'Patient/2' } }))
  })

  it('permits a read of a resource of two patients, and no write', () => {
    const actors = (...references: string[]) => ({
      resourceType: 'Appointment',
      participant: references.map(reference => ({ actor: { reference } })),
    })
    assert(within(actors('Patient/1', 'Patient/2')))
    for (const other of [
      'Patient/2',
      'http://other.example/fhir/Patient/2',
      'urn:uuid:2',
      'Patient?identifier=2',
    ])
      assert(!within(actors('Patient/1', other), write), other)
    for (const other of [
      'Patient/1',
      'Practitioner/2',
      'http://other.example/fhir/Practitioner/2',
      '#contained',
    ])
      assert(within(actors('Patient/1', other), write), other)
  })

  it('requires every parameter of a constraint, and one constraint of the filter', () => {
    const observation = (status: string, code: string) => ({
      resourceType: 'Observation',
      status,
      category: [{ coding: [{ system: 'http://c', code }] }],
      subject: { reference: 'Patient/1' },
    })
    const constraints: AccessFilter = [
      {
        patient: '1',
        query: [
          ['category', 'http://c|lab'],
          ['status', 'final'],
        ],
      },
      { patient: '1', query: [['category', 'http://c|vital']] },
    ]
    assert(within(observation('final', 'lab'), constraints))
    assert(within(observation('preliminary', 'vital'), constraints))
    assert(!within(observation('preliminary', 'lab'), constraints))
    assert(!within(observation('final', 'survey'), constraints))
    assert(!within({ ...observation('final', 'lab'), subject: { reference: 'Patient/2' } }, constraints))
    assert(!within(observation('final', 'lab'), [{ query: [['foo', 'x']] }]))
  })

  it('supports full access, no access, and access to one id', () => {
    const practitioner = { resourceType: 'Practitioner', id: 'p1' }
    assert(within(practitioner, 'everything'))
    assert(!within(practitioner, []))
    assert(within(practitioner, [{ id: 'p1' }]))
    assert(!within(practitioner, [{ id: 'p2' }]))
    assert(!within({ resourceType: 'Practitioner' }, [{ id: 'p1' }]))
  })
})

describe('grantsBinary', () => {
  const document = {
    resourceType: 'DocumentReference',
    id: 'd',
    status: 'current',
    subject: { reference: 'Patient/1' },
    category: [{ text: 'x' }],
    content: [{ attachment: { url: 'Binary/b' } }],
  }
  const test = (scopes: Readonly<Record<string, AccessFilter>>, of: Resource = document) => {
    const access: Access = {
      filterFor: (type, permission) => (permission === 'r' ? (scopes[type] ?? []) : []),
    }
    return grantsBinary(of, 'b', access, 'http://fhir.test/fhir')
  }
  const both = { Binary: [{ patient: '1' }], DocumentReference: [{ patient: '1' }] }

  it('requires access to Binary and to DocumentReference for the same patient', () => {
    assert.equal(test(both), true)
    assert.equal(test({ ...both, DocumentReference: 'everything' }), true)
    assert.equal(test({ Binary: both.Binary }), false)
    assert.equal(test({ DocumentReference: both.DocumentReference }), false)
    assert.equal(test({ ...both, Binary: [{ patient: '2' }] }), false)
    assert.equal(test({ ...both, DocumentReference: [{ patient: '2' }] }), false)
    assert.equal(test(both, { ...document, content: [{ attachment: { url: 'Binary/c' } }] }), false)
  })

  it('applies search constraints to the document, and refuses a Binary under search constraints', () => {
    const filtered = (query: string) => ({ patient: '1', query: [['category:text', query]] as const })
    assert.equal(test({ ...both, DocumentReference: [filtered('x')] }), true)
    assert.equal(test({ ...both, DocumentReference: [filtered('y')] }), false)
    assert.equal(test({ ...both, Binary: [{ patient: '1', query: [['_id', 'b']] }] }), false)
    assert.equal(test({ ...both, Binary: [{ patient: '1', query: [['_id', 'd']] }] }), false)
    assert.equal(test({ ...both, Binary: [{ id: 'd' }] }), false)
  })

  it('accepts access to all Binaries, or to those of a panel', () => {
    const panel = (id: string) => ({ patients: new Set([id]), organizations: [], careTeams: [] })
    assert.equal(test({ ...both, Binary: 'everything' }), true)
    assert.equal(test({ ...both, Binary: [{ panel: panel('1') }] }), true)
    assert.equal(test({ ...both, Binary: [{ panel: panel('2') }] }), false)
  })
})

const BASE = 'http://localhost:8080/fhir'
const of = (patient: string, ...query: readonly (readonly [string, string])[]): Constraint => ({
  patient,
  query,
})
const panel = { patients: new Set(['1']), organizations: [], careTeams: [] }

describe('mergeValues', () => {
  const MERGED: readonly (readonly [
    name: string,
    constraints: readonly Constraint[],
    merged: readonly Constraint[],
  ])[] = [
    [
      'values of one parameter',
      [of('1', ['category', 'a']), of('1', ['category', 'b,c'])],
      [of('1', ['category', 'a,b,c'])],
    ],
    [
      'values of one parameter beside the same others',
      [of('1', ['category', 'a'], ['status', 'final']), of('1', ['status', 'final'], ['category', 'b'])],
      [of('1', ['category', 'a,b'], ['status', 'final'])],
    ],
    [
      'all pairs of values of two parameters',
      ['a', 'b'].flatMap(it => ['x', 'y'].map(code => of('1', ['category', it], ['code', code]))),
      [of('1', ['category', 'a,b'], ['code', 'x,y'])],
    ],
  ]
  for (const [name, constraints, merged] of MERGED)
    it(`merges ${name} into one constraint`, () => assert.deepEqual(mergeValues(constraints), merged))

  const KEPT: Readonly<Record<string, readonly Constraint[]>> = {
    'different patients': [of('1', ['category', 'a']), of('2', ['category', 'b'])],
    'different parameters': [of('1', ['category', 'a']), of('1', ['code', 'b'])],
    'values that differ in two parameters': [
      of('1', ['category', 'a'], ['code', 'x']),
      of('1', ['category', 'b'], ['code', 'y']),
    ],
    'values that all hold': [of('1', ['category', 'a'], ['category', 'b']), of('1', ['category', 'c'])],
    'values of :not, of which none may match': [
      of('1', ['category:not', 'a']),
      of('1', ['category:not', 'b']),
    ],
    'values of :missing': [of('1', ['code:missing', 'true']), of('1', ['code:missing', 'false'])],
    'a value whose last character would escape the comma': [
      of('1', ['category', 'a\\']),
      of('1', ['category', 'b']),
    ],
    'a panel and all patients': [{ panel, query: [['category', 'a']] }, { query: [['category', 'b']] }],
  }
  for (const [name, constraints] of Object.entries(KEPT))
    it(`does not merge ${name}`, () => assert.deepEqual(mergeValues(constraints), constraints))

  it('matches exactly the resources that the separate constraints match', () => {
    const texts = ['a', 'b', 'urn:x|a', '|b', 'urn:x|', 'a\\,b', 'a\\', 'b,a']
    const names = ['category', 'code', 'category:not', 'code:text', 'category:missing']
    const constraints = names.flatMap(name =>
      texts.flatMap(text => [
        of('1', [name, text]),
        of('1', [name, text], ['status', 'final']),
        of('1', [name, text], ['status', 'amended']),
      ]),
    )
    const codes = [[], ['a'], ['b'], ['a', 'b'], ['a,b'], ['a\\'], ['c']]
    const resources = codes.flatMap(category =>
      codes.flatMap(code =>
        ['final', 'amended'].map(
          (status): Resource => ({
            resourceType: 'Observation',
            status,
            subject: { reference: 'Patient/1' },
            category: [{ coding: category.map(it => ({ system: 'urn:x', code: it })) }],
            code: { coding: code.map(it => ({ code: it, display: it })) },
          }),
        ),
      ),
    )
    for (let seed = 0; seed < 200; seed++) {
      const some = constraints.filter((_, at) => (seed * 7919 + at * 104_729 + seed * at) % 17 < 3)
      for (const resource of resources)
        assert.equal(satisfies(resource, mergeValues(some), BASE), satisfies(resource, some, BASE))
    }
  })

  it('takes time proportional to the number of constraints, whatever the number of search parameters', () => {
    const named = new Map(
      [50, 200].map(count => [
        count,
        Array.from({ length: count }, (_, at) => of('1', [`p${at}`, 'x'], [`p${at + 1}`, 'y'])),
      ]),
    )
    const grown = measureGrowth(count => mergeValues(named.get(count) ?? []), 50)
    assert.ok(grown < 8, `four times the constraints cost ${grown.toFixed(1)} times as much`)
  })
})
