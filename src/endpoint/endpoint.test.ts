import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fastify from 'fastify'
import { Type } from 'typebox'
import { isFailure } from '../core/index.ts'
import { type Api, addEndpoints, type Endpoint, type InvalidMembers, Members, readMembers } from './index.ts'

const Query = Members({
  state: Type.Union([Type.Literal('open'), Type.Literal('closed')], { default: 'open' }),
  limit: Type.Integer({ minimum: 1, maximum: 5, default: 2 }),
  isOld: Type.Optional(Type.Boolean()),
  code: Type.Optional(Type.String({ pattern: '^[0-9]+$', description: 'A number of digits.' })),
})

const api: Api<Endpoint> = {
  title: 'Doors',
  description: 'All doors.',
  url: 'http://localhost',
  prefix: '/doors',
  endpoints: [{ method: 'GET', path: '/:id', title: 'One door', query: Query, result: Type.Object({}) }],
  securitySchemes: {},
  error: { name: 'Error', schema: Type.Object({ error: Type.String() }), texts: { 400: 'Bad.' } },
  describe: ({ path }) => ({ operationId: `door${path.length}` }),
}

describe('an endpoint', () => {
  it('becomes a route below the prefix, and an operation of the OpenAPI document', async () => {
    const app = fastify()
    addEndpoints(app, api, ({ title }) => ({ handler: async () => ({ title }) }))
    assert.deepEqual((await app.inject('/doors/1')).json(), { title: 'One door' })
    const { paths } = (await app.inject('/doors/openapi.json')).json()
    const { operationId, parameters, responses } = paths['/doors/{id}'].get
    assert.equal(operationId, 'door4')
    assert.deepEqual(
      parameters.map(({ name, in: place }: { name: string; in: string }) => [name, place]),
      [
        ['id', 'path'],
        ['state', 'query'],
        ['limit', 'query'],
        ['isOld', 'query'],
        ['code', 'query'],
      ],
    )
    assert.deepEqual(Object.keys(responses), ['200', '400'])
  })

  it('converts the texts of a query, and adds the defaults', () => {
    const read = readMembers(Query, { limit: '3', isOld: 'true' }, { isText: true })
    assert.deepEqual(read, { state: 'open', limit: 3, isOld: true })
  })

  it('names every faulty member, the unknown ones first, with the values that it may have', () => {
    const sent = { state: 'ajar', limit: '9', code: 'x', isOld: '1', __proto__x: 1, 'a b': 1 }
    const read = readMembers(Query, sent, { isText: true })
    assert.ok(isFailure<unknown, InvalidMembers>(read))
    assert.deepEqual(
      read.faults.map(({ kind, name, text }) => [kind, name, text]),
      [
        ['unknown', '__proto__x', 'unexpected property'],
        ['unknown', '(not a name)', 'unexpected property'],
        ['invalid', 'state', 'expected one of open, closed'],
        ['invalid', 'limit', 'expected one whole number from 1 to 5'],
        ['invalid', 'isOld', 'expected true or false'],
        ['invalid', 'code', 'expected a number of digits'],
      ],
    )
  })

  for (const name of ['__proto__', 'constructor', 'prototype', 'toString'])
    it(`refuses a member with the name ${name}`, () => {
      const read = readMembers(Query, JSON.parse(`{"${name}":"1"}`), { isText: true })
      assert.ok(isFailure<unknown, InvalidMembers>(read))
      assert.deepEqual(
        read.faults.map(({ kind, name }) => [kind, name]),
        [['unknown', name]],
      )
    })

  const Whole = Members({
    text: Type.String({ minLength: 2, maxLength: 3 }),
    list: Type.Array(Type.Object({ kid: Type.String() }), { minItems: 1, maxItems: 2 }),
    number: Type.Number({ minimum: 1 }),
    limit: Type.Integer({ maximum: 5 }),
    pattern: Type.Optional(Type.String({ pattern: '^a$' })),
    only: Type.Optional(Type.Literal('x')),
    keys: Type.Optional(Type.Union([Type.Object({ kid: Type.String() }), Type.Null()])),
  })
  const good = { text: 'ab', list: [{ kid: 'a' }], number: 1, limit: 5 }
  const faults: readonly (readonly [sent: unknown, name: string, text: string])[] = [
    [7, '', 'expected object'],
    [{ ...good, text: 7 }, 'text', 'expected string'],
    [{ ...good, text: 'a' }, 'text', 'expected string length greater or equal to 2'],
    [{ ...good, text: 'abcd' }, 'text', 'expected string length less or equal to 3'],
    [{ ...good, list: {} }, 'list', 'expected array'],
    [{ ...good, list: [] }, 'list', 'expected array length to be greater or equal to 1'],
    [
      { ...good, list: [{ kid: 'a' }, { kid: 'b' }, { kid: 'c' }] },
      'list',
      'expected array length to be less or equal to 2',
    ],
    [{ ...good, list: [{ kid: 1 }] }, 'list.0.kid', 'expected string'],
    [{ ...good, list: [{}] }, 'list.0.kid', 'expected required property'],
    [{ ...good, number: 0 }, 'number', 'expected number to be greater or equal to 1'],
    [{ ...good, limit: 6 }, 'limit', 'expected integer to be less or equal to 5'],
    [{ ...good, limit: 1.5 }, 'limit', 'expected integer'],
    [{ ...good, pattern: 'b' }, 'pattern', "expected string to match '^a$'"],
    [{ ...good, only: 'y' }, 'only', "expected 'x'"],
    [{ ...good, keys: { kid: 1 } }, 'keys', 'expected union value'],
  ]
  for (const [sent, name, text] of faults)
    it(`says of a body: ${name} ${text}`, () => {
      const read = readMembers(Whole, sent, { isText: false })
      assert.ok(isFailure<unknown, InvalidMembers>(read))
      assert.deepEqual([read.faults[0]?.name, read.faults[0]?.text], [name, text])
    })

  it('does not convert the members of a body', () => {
    assert.ok(isFailure<unknown, InvalidMembers>(readMembers(Query, { limit: '3' }, { isText: false })))
  })
})
