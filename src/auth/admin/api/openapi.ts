import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { version } from '../../../web/index.ts'
import { ADMIN_SCOPE } from '../../client/client.ts'
import { paths } from '../../paths.ts'
import type { Endpoint } from './endpoint.ts'

const ErrorBody = Type.Object(
  { error: Type.String(), error_description: Type.String() },
  { additionalProperties: false },
)

const ERRORS = {
  400: 'A member or a parameter is unknown or not valid (`invalid_request`).',
  401: 'There is no token, or it is not valid (`invalid_token`).',
  403: 'The token does not have the scope (`insufficient_scope`).',
  404: 'There is no such object (`not_found`).',
  409: 'The state does not allow it (`conflict`).',
  503: 'A component is unavailable (`temporarily_unavailable`). Try again.',
} as const

export function createOpenApiDocument(issuerUrl: string, endpoints: readonly Endpoint[]) {
  const byPath = Map.groupBy(endpoints, ({ path }) => `${paths.adminApi}${path.replace(/:(\w+)/g, '{$1}')}`)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sallyport administration API',
      version,
      description: `For clients that are registered with \`client add --admin\`. Their token for \`${ADMIN_SCOPE}\` is valid for five minutes. Every action writes an audit record.`,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: issuerUrl }],
    security: [{ administrator: [ADMIN_SCOPE] }],
    paths: Object.fromEntries(
      [...byPath].map(([path, some]) => [
        path,
        Object.fromEntries(
          some.map(endpoint => [endpoint.method.toLowerCase(), describeOperation(endpoint)]),
        ),
      ]),
    ),
    components: {
      securitySchemes: {
        administrator: {
          type: 'oauth2',
          flows: {
            clientCredentials: {
              tokenUrl: `${issuerUrl}${paths.token}`,
              scopes: { [ADMIN_SCOPE]: 'Administer this server' },
            },
          },
        },
      },
      schemas: { Error: toPlainJson(ErrorBody) },
    },
  }
}

function describeOperation(endpoint: Endpoint) {
  const { method, path, title, description, query, body, status = 200 } = endpoint
  return {
    operationId: `${method.toLowerCase()}${path.replace(/[/:-]+(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    summary: title,
    ...(description !== undefined && { description }),
    parameters: [...listPathParameters(path), ...(query ? listQueryParameters(query) : [])],
    ...(body && {
      requestBody: {
        required: (body.required ?? []).length > 0,
        content: { 'application/json': { schema: toPlainJson(body) } },
      },
    }),
    responses: {
      [status]: { description: title, content: describeContent(endpoint) },
      ...Object.fromEntries(
        Object.entries(ERRORS).map(([code, text]) => [
          code,
          {
            description: text,
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
          },
        ]),
      ),
    },
  }
}

function describeContent({ result, streams = [] }: Endpoint) {
  if (result) return { 'application/json': { schema: toPlainJson(result) } }
  return Object.fromEntries(streams.map(type => [type.split(';')[0], { schema: { type: 'string' } }]))
}

function listPathParameters(path: string) {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    ...{ name, in: 'path', required: true, schema: { type: 'string' } },
  }))
}

function listQueryParameters(query: TObject) {
  const required: readonly string[] = query.required ?? []
  return Object.entries(query.properties).map(([name, schema]) => {
    const { description, ...rest } = toPlainJson(schema)
    const isRequired = required.includes(name) && schema.default === undefined
    return {
      name,
      in: 'query',
      required: isRequired,
      ...(description !== undefined && { description }),
      schema: rest,
    }
  })
}

function toPlainJson(schema: TSchema): Record<string, unknown> {
  return JSON.parse(JSON.stringify(schema)) as Record<string, unknown>
}
