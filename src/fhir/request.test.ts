import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { areGeneral, getAuthorizationHeader, haveCriteria, parseParams } from './request.ts'

describe('getAuthorizationHeader', () => {
  it('returns the header in any case of its name', () => {
    assert.equal(getAuthorizationHeader(['Host', 'a', 'Authorization', 'Bearer x']), 'Bearer x')
    assert.equal(getAuthorizationHeader(['AUTHORIZATION', 'Bearer x']), 'Bearer x')
  })

  it('joins several headers, so that none is read as a token', () => {
    assert.equal(
      getAuthorizationHeader(['authorization', 'Bearer x', 'Authorization', 'Bearer y']),
      'Bearer x, Bearer y',
    )
  })

  it('reads names, not values', () => {
    assert.equal(getAuthorizationHeader(['x', 'authorization', 'y', 'Bearer x']), undefined)
    assert.equal(getAuthorizationHeader([]), undefined)
  })
})

// These parameters control the response: a condition with only these would match everything.
const RESULT = `_format _pretty _summary _elements _sort _count _include _revinclude _include:iterate
  _revinclude:iterate _include:recurse _revinclude:recurse _total _contained _containedType`.split(/\s+/)

describe('haveCriteria', () => {
  it('requires a search criterion with a value', () => {
    for (const name of RESULT) assert.equal(haveCriteria([[name, 'x']]), false, name)
    assert.equal(haveCriteria([['code', '']]), false)
    assert.equal(
      haveCriteria([
        ['_count', '1'],
        ['code', 'x'],
      ]),
      true,
    )
  })
})

describe('areGeneral', () => {
  it('accepts the parameters of every interaction', () => {
    for (const name of RESULT.slice(0, 4)) assert.equal(areGeneral([[name, 'x']]), true, name)
    for (const name of ['_count', 'code', '_cascade']) assert.equal(areGeneral([[name, 'x']]), false, name)
  })
})

describe('parseParams', () => {
  it('keeps order and repetition, and decodes names and values', () => {
    assert.deepEqual(parseParams('a=1&b=%26+x&&a=2=3&c'), [
      ['a', '1'],
      ['b', '& x'],
      ['a', '2=3'],
      ['c', ''],
    ])
    assert.deepEqual(parseParams(''), [])
  })

  it('refuses parameters without a name, malformed encoding and NUL', () => {
    for (const text of ['=x', '%=x', 'a=%zz', 'a=%00', 'a%00=1'])
      assert.equal(parseParams(text), undefined, text)
  })
})
