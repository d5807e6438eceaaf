import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../core/index.ts'
import { type Interaction, isId, isPublic, isWriting, mayWrite, parsePath } from './interaction.ts'
import { parseInteraction } from './parse-interaction.ts'

function parse(line: string): Interaction {
  const [method = '', url = ''] = line.split(' ')
  const [path = '', query = ''] = url.split('?')
  const headers = path.endsWith('/_search') ? { 'content-type': 'application/x-www-form-urlencoded' } : {}
  const interaction = parseInteraction({ method, path, query, headers, form: '' })
  if (interaction.kind === 'misunderstood') assert.fail(line)
  return interaction
}

const READS = [
  'GET /metadata',
  'GET /.well-known/smart-configuration',
  'GET /Condition/1',
  'GET /Condition/1/_history/2',
  'GET /Condition/1/_history',
  'GET /Condition/_history',
  'GET /_history',
  'GET /Condition',
  'POST /Condition/_search',
  'GET /',
  'GET /Patient/1/Condition',
  'GET /Patient/1/$everything',
]

const WRITES = [
  'POST /Condition',
  'PUT /Condition/1',
  'PUT /Condition?code=x',
  'PATCH /Condition/1',
  'PATCH /Condition?code=x',
  'DELETE /Condition/1',
  'DELETE /Condition?code=x',
  'POST /',
]

describe('isWriting', () => {
  for (const line of READS)
    it(`is false for ${line}`, () => {
      assert.equal(isWriting(parse(line)), false)
      assert.equal(mayWrite(parse(line)), false)
    })

  for (const line of WRITES)
    it(`is true for ${line}`, () => {
      assert.equal(isWriting(parse(line)), true)
      assert.equal(mayWrite(parse(line)), true)
    })

  it('is false for an operation by POST, with which an upstream server may write', () => {
    const operation = parse('POST /Patient/1/$everything')
    assert.deepEqual([isWriting(operation), mayWrite(operation)], [false, true])
  })
})

describe('isPublic', () => {
  it('is true for the CapabilityStatement and the SMART configuration only', () => {
    for (const [at, line] of READS.entries()) assert.equal(isPublic(parse(line)), at < 2, line)
    for (const line of WRITES) assert.equal(isPublic(parse(line)), false, line)
  })
})

describe('isId', () => {
  it('accepts the ids of FHIR, but not dot segments', () => {
    for (const id of ['1', 'a-b.C', '...', 'a'.repeat(64)]) assert.equal(isId(id), true, id)
    for (const id of ['', '.', '..', 'a_b', 'a b', 'a'.repeat(65)]) assert.equal(isId(id), false, id)
  })
})

describe('parsePath', () => {
  it('splits a path at its slashes', () => {
    assert.deepEqual(parsePath('/Patient/1/$everything'), ['Patient', '1', '$everything'])
    for (const path of ['', '/']) assert.deepEqual(parsePath(path), [])
  })

  it('refuses paths that a proxy might read differently (ROUTE-7)', () => {
    for (const path of [
      'Patient/1',
      '/Patient/',
      '//Patient',
      '/Patient/..',
      '/./Patient',
      '/Patient%2f1',
      '/a;b',
    ])
      assert.equal(isFailure(parsePath(path)), true, path)
  })
})
