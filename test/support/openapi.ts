import assert from 'node:assert/strict'
import { type FastifyInstance, fastify } from 'fastify'

interface Answered {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, unknown>>
  json(): unknown
}

/** Checks JSON responses against the schemas of an OpenAPI document. */
export function createSchemaCheck(document: { components: { schemas: Record<string, object> } }) {
  const validators = new Map<string, FastifyInstance>()
  return async (
    response: { content: Record<string, { schema: object }> },
    answer: Answered,
  ): Promise<void> => {
    const type = String(answer.headers['content-type']).split(';')[0] ?? ''
    const schema = inlined(response.content[type]?.schema ?? { not: {} }, document.components.schemas)
    const validator = validators.get(JSON.stringify(schema)) ?? createValidator(schema)
    validators.set(JSON.stringify(schema), validator)
    const result = await validator.inject({ method: 'POST', url: '/', payload: answer.json() as object })
    assert.equal(result.statusCode, 200, `${answer.statusCode}: ${result.body}`)
  }
}

function createValidator(body: object): FastifyInstance {
  const customOptions = { coerceTypes: false, removeAdditional: false, useDefaults: false } as const
  const validator = fastify({ ajv: { customOptions } })
  validator.post('/', { schema: { body } }, async () => 'fits')
  return validator
}

function inlined(schema: object, components: Record<string, object>): object {
  const name = '$ref' in schema ? String(schema.$ref).split('/').at(-1) : undefined
  return name === undefined ? schema : (components[name] ?? {})
}
