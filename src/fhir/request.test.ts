import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Interaction } from './interaction.ts'
import { SEARCH_CHARACTERS, SEARCH_VALUES } from './limits.ts'
import {
  acceptsJson,
  areGeneral,
  getAuthorizationHeader,
  haveCriteria,
  type Preferences,
  parseParams,
  readPageParams,
  readPreconditions,
  readPreferences,
} from './request.ts'

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

  it('refuses too many characters, parameters or values', () => {
    const most = [
      'x'.repeat(SEARCH_CHARACTERS),
      ...['a&', 'a,', '%2C'].map(it => it.repeat(SEARCH_VALUES - 1)),
    ]
    for (const text of most) assert.ok(parseParams(text), text.slice(0, 4))
    const more = [`${most[0]}x`, ...['a&', 'a,', '%2C'].map(it => it.repeat(SEARCH_VALUES))]
    for (const text of more) assert.equal(parseParams(text), undefined, text.slice(0, 4))
  })
})

describe('readPreferences', () => {
  const PREFERENCES: readonly (readonly [Parameters<typeof readPreferences>[0], Partial<Preferences>])[] = [
    [{}, {}],
    [{ prefer: 'return=minimal, handling=lenient' }, { answer: 'minimal', lenient: true }],
    [
      { prefer: 'return=OperationOutcome; respond-async' },
      { answer: 'OperationOutcome', respondAsync: true },
    ],
    [{ prefer: 'return=representation, return=OperationOutcome' }, {}],
    [{ prefer: 'return=nothing, handling=strict' }, {}],
    [{ 'cache-control': 'no-cache, max-age=60' }, { cacheControl: 'no-cache, max-age=60' }],
    [{ 'cache-control': 'no-cache\r\nhost: x' }, {}],
  ]
  for (const [headers, preferred] of PREFERENCES)
    it(`reads ${JSON.stringify(headers)}`, () => {
      const expected = { answer: 'representation', lenient: false, ...preferred }
      assert.deepEqual(readPreferences(headers), expected)
    })
})

describe('readPreconditions', () => {
  it('reads the three headers', () => {
    const headers = { 'if-match': 'a', 'if-none-match': 'b', 'if-modified-since': 'c' }
    assert.deepEqual(readPreconditions(headers), { ifMatch: 'a', ifNoneMatch: 'b', ifModifiedSince: 'c' })
  })
})

describe('acceptsJson', () => {
  const accepts = (accept: string | undefined, format?: string) =>
    acceptsJson(accept === undefined ? {} : { accept }, {
      kind: 'search-type',
      type: 'Patient',
      params:
        format === undefined
          ? [['code', 'xml']]
          : [
              ['_format', 'x'],
              ['_format', format],
              ['code', 'xml'],
            ],
    })

  it('reads Accept', () => {
    for (const type of [
      'application/json',
      'application/fhir+json',
      'text/json',
      '*/*',
      'application/*',
      'json',
    ])
      for (const accept of [type, `${type.toUpperCase()}; q=0.5`, `text/html, ${type}`])
        assert.equal(accepts(accept), true, accept)
    assert.equal(accepts(undefined), true)
    for (const accept of ['text/html', 'application/fhir+xml, text/html'])
      assert.equal(accepts(accept), false, accept)
  })

  it('reads the last _format, and ignores Accept then', () => {
    for (const format of ['json', 'application/fhir+json', 'application/fhir json'])
      assert.equal(accepts('application/xml', format), true, format)
    assert.equal(accepts('application/json', 'xml'), false)
  })

  it('accepts any type for the SMART configuration, and reads Accept for interactions without parameters', () => {
    const allows = (kind: 'smart-configuration' | 'bundle', accept: string) =>
      acceptsJson({ accept }, { kind } satisfies Interaction)
    assert.equal(allows('smart-configuration', 'text/html'), true)
    assert.equal(allows('bundle', 'text/html'), false)
    assert.equal(allows('bundle', 'application/json'), true)
  })
})

describe('readPageParams', () => {
  it('accepts parameters of the format, a count and a total', () => {
    const read = (...params: [string, string][]) =>
      readPageParams({ kind: 'search-type', type: 'Patient', params: [['_page', 'x'], ...params] }, '_page', [
        ['code', 'a'],
      ])
    assert.deepEqual(read(['_pretty', 'true'], ['_format', 'json']), [['code', 'a']])
    assert.deepEqual(read(['_count', '5']), [
      ['code', 'a'],
      ['_count', '5'],
    ])
    assert.equal(read(['code', 'b']), undefined)
  })
})
