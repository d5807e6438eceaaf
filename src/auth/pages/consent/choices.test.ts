import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { measureGrowth } from '../../../../test/support/growth.ts'
import { parseScopes } from '../../../smart/index.ts'
import { applyApproval, type ConsentChoice, listConsentItems } from '../../oauth/authorize/consent-items.ts'
import { ScopeIndex } from '../../oauth/grants/narrow.ts'
import { describePermissions, describeScope, summarizeScopes } from '../../words/scopes.ts'
import { renderReadRow } from './rows.ts'

const CATEGORY = 'http://terminology.hl7.org/CodeSystem/observation-category'
const LAB = `patient/Observation.rs?category=${CATEGORY}|laboratory`
const VITALS = `patient/Observation.rs?category=${CATEGORY}|vital-signs`
const PROBLEMS = 'http://terminology.hl7.org/CodeSystem/condition-category|problem-list-item'

function boxesOf(choices: readonly ConsentChoice[]): readonly string[] {
  return choices.flatMap(({ scope, parts }) => [scope.text, ...boxesOf(parts)])
}

/** The form with every checkbox checked except these. */
function allBut(grantable: string, ...unticked: readonly string[]): ReadonlySet<string> {
  const boxes = ['offline_access', ...boxesOf(listConsentItems(grantable))]
  for (const one of unticked) assert.ok(boxes.includes(one), `There is no box ${one}`)
  return new Set(boxes.filter(box => !unticked.includes(box)))
}

describe('listConsentItems', () => {
  const values = (scope: string) => listConsentItems(scope).map(asking => asking.scope.text)

  it('separates reading and writing', () => {
    assert.deepEqual(values('patient/Observation.crus'), ['patient/Observation.rs', 'patient/Observation.cu'])
    assert.deepEqual(values('patient/Condition.*'), ['patient/Condition.read', 'patient/Condition.write'])
  })

  it('lists a scope once if another one covers it', () => {
    assert.deepEqual(values('patient/*.rs patient/Patient.rs'), ['patient/*.rs'])
    assert.deepEqual(values('patient/Patient.rs patient/*.rs patient/Patient.c'), [
      'patient/*.rs',
      'patient/Patient.c',
    ])
    assert.deepEqual(values('patient/Patient.rs patient/Patient.read'), ['patient/Patient.rs'])
  })

  it('offers the categories of Condition and Observation, and the kinds of a wildcard', () => {
    const [observation] = listConsentItems('patient/Observation.rs')
    assert.deepEqual(
      observation?.parts.map(part => part.scope.query[0]?.[1].split('|')[1]),
      ['vital-signs', 'laboratory', 'social-history', 'survey', 'sdoh', 'clinical-test'],
    )
    const [condition] = listConsentItems('user/Condition.read')
    assert.deepEqual(
      condition?.parts.map(part => part.scope.text.split('|')[1]),
      ['problem-list-item', 'encounter-diagnosis', 'health-concern'],
    )
    const [wildcard] = listConsentItems('patient/*.rs')
    const kinds = wildcard?.parts.map(part => part.scope.text) ?? []
    assert.ok(kinds.includes('patient/AllergyIntolerance.rs') && kinds.includes('patient/Observation.rs'))
    assert.equal(wildcard?.parts.find(part => part.scope.type === 'Observation')?.parts.length, 6)
    assert.deepEqual(listConsentItems(LAB)[0]?.parts, [])
  })
})

describe('readApprovedScopes', () => {
  const rows: readonly (readonly [
    what: string,
    grantable: string,
    unticked: readonly string[],
    granted: string,
  ])[] = [
    ['nothing unticked', `launch openid patient/*.rs ${LAB}`, [], `launch openid patient/*.rs ${LAB}`],
    [
      'one scope',
      'openid patient/Patient.rs patient/Condition.rs',
      ['patient/Condition.rs'],
      'openid patient/Patient.rs',
    ],
    ['offline access', 'openid offline_access online_access', ['offline_access'], 'openid online_access'],
    ['writing', 'patient/Observation.crus', ['patient/Observation.cu'], 'patient/Observation.rs'],
    ['reading', 'patient/Observation.crus', ['patient/Observation.rs'], 'patient/Observation.cu'],
    ['writing, in v1', 'patient/Condition.*', ['patient/Condition.write'], 'patient/Condition.read'],
    [
      'all categories but two',
      'patient/Observation.rs',
      boxesOf(listConsentItems('patient/Observation.rs')[0]?.parts ?? []).filter(
        box => box !== LAB && box !== VITALS,
      ),
      `${VITALS} ${LAB}`,
    ],
    [
      'all parts',
      'patient/Condition.rs openid',
      boxesOf(listConsentItems('patient/Condition.rs')[0]?.parts ?? []),
      'openid',
    ],
    ['a row: it wins over its parts', 'patient/Observation.rs openid', ['patient/Observation.rs'], 'openid'],
    [
      'two categories of reading, so of writing too',
      'patient/Condition.cruds',
      boxesOf(listConsentItems('patient/Condition.rs')[0]?.parts ?? []).slice(1),
      ['rs', 'cud'].map(they => `patient/Condition.${they}?category=${PROBLEMS}`).join(' '),
    ],
    [
      'all categories of reading, so of writing too',
      'patient/Condition.cruds openid',
      boxesOf(listConsentItems('patient/Condition.rs')[0]?.parts ?? []),
      'openid',
    ],
    ['everything', 'patient/Patient.rs', ['patient/Patient.rs'], ''],
    [
      'a covering scope, so the covered one too',
      'patient/Patient.rs patient/*.rs openid',
      ['patient/*.rs'],
      'openid',
    ],
  ]
  for (const [what, grantable, unticked, granted] of rows) {
    it(`grants "${granted}" without ${what} of "${grantable}"`, () => {
      assert.equal(applyApproval(grantable, allBut(grantable, ...unticked)), granted)
    })
  }

  it('splits a wildcard into kinds if one kind is cleared, even if it was requested twice', () => {
    const asked = 'patient/*.rs patient/Patient.rs patient/Condition.rs'
    const granted = applyApproval(asked, allBut(asked, 'patient/Condition.rs')).split(' ')
    assert.ok(granted.includes('patient/Patient.rs') && granted.includes('patient/Observation.rs'))
    assert.ok(!granted.some(one => one.startsWith('patient/Condition') || one.startsWith('patient/*')))
  })

  it('grants a category of a wildcard', () => {
    const granted = applyApproval('patient/*.rs', new Set(['patient/*.rs', 'patient/Observation.rs', LAB]))
    assert.equal(granted, LAB)
  })

  it('writes no category that it may not read, whatever rows requested it (CONSENT-2)', () => {
    for (const asked of [
      'patient/*.cruds',
      'patient/*.rs patient/*.cud',
      'patient/*.cruds patient/Observation.cu',
    ]) {
      const granted = applyApproval(asked, allBut(asked, LAB)).split(' ')
      const writes = granted.filter(text => /\/(Observation|\*)\.c/.test(text))
      assert.ok(writes.includes(VITALS.replace('.rs', '.cud')), asked)
      assert.ok(
        writes.every(text => text.includes('?category=') && !text.endsWith('laboratory')),
        writes.join(' '),
      )
      assert.ok(granted.includes('patient/Condition.cud'))
    }
    const separate = 'patient/Observation.rs user/Observation.cu'
    assert.match(applyApproval(separate, allBut(separate, LAB)), /user\/Observation\.cu$/)
  })

  it('grants nothing for checkboxes that are not on the page', () => {
    const foreign = new Set(['patient/*.cruds', 'user/*.rs', 'patient/Patient.rs', 'offline_access'])
    assert.equal(applyApproval('openid patient/Condition.rs', foreign), 'openid')
  })

  it('never grants more than the grantable scopes, whatever the form contains (CONSENT-2)', () => {
    const scope = fc
      .tuple(
        fc.constantFrom('patient', 'user'),
        fc.constantFrom('*', 'Patient', 'Condition', 'Observation'),
        fc.oneof(
          fc.subarray(['c', 'r', 'u', 'd', 's'], { minLength: 1 }).map(some => some.join('')),
          fc.constantFrom('read', 'write', '*'),
        ),
      )
      .map(([a, b, c]) => `${a}/${b}.${c}`)
    const scopes = fc.uniqueArray(scope, { minLength: 1, maxLength: 4 }).map(some => some.join(' '))
    fc.assert(
      fc.property(scopes, fc.infiniteStream(fc.boolean()), (grantable, coin) => {
        const boxes = boxesOf(listConsentItems(grantable))
        const ticked = new Set(boxes.filter(() => coin.next().value))
        const granted = parseScopes(applyApproval(grantable, ticked))
        for (const one of granted) assert.ok(new ScopeIndex(parseScopes(grantable)).covers(one), one.text)
        assert.equal(applyApproval(grantable, new Set(boxes)), grantable)
        assert.equal(applyApproval(grantable, new Set()), '')
      }),
    )
  })
})

describe('the cost of consent', () => {
  const granular = (count: number) =>
    Array.from({ length: count }, (_, at) => `patient/Observation.rs?code=x|${at}`).join(' ')

  it('grows no faster than the number of scopes', () => {
    const grown = measureGrowth(count => applyApproval(granular(count), allBut(granular(count))), 25)
    assert.ok(grown < 8, `four times the scopes cost ${grown.toFixed(1)} times as much`)
  })
})

describe('descriptions of scopes', () => {
  const title = (text: string) =>
    parseScopes(text).map(one => one.kind === 'resource' && describeScope(one))[0]

  it('contain the kind, the part, or the type if it has no description', () => {
    assert.equal(title('patient/Condition.rs'), 'Conditions')
    assert.equal(title(LAB), 'Measurements and results: Laboratory results')
    assert.equal(
      title('patient/Observation.rs?status=final'),
      'Measurements and results: only where status is final',
    )
    assert.equal(title('patient/ClinicalImpression.rs'), 'Clinical impression')
  })

  it('name the content of a whole kind, but not beside one of its parts', () => {
    const render = (scope: string) =>
      listConsentItems(scope)
        .map(item => renderReadRow(item, () => true).markup)
        .join('')
    assert.match(render('patient/Observation.rs'), /Vital signs, laboratory results/)
    assert.match(render(LAB), /Laboratory results[\s\S]*Only these entries\./)
    assert.doesNotMatch(render(LAB), /Vital signs/)
  })

  it('say that r includes search if it does (CONSENT-3)', () => {
    assert.equal(describePermissions(new Set(['r']), 'r'), 'Read and search')
    assert.equal(describePermissions(new Set(['r']), 's'), 'Read')
    assert.equal(describePermissions(new Set(['c', 'u', 'd']), 'r'), 'Add, change and delete')
  })

  it('summarize the permissions of an app', () => {
    for (const [scope, text] of [
      ['openid patient/Patient.rs patient/Condition.rs', 'Reads personal details and conditions'],
      [
        'patient/*.rs patient/Patient.rs',
        'Reads everything in the record, including kinds of data that are added later',
      ],
      ['patient/Observation.crs', 'Reads and adds measurements'],
      [
        'patient/Condition.rs patient/Observation.cruds',
        'Reads conditions and measurements; adds, changes and deletes measurements',
      ],
      [
        'patient/Observation.cuds user/Patient.rs',
        'Reads, adds, changes and deletes measurements; reads personal details, in every record you may open',
      ],
      [`${LAB} patient/Condition.rs`, 'Reads laboratory results and conditions'],
      [`${LAB} ${VITALS}`, 'Reads laboratory results and vital signs'],
      [`${LAB} patient/Observation.r`, 'Reads measurements'],
      ['patient/Observation.rs?status=final', 'Reads some measurements'],
      ['patient/Observation.c', 'Adds measurements'],
      ['user/Patient.rs', 'Reads personal details, in every record you may open'],
      ['openid launch', 'Knows who you are; reads no record'],
      ['sallyport/admin', 'Administers this server: users, apps, keys, audit; reads no record'],
      [
        'sallyport/admin.read',
        'Sees users, apps, keys and audit of this server, and changes nothing; reads no record',
      ],
      ['sallyport/audit', 'Adds records to the audit trail; reads no record'],
      [
        'system/Patient.rs __launch-contexts.c',
        'Reads personal details, of every patient; prepares launches',
      ],
    ] as const)
      assert.equal(summarizeScopes(scope), text)
  })
})
