import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findScopeListFault, parseScope } from './index.ts'

const repeat = (count: number, text: string): string => Array(count).fill(text).join(' ')
const makeScope = (parameters: number): string =>
  `patient/Observation.rs?${Array.from({ length: parameters }, (_, at) => `p${at}=x`).join('&')}`

describe('findScopeListFault', () => {
  it('takes 8,000 characters', () => {
    assert.equal(findScopeListFault('x'.repeat(8000)), undefined)
    assert.equal(findScopeListFault('x'.repeat(8001)), 'is longer than 8000 characters')
  })

  it('takes 100 scopes, however many spaces are between them', () => {
    assert.equal(findScopeListFault(repeat(100, 'openid ')), undefined)
    assert.equal(findScopeListFault(repeat(101, 'openid')), 'has more than 100 scopes')
  })

  it('takes 6 search parameters in a scope', () => {
    assert.equal(findScopeListFault(makeScope(6)), undefined)
    assert.equal(
      findScopeListFault(`openid ${makeScope(7)}`),
      'has a scope with more than 6 search parameters',
    )
  })

  it('takes 50 search parameters in scopes with several, and any number in scopes with one', () => {
    const fifty = `${repeat(9, makeScope(5))} ${makeScope(3)} ${makeScope(2)}`
    const fault = 'has more than 50 search parameters in scopes that combine several'
    assert.equal(findScopeListFault(`${fifty} ${repeat(60, makeScope(1))} openid`), undefined)
    assert.equal(findScopeListFault(`${fifty} ${makeScope(2)}`), fault)
    assert.equal(findScopeListFault(`${repeat(9, makeScope(5))} ${makeScope(6)}`), fault)
  })
})

describe('parseScope, of a granular scope', () => {
  it('grants nothing with more than 6 search parameters', () => {
    assert.notEqual(parseScope(makeScope(6)), undefined)
    assert.equal(parseScope(makeScope(7)), undefined)
  })
})
