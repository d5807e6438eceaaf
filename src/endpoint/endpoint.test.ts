import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Type } from '@sinclair/typebox'
import fastify from 'fastify'
import { isFailure } from '../core/index.ts'
import { type Api, addEndpoints, CLOSED, type Endpoint, type InvalidMembers, readMembers } from './index.ts'

const Query = Type.Object(
  {
    state: Type.Union([Type.Literal('open'), Type.Literal('closed')], { default: 'open' }),
    limit: Type.Integer({ minimum: 1, maximum: 5, default: 2 }),
    isOld: Type.Optional(Type.Boolean()),
    code: Type.Optional(Type.String({ pattern: '^[0-9]+$', description: 'A number of digits.' })),
  },
  CLOSED,
)

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

  it('refuses a member with the name of the prototype', () => {
    const read = readMembers(Query, JSON.parse('{"__proto__":"1"}'), { isText: true })
    assert.ok(isFailure<unknown, InvalidMembers>(read))
    assert.deepEqual(
      read.faults.map(({ kind, name }) => [kind, name]),
      [['unknown', '__proto__']],
    )
  })

  it('does not convert the members of a body', () => {
    assert.ok(isFailure<unknown, InvalidMembers>(readMembers(Query, { limit: '3' }, { isText: false })))
  })
})
