import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { describeError, hasCode, isTimeout, scrub } from './index.ts'

const JWT = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl'
const TOKEN = 'q3vN0mY8yYxv1d5l2iZ0m3nq0m1c9a8b7c6d5e4f3g2'

describe('scrub', () => {
  const cases: readonly (readonly [text: string, scrubbed: string])[] = [
    [`Cannot verify ${JWT}`, 'Cannot verify [token]'],
    [`Cannot verify ${JWT}, at all`, 'Cannot verify [token], at all'],
    ['Bearer abc.def~+/=', 'Bearer [secret]'],
    ['basic dXNlcjpwYXNz', 'basic [secret]'],
    ['GET http://h/launch?iss=x&launch=abc&x=1', 'GET http://h/launch?iss=x&launch=[secret]&x=1'],
    ['code=abc state=def', 'code=[secret] state=[secret]'],
    ['Client_Secret=abc', 'Client_Secret=[secret]'],
    ['postgres://me:pass@db:5432/x', 'postgres://[secret]@db:5432/x'],
    [`Unknown launch token ${TOKEN}.`, `Unknown launch token ${TOKEN}.`.replace(TOKEN, '[secret]')],
    [`(${TOKEN})`, '([secret])'],
    ['connect ECONNREFUSED 127.0.0.1:5432', 'connect ECONNREFUSED 127.0.0.1:5432'],
    ['at file:///a/node_modules/x/index.js:1:2', 'at file:///a/node_modules/x/index.js:1:2'],
    [
      'Practitioner/3f8c1c2e-8f57-4b3a-9d3c-5d1a1e0c9a77',
      'Practitioner/3f8c1c2e-8f57-4b3a-9d3c-5d1a1e0c9a77',
    ],
  ]
  for (const [text, scrubbed] of cases) {
    it(`turns ${JSON.stringify(text)} into ${JSON.stringify(scrubbed)}`, () => {
      assert.equal(scrub(text), scrubbed)
    })
  }
})

describe('describeError', () => {
  const cases: readonly (readonly [error: unknown, description: string])[] = [
    [new Error(`Cannot verify ${JWT}`), 'Cannot verify [token]'],
    ['code=1', 'code=[secret]'],
    [new TypeError('fetch failed', { cause: new Error(`Bearer ${JWT}`) }), 'fetch failed: Bearer [token]'],
    [new TypeError('fetch failed'), 'fetch failed'],
    [new Error('Cannot read', { cause: new Error('a cause') }), 'Cannot read'],
    [new AggregateError([new Error('connect ECONNREFUSED'), new Error('another')]), 'connect ECONNREFUSED'],
    [new AggregateError([new Error('one')], 'All failed'), 'All failed'],
  ]
  for (const [error, description] of cases)
    it(`describes ${String(error)} as ${description}`, () => {
      assert.equal(describeError(error), description)
    })
})

describe('hasCode', () => {
  it('compares the code of an error, and of nothing else', () => {
    assert.equal(hasCode(Object.assign(new Error('gone'), { code: 'ENOENT' }), 'ENOENT'), true)
    assert.equal(hasCode(new Error('ENOENT'), 'ENOENT'), false)
    assert.equal(hasCode({ code: 'ENOENT' }, 'ENOENT'), false)
  })
})

describe('isTimeout', () => {
  it('finds a time-out among the causes', () => {
    const slow = Object.assign(new Error('slow'), { code: 'UND_ERR_HEADERS_TIMEOUT' })
    assert.equal(isTimeout(new TypeError('fetch failed', { cause: slow })), true)
    assert.equal(isTimeout(new DOMException('late', 'TimeoutError')), true)
    assert.equal(isTimeout(new TypeError('fetch failed', { cause: new Error('refused') })), false)
    assert.equal(isTimeout('TimeoutError'), false)
  })
})
