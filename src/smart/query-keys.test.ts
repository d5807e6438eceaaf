import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { getImpliedKeys, getQueryKey } from './index.ts'

type Query = readonly (readonly [string, string])[]
const makeQuery = (count: number): Query =>
  Array.from({ length: count }, (_, at): readonly [string, string] => [`p${at}`, 'x'])

describe('getQueryKey', () => {
  it('depends neither on the order of the search parameters nor on repetition', () => {
    const query: Query = [...makeQuery(2)]
    assert.equal(getQueryKey(query), getQueryKey([...query, ...query].toReversed()))
    assert.notEqual(getQueryKey(query), getQueryKey(makeQuery(1)))
    assert.notEqual(getQueryKey([['a', 'b']]), getQueryKey([['b', 'a']]))
  })
})

describe('getImpliedKeys', () => {
  it('returns the key of each subset of the search parameters', () => {
    const query = makeQuery(2)
    const subsets = [[], query.slice(0, 1), query.slice(1), query].map(getQueryKey)
    assert.deepEqual(new Set(getImpliedKeys(query)), new Set(subsets))
    assert.equal(getImpliedKeys(query).length, 4)
  })

  it('returns every subset of six search parameters, and only the full set of seven', () => {
    assert.equal(getImpliedKeys(makeQuery(6)).length, 64)
    assert.deepEqual(getImpliedKeys(makeQuery(7)), [getQueryKey(makeQuery(7))])
  })
})
