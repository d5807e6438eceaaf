import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { measureGrowth } from '../../../../test/support/growth.ts'
import { parseScopes } from '../../../smart/index.ts'
import { grantScope, type ScopeTerms } from './grant-scope.ts'
import { indexAllowedScopes, ScopeIndex } from './narrow.ts'

const terms: ScopeTerms = {
  allowed: '',
  hasPatient: true,
  hasEncounter: true,
  launched: true,
  searchPermission: 'r',
  contexts: ['patient', 'user', 'system'],
}

const LAB = 'http://terminology.hl7.org/CodeSystem/observation-category|laboratory'

/** Requested scopes, allowed scopes, granted scopes, and other differences. */
const rows: readonly (readonly [
  asked: string,
  allowed: string,
  granted: string,
  different?: Partial<ScopeTerms>,
])[] = [
  ['patient/Patient.rs', 'patient/Patient.rs', 'patient/Patient.rs'],
  ['patient/*.cruds', 'patient/*.rs', 'patient/*.rs'],
  ['patient/*.rs', 'patient/Patient.rs patient/Condition.r', 'patient/Patient.rs patient/Condition.r'],
  ['patient/Patient.rs', 'patient/*.cruds', 'patient/Patient.rs'],
  ['patient/Patient.rs', 'patient/Patient.r patient/*.s', 'patient/Patient.rs'],
  ['patient/Patient.cud', 'patient/Patient.rs', ''],
  ['patient/Patient.rs', 'user/Patient.rs', ''],
  ['user/Patient.rs', 'user/*.rs', 'user/Patient.rs'],
  // A v1 scope is granted as v1 if v1 can express it.
  ['patient/Patient.read', 'patient/*.rs', 'patient/Patient.read'],
  ['patient/*.read', 'patient/*.cruds', 'patient/*.read'],
  ['patient/*.write', 'patient/*.cruds', 'patient/*.write'],
  ['patient/Patient.*', 'patient/*.rs', 'patient/Patient.read'],
  ['patient/Patient.*', 'patient/*.cr', 'patient/Patient.cr'],
  ['patient/Patient.rs', 'patient/*.read', 'patient/Patient.rs'],
  // Granular.
  [`patient/Observation.rs?category=${LAB}`, 'patient/*.rs', `patient/Observation.rs?category=${LAB}`],
  [
    'patient/Observation.rs',
    `patient/Observation.rs?category=${LAB}`,
    `patient/Observation.rs?category=${LAB}`,
  ],
  [
    'patient/Observation.rs?status=final',
    'patient/Observation.rs?category=laboratory',
    'patient/Observation.rs?status=final&category=laboratory',
  ],
  ['patient/Observation.rs?a=x%26y', 'patient/*.r', 'patient/Observation.r?a=x%26y'],
  // Types in other case, and unknown types.
  ['patient/patient.rs', 'patient/Patient.rs', 'patient/Patient.rs'],
  ['patient/OBSERVATION.rs?status=final', 'patient/*.rs', 'patient/Observation.rs?status=final'],
  ['patient/Nonsense.rs', 'patient/*.rs', ''],
  // Invalid scopes.
  ['patient/Patient.sr patient/Patient. Patient/Patient.rs patient/Patient.rsx', 'patient/*.cruds', ''],
  ['frob patient/Patient.rs', 'patient/*.rs frob', 'patient/Patient.rs'],
  ['', 'patient/*.rs', ''],
  // AUTHORIZE-7
  ['patient/Patient.s', 'patient/*.cruds', ''],
  ['patient/Patient.cs', 'patient/*.cruds', 'patient/Patient.c'],
  ['patient/Patient.rs', 'patient/*.s', ''],
  ['patient/Patient.s', 'patient/*.cruds', 'patient/Patient.s', { searchPermission: 's' }],
  // patient/ only with a patient, user/ only if it is honoured, system/ never for a user.
  ['patient/*.rs openid', 'patient/*.rs openid', 'openid', { hasPatient: false }],
  ['user/*.rs openid', 'user/*.rs openid', 'openid', { contexts: ['patient'] }],
  ['system/*.rs openid', 'system/*.rs openid', 'openid'],
  // Plain scopes.
  ['launch openid fhirUser', 'openid launch fhirUser', 'launch openid fhirUser'],
  [
    'launch launch/patient openid',
    'launch launch/patient openid',
    'openid',
    { launched: false, hasPatient: false },
  ],
  ['launch/encounter openid', 'launch/encounter openid', 'openid', { hasEncounter: false }],
  ['offline_access openid', 'openid', 'openid'],
  [
    'launch/imagingstudy https://x.example/y __z openid',
    'launch/imagingstudy https://x.example/y __z openid',
    'openid',
  ],
  ['toString constructor openid', 'toString constructor openid', 'openid'],
  ['__proto__ __defineGetter__ openid', '__proto__ __defineGetter__ openid', 'openid'],
  // Once each, in the requested order.
  ['openid patient/Patient.rs openid patient/Patient.rs', 'openid patient/*.rs', 'openid patient/Patient.rs'],
]

describe('grantScope', () => {
  for (const [asked, allowed, granted, different] of rows) {
    it(`grants "${granted}" of "${asked}" with "${allowed}"${different ? ` and ${JSON.stringify(different)}` : ''} (SCOPE-4, AUTHORIZE-5)`, () => {
      assert.equal(grantScope(asked, { ...terms, allowed, ...different }), granted)
    })
  }

  const context = fc.constantFrom('patient', 'user')
  const type = fc.constantFrom('*', 'Patient', 'Condition', 'Observation')
  const permissions = fc.subarray(['c', 'r', 'u', 'd', 's'], { minLength: 1 }).map(some => some.join(''))
  const query = fc.constantFrom('', '?status=final', '?category=x|y&status=final')
  const scope = fc.tuple(context, type, permissions, query).map(([a, b, c, d]) => `${a}/${b}.${c}${d}`)
  const scopes = fc.array(scope, { minLength: 1, maxLength: 4 }).map(some => some.join(' '))

  it('never grants more than both the request and the allow-list cover (AUTHORIZE-5)', () => {
    fc.assert(
      fc.property(scopes, scopes, (asked, allowed) => {
        for (const one of parseScopes(grantScope(asked, { ...terms, allowed, searchPermission: 's' }))) {
          assert.ok(new ScopeIndex(parseScopes(allowed)).covers(one), one.text)
          assert.ok(new ScopeIndex(parseScopes(asked)).covers(one), one.text)
        }
      }),
    )
  })

  it('grants all requested scopes if the allow-list has them', () => {
    fc.assert(
      fc.property(scopes, asked => {
        const granted = parseScopes(grantScope(asked, { ...terms, allowed: asked, searchPermission: 's' }))
        for (const one of parseScopes(asked)) assert.ok(new ScopeIndex(granted).covers(one), one.text)
      }),
    )
  })
})

/** Granular scopes of one type. */
function granular(count: number, name = 'code'): string {
  return Array.from({ length: count }, (_, at) => `patient/Observation.rs?${name}=x|${at}`).join(' ')
}

const parseResources = (text: string) => parseScopes(text).filter(scope => scope.kind === 'resource')

describe('the cost of grantScope', () => {
  it('grants as many scopes as were requested if the client may have each of them', () => {
    assert.equal(grantScope(granular(100), { ...terms, allowed: granular(100) }), granular(100))
  })

  it('grows no faster than the number of scopes', () => {
    const grown = measureGrowth(
      count => grantScope(granular(count), { ...terms, allowed: granular(count) }),
      25,
    )
    assert.ok(grown < 8, `four times the scopes cost ${grown.toFixed(1)} times as much`)
  })

  /** One scope, with its type in many mixtures of upper and lower case. */
  function inManyCases(count: number, rest: string): string {
    const type = (at: number) =>
      [...'observation'].map((letter, bit) => ((at >> bit) & 1 ? letter.toUpperCase() : letter)).join('')
    return Array.from({ length: count }, (_, at) => `patient/${type(at)}.${rest}`).join(' ')
  }

  const inPart: Readonly<Record<string, (count: number) => readonly [asked: string, allowed: string]>> = {
    'by one scope that is registered in many spellings': count => [
      granular(count),
      inManyCases(count, 'rs?status=final'),
    ],
    'and are one scope in many spellings': count => [inManyCases(count, 'rs?status=final'), granular(count)],
  }
  for (const [how, of] of Object.entries(inPart))
    it(`grows no faster for scopes that are covered in part: ${how}`, () => {
      const grown = measureGrowth(count => {
        const [asked, allowed] = of(count)
        grantScope(asked, { ...terms, allowed })
      }, 24)
      assert.ok(grown < 8, `four times the scopes cost ${grown.toFixed(1)} times as much`)
    })

  it('does not compare scopes that share no permission', () => {
    const parsed = new Map(
      [100, 400].map(count => {
        const allowed = granular(count, 'status').replaceAll('.rs', '.cud')
        return [count, { asked: parseResources(granular(count)), allowed: parseResources(allowed) }]
      }),
    )
    const grown = measureGrowth(count => {
      const { asked = [], allowed = [] } = parsed.get(count) ?? {}
      const index = indexAllowedScopes(allowed)
      for (const scope of asked) index.narrow(scope)
    }, 100)
    assert.ok(grown < 8, `four times the scopes cost ${grown.toFixed(1)} times as much`)
  })

  it('stops if requested and registered scopes combine to more than a grant may have', () => {
    const granted = grantScope(granular(100), { ...terms, allowed: granular(100, 'status') }).split(' ')
    assert.ok(granted.length > 100 && granted.length <= 200, String(granted.length))
  })
})

describe('ScopeIndex', () => {
  const rows: readonly (readonly [allowed: string, asked: string, covered: boolean])[] = [
    ['patient/*.rs', 'patient/Patient.r', true],
    ['patient/Patient.rs', 'patient/*.r', false],
    ['patient/Patient.r', 'patient/Patient.rs', false],
    ['patient/Patient.r patient/Patient.s', 'patient/Patient.rs', true],
    ['patient/Observation.rs', 'patient/Observation.rs?status=final', true],
    ['patient/Observation.rs?status=final', 'patient/Observation.rs', false],
    ['patient/Observation.rs?status=final', 'patient/Observation.rs?status=amended', false],
    ['openid', 'openid', true],
    ['openid', 'fhirUser', false],
  ]
  for (const [allowed, asked, covered] of rows) {
    it(`${allowed} ${covered ? 'covers' : 'does not cover'} ${asked}`, () => {
      assert.equal(
        parseScopes(asked).every(one => new ScopeIndex(parseScopes(allowed)).covers(one)),
        covered,
      )
    })
  }
})
