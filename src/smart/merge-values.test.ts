import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { measureGrowth } from '../../test/support/growth.ts'
import type { Resource } from '../fhir/index.ts'
import type { Constraint } from './access-filter.ts'
import { mergeValues } from './merge-values.ts'
import { satisfies } from './satisfies.ts'

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
            ...{ resourceType: 'Observation', status, subject: { reference: 'Patient/1' } },
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
