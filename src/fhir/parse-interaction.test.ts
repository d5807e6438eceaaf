import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { countRuns } from '../../test/support/thorough.ts'
import { isFailure } from '../core/index.ts'
import { type Interaction, isPublic, isWriting } from './interaction.ts'
import { SEARCH_CHARACTERS } from './limits.ts'
import { findMethods, parseInteraction } from './parse-interaction.ts'
import { describeFailed, getFhirWords } from './reasons/reasons.ts'

const form = { 'Content-Type': 'application/x-www-form-urlencoded' }

function parse(line: string, headers: Record<string, string> = {}, body?: string) {
  const [method = '', url = ''] = line.split(' ')
  const at = url.indexOf('?')
  return parseInteraction({
    method,
    path: at < 0 ? url : url.slice(0, at),
    query: at < 0 ? '' : url.slice(at + 1),
    headers,
    form: body,
  })
}

const getStatus = (answer: ReturnType<typeof parse>) =>
  isFailure(answer) ? getFhirWords(answer.reason).status : undefined

const UNDERSTOOD: Record<string, Interaction> = {
  'GET /metadata': { kind: 'capabilities' },
  'HEAD /metadata': { kind: 'capabilities' },
  'GET /.well-known/smart-configuration': { kind: 'smart-configuration' },
  'GET /Patient/1': { kind: 'read', type: 'Patient', id: '1', params: [] },
  'HEAD /Patient/1': { kind: 'read', type: 'Patient', id: '1', params: [] },
  'GET /Patient/1?_format=json': { kind: 'read', type: 'Patient', id: '1', params: [['_format', 'json']] },
  'GET /Patient/1/_history/2': { kind: 'vread', type: 'Patient', id: '1', version: '2', params: [] },
  'GET /Patient/1/_history': { kind: 'history-instance', type: 'Patient', id: '1', params: [] },
  'GET /Patient/_history?_count=2': { kind: 'history-type', type: 'Patient', params: [['_count', '2']] },
  'GET /_history': { kind: 'history-system', params: [] },
  'GET /Condition?patient=1': { kind: 'search-type', type: 'Condition', params: [['patient', '1']] },
  'GET /Condition': { kind: 'search-type', type: 'Condition', params: [] },
  'GET ': { kind: 'search-system', params: [] },
  'GET /': { kind: 'search-system', params: [] },
  'GET ?_type=Patient': { kind: 'search-system', params: [['_type', 'Patient']] },
  'GET /Patient/1/Condition?code=a': {
    kind: 'search-compartment',
    compartment: 'Patient',
    id: '1',
    type: 'Condition',
    params: [['code', 'a']],
  },
  'GET /Patient/1/*': { kind: 'search-compartment', compartment: 'Patient', id: '1', type: '*', params: [] },
  'POST /Condition': { kind: 'create', type: 'Condition' },
  'POST /Bundle': { kind: 'create', type: 'Bundle' },
  'PUT /Condition/a-b.c': { kind: 'update', type: 'Condition', id: 'a-b.c' },
  'PUT /Condition?code=x': { kind: 'update-conditional', type: 'Condition', params: [['code', 'x']] },
  'PATCH /Condition/1': { kind: 'patch', type: 'Condition', id: '1' },
  'PATCH /Condition?code=x': { kind: 'patch-conditional', type: 'Condition', params: [['code', 'x']] },
  'DELETE /Condition/1': { kind: 'delete', type: 'Condition', id: '1' },
  'DELETE /Condition?code=x': { kind: 'delete-conditional', type: 'Condition', params: [['code', 'x']] },
  'POST ': { kind: 'bundle' },
  'POST /': { kind: 'bundle' },
  'GET /$export': { kind: 'operation', name: '$export', params: [] },
  'GET /Patient/$match?x=1': { kind: 'operation', name: '$match', type: 'Patient', params: [['x', '1']] },
  'GET /Patient/1/$validate': { kind: 'operation', name: '$validate', type: 'Patient', id: '1', params: [] },
  'POST /Patient/1/$everything': {
    kind: 'operation',
    name: '$everything',
    type: 'Patient',
    id: '1',
    params: [],
    posted: true,
  },
}

const MISUNDERSTOOD: Record<string, number> = {
  'GET Patient/1': 400,
  'GET //Patient/1': 400,
  'GET /Patient//1': 400,
  'GET /Patient/': 400,
  'GET /Patient/1/': 400,
  'GET /./Patient/1': 400,
  'GET /Patient/.': 400,
  'GET /Patient/..': 400,
  'GET /Patient/../Observation': 400,
  'GET /Patient/1/..': 400,
  'GET /Patient/1/.': 400,
  'GET /Patient/1;x=y': 400,
  'GET /Patient;x=y/1': 400,
  'GET /Patient%2F1': 400,
  'GET /Patient/1%2f..': 400,
  'GET /%50atient/1': 400,
  'GET /Patient/%31': 400,
  'GET /Patient/1/%24everything': 400,
  'GET /Patient\\1': 400,
  'GET /Patient/a_b': 400,
  [`GET /Patient/${'a'.repeat(65)}`]: 400,
  'GET /Patient/1/_history/a_b': 400,
  'GET /$Export!': 400,
  'GET /$Export': 400,
  'GET /Patient/$every.thing': 400,
  'GET /Patient/1/$': 400,
  'GET /patient/1': 404,
  'GET /PATIENT': 404,
  'GET /Patients': 404,
  'GET /constructor': 404,
  'GET /__proto__/1': 404,
  'GET /.well-known': 404,
  'GET /.well-known/openid-configuration': 404,
  'GET /.well-known/smart-configuration/x': 404,
  'GET /metadata/x': 404,
  'GET /*': 404,
  'GET /Patient/1/condition': 404,
  'GET /Observation/1/Condition': 404,
  'GET /Observation/1/_history/2/$meta': 404,
  'GET /Patient/1/Condition/2': 404,
  'GET /Patient/1/Condition/2/_history': 404,
  'GET /Patient/_search': 405,
  'GET /_search': 405,
  'GET /Patient/1/_search': 405,
  'PUT /Patient/_search': 405,
  'GET /Patient/$validate': 405,
  'POST /metadata': 405,
  'DELETE /.well-known/smart-configuration': 405,
  'POST /Patient/1': 405,
  'POST /Patient/1/Condition': 405,
  'DELETE /Patient/1/_history': 405,
  'DELETE /Patient/1/_history/2': 405,
  'POST /_history': 405,
  'PUT /': 405,
  'DELETE ': 405,
  'PUT /$export': 405,
  'OPTIONS /Patient/1': 405,
  'TRACE /Patient/1': 405,
  'get /Patient/1': 405,
  'constructor /Patient/1': 405,
  'PUT /Condition': 400,
  'DELETE /Condition': 400,
  'DELETE /Condition?_count=5': 400,
  'DELETE /Condition?code=': 400,
  'DELETE /Patient/1?_cascade=delete': 400,
  'PUT /Patient/1?identifier=2': 400,
  'POST /Patient?identifier=2': 400,
  'POST /?x=1': 400,
  'GET /Patient/1?_include=*': 400,
  'GET /Patient?name=%': 400,
  'GET /Patient?name=%ff': 400,
  'GET /Patient?name=%00': 400,
  'GET /Patient?=x': 400,
  'GET /Patient?_method=DELETE': 400,
}

describe('parseInteraction', () => {
  for (const [line, interaction] of Object.entries(UNDERSTOOD)) {
    it(`understands ${line} (ROUTE-1)`, () => assert.deepEqual(parse(line), interaction))
  }

  for (const [line, status] of Object.entries(MISUNDERSTOOD)) {
    it(`refuses ${line.slice(0, 60)} with ${status} (ROUTE-6)`, () => {
      const answer = parse(line)
      assert.equal(answer.kind, 'misunderstood')
      assert.equal(getStatus(answer), status)
    })
  }

  const tooLong = `code=${'x'.repeat(SEARCH_CHARACTERS)}`
  for (const [part, answer] of [
    ['query', parse(`GET /Condition?${tooLong}`)],
    ['form', parse('POST /Condition/_search', form, tooLong)],
    ['If-None-Exist', parse('POST /Condition', { 'If-None-Exist': tooLong })],
  ] as const)
    it(`names the ${part} that is too long`, () => {
      const text = `Cannot read ${part}: it has more than ${SEARCH_CHARACTERS} characters`
      assert(isFailure(answer))
      assert.equal(describeFailed(answer), text)
      assert.equal(getFhirWords(answer.reason).code, 'too-costly')
    })

  it('reads a search by POST from the URL and the form', () => {
    const search = {
      params: [
        ['_count', '5'],
        ['patient', '1'],
        ['code', 'a b|c'],
      ],
      posted: true,
    }
    const body = 'patient=1&code=a+b%7Cc'
    assert.deepEqual(parse('POST /Condition/_search?_count=5', form, body), {
      kind: 'search-type',
      type: 'Condition',
      ...search,
    })
    assert.deepEqual(parse('POST /_search?_count=5', form, body), { kind: 'search-system', ...search })
    for (const [path, type] of [
      ['/Patient/1/_search', '*'],
      ['/Patient/1/*/_search', '*'],
      ['/Patient/1/Condition/_search', 'Condition'],
    ])
      assert.deepEqual(parse(`POST ${path}?_count=5`, form, body), {
        kind: 'search-compartment',
        compartment: 'Patient',
        id: '1',
        type,
        ...search,
      })
  })

  it('reads a search by POST without a form as one without parameters', () => {
    assert.deepEqual(parse('POST /Condition/_search', form), {
      kind: 'search-type',
      type: 'Condition',
      params: [],
      posted: true,
    })
  })

  it('is public only for the two documents that clients read without a token', () => {
    for (const line of ['GET /metadata', 'GET /.well-known/smart-configuration'])
      assert.equal(isPublic(parse(line)), true, line)
    for (const line of ['POST /metadata', 'GET /Patient/1', 'GET /', 'GET /metadata/', 'GET /_history'])
      assert.equal(isPublic(parse(line)), false, line)
  })

  it('is writing only for interactions that may change data', () => {
    for (const line of [
      'GET /Patient/1',
      'GET /Patient',
      'GET /_history',
      'POST /Patient/_search',
      'POST /$x',
    ])
      assert.equal(isWriting(parse(line, form, '') as Interaction), false, line)
    for (const line of [
      'POST /Patient',
      'POST /',
      'PUT /Patient/1',
      'PATCH /Patient?a=b',
      'DELETE /Patient/1',
    ])
      assert.equal(isWriting(parse(line) as Interaction), true, line)
  })

  it('ignores other headers', () => {
    const headers = { accept: 'application/json', prefer: 'return=minimal', 'if-match': 'W/"1"' }
    assert.deepEqual(parse('GET /Patient/1', headers), parse('GET /Patient/1'))
    const absent = { 'x-http-method': undefined, 'if-none-exist': undefined }
    assert.equal(
      parseInteraction({ method: 'GET', path: '/Patient/1', query: '', headers: absent }).kind,
      'read',
    )
  })

  it('accepts a charset in the content type of a form', () => {
    const answer = parse(
      'POST /Condition/_search',
      { 'content-type': `${form['Content-Type']}; charset=UTF-8` },
      '',
    )
    assert.equal(answer.kind, 'search-type')
  })

  for (const type of [
    'application/json',
    'multipart/form-data',
    'application/x-www-form-urlencoded; charset=utf-16',
  ])
    it(`refuses a search by POST with ${type}`, () => {
      const answer = parse('POST /Condition/_search', { 'content-type': type }, 'patient=1')
      assert.equal(getStatus(answer), 415)
    })

  it('refuses a search by POST without a content type or with a malformed form', () => {
    assert.equal(parse('POST /Condition/_search', {}, 'patient=1').kind, 'misunderstood')
    for (const text of ['patient=%', '_method=DELETE']) {
      const answer = parse('POST /Condition/_search', form, text)
      assert.equal(getStatus(answer), 400)
    }
  })

  it('reads If-None-Exist on a create, whatever the case of its name', () => {
    for (const name of ['If-None-Exist', 'if-none-exist', 'IF-NONE-EXIST'])
      assert.deepEqual(parse('POST /Patient', { [name]: 'identifier=a%7Cb' }), {
        kind: 'create',
        type: 'Patient',
        ifNoneExist: [['identifier', 'a|b']],
      })
  })

  it('reads If-None-Exist with the posted type, and with the FHIR base where it is known (FHIR-7)', () => {
    const baseUrl = 'http://fhir.test/fhir'
    const parsed = (value: string, base?: string) =>
      parseInteraction({
        method: 'POST',
        path: '/Patient',
        query: '',
        headers: { 'if-none-exist': value },
        baseUrl: base,
      })
    for (const value of ['Patient?identifier=a%7Cb', `${baseUrl}/Patient?identifier=a%7Cb`])
      assert.deepEqual(parsed(value, baseUrl), {
        kind: 'create',
        type: 'Patient',
        ifNoneExist: [['identifier', 'a|b']],
      })
    for (const value of [`${baseUrl}/Group?a=b`, `${baseUrl}x/Patient?a=b`, 'Patient?a=b?c', 'Patient?'])
      assert.equal(getStatus(parsed(value, baseUrl)), 400, value)
    assert.equal(getStatus(parsed(`${baseUrl}/Patient?a=b`)), 400)
  })

  it('refuses If-None-Exist without criteria, with a URL, or outside a create', () => {
    for (const value of ['', '_count=1', 'Group?identifier=1', '?identifier=1', 'identifier=%'])
      assert.equal(getStatus(parse('POST /Patient', { 'If-None-Exist': value })), 400, value)
    for (const line of ['PUT /Patient/1', 'GET /Patient/1', 'POST ', 'POST /Patient/$match'])
      assert.equal(getStatus(parse(line, { 'If-None-Exist': 'identifier=1' })), 400, line)
  })

  it('refuses If-None-Exist sent as a list', () => {
    const request = {
      method: 'POST',
      path: '/Patient',
      query: '',
      headers: { 'if-none-exist': ['a=1', 'b=2'] },
    }
    assert.equal(parseInteraction(request).kind, 'misunderstood')
  })

  for (const name of ['X-HTTP-Method-Override', 'x-http-method', 'X-Method-Override'])
    it(`refuses ${name}`, () => {
      assert.equal(parse('POST /Patient/1/_search', { ...form, [name]: 'DELETE' }).kind, 'misunderstood')
    })

  it('keeps the order and every repetition of parameters', () => {
    const answer = parse('GET /Condition?patient=1&code=a&&patient=2&_summary')
    assert.deepEqual('params' in answer && answer.params, [
      ['patient', '1'],
      ['code', 'a'],
      ['patient', '2'],
      ['_summary', ''],
    ])
  })

  it('never throws, and only ever names R4 types and FHIR ids (ROUTE-6)', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        'Patient',
        'Condition',
        '_history',
        '_search',
        '$everything',
        '*',
        '1',
        'a.b',
        '..',
        '%2e',
        '',
      ),
      fc.string(),
    )
    const path = fc.array(piece, { maxLength: 5 }).map(pieces => `/${pieces.join('/')}`)
    const method = fc.oneof(fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'), fc.string())
    fc.assert(
      fc.property(method, fc.oneof(path, fc.string()), fc.string(), (verb, below, query) => {
        const answer = parseInteraction({ method: verb, path: below, query, headers: form, form: query })
        if ('type' in answer && answer.type !== undefined)
          assert.match(answer.type, /^(?:\*|[A-Z][A-Za-z]+)$/)
        if ('id' in answer && answer.id !== undefined)
          assert.match(answer.id, /^(?!\.\.?$)[A-Za-z0-9\-.]{1,64}$/)
      }),
      { numRuns: countRuns(3000) },
    )
  })
})

describe('findMethods', () => {
  for (const [path, methods] of [
    ['', 'GET HEAD POST'],
    ['/metadata', 'GET HEAD'],
    ['/Patient', 'GET HEAD POST PUT PATCH DELETE'],
    ['/Patient/1', 'GET HEAD PUT PATCH DELETE'],
    ['/Patient/_search', 'POST'],
    ['/Patients', ''],
  ] as const)
    it(`finds ${methods || 'no methods'} at ${path || 'the base'}`, () => {
      assert.equal(findMethods({ path, query: '', headers: {} }).join(' '), methods)
    })

  it('completes the refusal of a method, and no other', () => {
    assert.partialDeepStrictEqual(parse('PUT /metadata'), {
      reason: 'method-not-allowed',
      allow: ['GET', 'HEAD'],
    })
    for (const line of ['GET /Patients', 'GET /Patient/1']) assert.ok(!('allow' in parse(line)), line)
  })
})
