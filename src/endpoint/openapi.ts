import type { TSchema } from 'typebox'
import { version } from '../web/ui/index.ts'
import type { Api, Endpoint } from './endpoint.ts'
import type { JsonSchema } from './faults.ts'

export function createOpenApi<One extends Endpoint>(api: Api<One>) {
  const { title, description, url, securitySchemes, security, parameters, error } = api
  const license = { name: 'Apache-2.0', identifier: 'Apache-2.0' }
  const byPath = Map.groupBy(api.endpoints, ({ path }) => `${api.prefix}${path.replace(/:(\w+)/g, '{$1}')}`)
  return {
    openapi: '3.1.0',
    info: { title, version, description, license },
    servers: [{ url }],
    ...(security && { security }),
    paths: Object.fromEntries(
      [...byPath].map(([path, endpoints]) => [
        path,
        Object.fromEntries(
          endpoints.map(endpoint => [endpoint.method.toLowerCase(), describeOperation(api, endpoint)]),
        ),
      ]),
    ),
    components: {
      securitySchemes,
      schemas: { [error.name]: toPlainJson(error.schema) },
      ...(parameters && { parameters }),
    },
  }
}

function describeOperation<One extends Endpoint>(api: Api<One>, endpoint: One) {
  const { path, title, query, status = 200 } = endpoint
  const body: JsonSchema | undefined = endpoint.body
  const { operationId, description = endpoint.description, members, example } = api.describe(endpoint)
  const common = Object.keys(api.parameters ?? {}).map(name => ({ $ref: `#/components/parameters/${name}` }))
  return {
    operationId,
    summary: title,
    ...(description !== undefined && { description }),
    ...members,
    parameters: [...common, ...describePath(path), ...(query ? describeQuery(query) : [])],
    ...(body && {
      requestBody: {
        required: (body.required ?? []).length > 0,
        content: describeJson(toPlainJson(body)),
      },
    }),
    responses: {
      [status]: { description: title, content: describeContent(endpoint, example) },
      ...describeErrors(api),
    },
  }
}

function describeErrors<One extends Endpoint>({ error: { name, texts } }: Api<One>) {
  const content = describeJson({ $ref: `#/components/schemas/${name}` })
  return Object.fromEntries(
    Object.entries(texts).map(([status, description]) => [status, { description, content }]),
  )
}

function describeContent({ result, streams = [] }: Endpoint, example: object | undefined) {
  if (result) return describeJson(toPlainJson(result), example)
  return Object.fromEntries(streams.map(type => [type.split(';')[0], { schema: { type: 'string' } }]))
}

function describeJson(schema: object, example?: object) {
  return { 'application/json': { schema, ...(example && { example }) } }
}

function describePath(path: string) {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
}

function describeQuery({ required = [], properties = {} }: JsonSchema) {
  return Object.entries(properties).map(([name, schema]) => {
    const { description, ...rest } = toPlainJson(schema)
    return {
      name,
      in: 'query',
      required: required.includes(name) && schema.default === undefined,
      ...(description !== undefined && { description }),
      schema: rest,
    }
  })
}

/** Without the hidden members of TypeBox. */
function toPlainJson(schema: TSchema): Record<string, unknown> {
  return JSON.parse(JSON.stringify(schema)) as Record<string, unknown>
}
