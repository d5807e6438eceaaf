import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { impliedKeys, queryKey } from './index.ts'

type Query = readonly (readonly [string, string])[]
const makeQuery = (count: number): Query =>
  Array.from({ length: count }, (_, at): readonly [string, string] => [`p${at}`, 'x'])

describe('queryKey', () => {
  it('depends neither on the order of the search parameters nor on repetition', () => {
    const query: Query = [...makeQuery(2)]
    assert.equal(queryKey(query), queryKey([...query, ...query].toReversed()))
    assert.notEqual(queryKey(query), queryKey(makeQuery(1)))
    assert.notEqual(queryKey([['a', 'b']]), queryKey([['b', 'a']]))
  })
})

describe('impliedKeys', () => {
  it('is the key of each subset of the search parameters', () => {
    const query = makeQuery(2)
    const subsets = [[], query.slice(0, 1), query.slice(1), query].map(queryKey)
    assert.deepEqual(new Set(impliedKeys(query)), new Set(subsets))
    assert.equal(impliedKeys(query).length, 4)
  })

  it('has every subset of six search parameters, and only the whole of seven', () => {
    assert.equal(impliedKeys(makeQuery(6)).length, 64)
    assert.deepEqual(impliedKeys(makeQuery(7)), [queryKey(makeQuery(7))])
  })
})
