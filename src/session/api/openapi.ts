import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { version } from '../../web/index.ts'
import type { ApiRow } from './row.ts'
import { apiRows } from './rows.ts'

export const ErrorBody = Type.Object({
  resourceType: Type.Literal('OperationOutcome'),
  issue: Type.Array(
    Type.Object({
      severity: Type.Literal('error'),
      code: Type.String(),
      details: Type.Object({ text: Type.String() }),
    }),
    { minItems: 1 },
  ),
})

const NO_SCOPE_NEEDED = 'No scope is needed.'

/** Errors that every endpoint may return, and errors of some endpoints only (API-11). */
export const ERRORS = {
  400: 'A parameter is unknown or has an invalid value (`invalid`).',
  401: 'There is no session, the session has ended, or the FHIR server no longer accepts it (`login`).',
  403: 'A required scope was not granted (`forbidden`, naming it), or the FHIR server refuses.',
  404: 'The FHIR server has no such record (`not-found`).',
  409: 'X-Session-Id is not the session of the cookie: another launch replaced it (`conflict`).',
  502: 'The FHIR server or the auth server is unreachable, or its response is invalid (`transient`).',
  504: 'The FHIR server or the auth server did not respond in time (`transient`).',
} as const

export function createOpenApiDocument(appUrl: string, cookieName: string) {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sallyport session API',
      version,
      description:
        'Data of the patient of a SMART launch. The session holds the bearer token: callers send the session cookie and no Authorization header.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: appUrl }],
    security: [{ session: [] }],
    paths: Object.fromEntries(
      (apiRows as readonly ApiRow[]).map(row => [row.path, { get: createOperation(row) }]),
    ),
    components: {
      securitySchemes: {
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: cookieName,
          description: 'Set by a SMART launch at /launch and /callback. HttpOnly.',
        },
      },
      schemas: { OperationOutcome: toPlainJson(ErrorBody) },
      parameters: {
        SessionId: {
          name: 'X-Session-Id',
          in: 'header',
          required: false,
          schema: { type: 'string' },
          description: 'The `sessionId` from /api/session that the page was loaded with.',
        },
      },
    },
  }
}

function createOperation(row: ApiRow) {
  const needed = row.scopes.length > 0 ? `Required scopes: \`${row.scopes.join(' ')}\`.` : NO_SCOPE_NEEDED
  return {
    operationId: row.path.slice('/api/'.length),
    summary: row.title,
    description: `${row.description} ${needed}`,
    'x-required-scopes': row.scopes,
    parameters: [{ $ref: '#/components/parameters/SessionId' }, ...describeParameters(row.query)],
    responses: {
      200: { description: row.title, content: { 'application/json': { schema: toPlainJson(row.body) } } },
      ...Object.fromEntries(
        Object.entries(ERRORS).map(([status, description]) => [status, describeErrorResponse(description)]),
      ),
    },
  }
}

function describeParameters(query: TObject) {
  return Object.entries(query.properties).map(([name, schema]) => {
    const { description, ...rest } = toPlainJson(schema)
    return { name, in: 'query', required: false, description, schema: rest }
  })
}

function describeErrorResponse(description: string) {
  const schema = { $ref: '#/components/schemas/OperationOutcome' }
  return { description, content: { 'application/json': { schema } } }
}

function toPlainJson(schema: TSchema): Record<string, unknown> {
  return JSON.parse(JSON.stringify(schema)) as Record<string, unknown>
}
