import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { fail, isFailure } from '../../core/index.ts'
import { type Permission, parseScope, parseScopes, permits, type Scope } from '../../smart/index.ts'
import type { Result } from '../failure.ts'
import type { SessionRequest } from '../records/resources.ts'

/**
 * An endpoint of the session API. The routes, the checks, the types and the OpenAPI document are all derived from
 * it.
 */
export interface Endpoint<Query extends TObject = TObject, Body extends TSchema = TSchema> {
  readonly path: `/api/${string}`
  readonly title: string
  readonly description: string
  readonly scopes: readonly string[]
  readonly query: Query
  readonly body: Body
  /** Set for endpoints that a countdown polls. */
  readonly extendsSession?: false
  answer(sessionRequest: SessionRequest, query: Static<Query>): Promise<Result<Static<Body>>>
}

export const NoQuery = Type.Object({})

export function defineEndpoint<Query extends TObject, Body extends TSchema>(
  definition: Endpoint<Query, Body>,
): Endpoint<Query, Body> {
  return definition
}

/**
 * The required scopes that the granted scopes do not cover (API-10). Each permission of a required scope may be covered by
 * any `patient/` or `user/` scope for the type, including v1 and granular scopes.
 */
export function findMissingScopes(required: readonly string[], granted: string): readonly string[] {
  const scopes = parseScopes(granted)
  return required.filter(text => !isCovered(text, scopes))
}

function isCovered(text: string, granted: readonly Scope[]): boolean {
  const needed = parseScope(text)
  if (needed?.kind !== 'resource') return granted.some(scope => scope.text === text)
  return [...needed.permissions].every(permission =>
    granted.some(scope => covers(scope, needed.type, permission)),
  )
}

/** `system/` scopes are for clients without a user. */
function covers(scope: Scope, type: string, permission: Permission): boolean {
  return permits(scope, type, permission) && scope.context !== 'system'
}

function readQuery<Query extends TObject>(
  schema: Query,
  sent: Readonly<Record<string, unknown>>,
): Result<Static<Query>> {
  const values: Record<string, unknown> = {}
  for (const [name, text] of Object.entries(sent)) {
    const property: TSchema | undefined = Object.hasOwn(schema.properties, name)
      ? schema.properties[name]
      : undefined
    if (property === undefined)
      return fail({ kind: 'bad-parameter', name: sanitizeName(name), expected: 'no such parameter' })
    values[name] = parseNumber(property, text)
    if (!Value.Check(property, values[name]))
      return fail({ kind: 'bad-parameter', name, expected: describeExpected(property) })
  }
  const complete: unknown = Value.Default(schema, values)
  return Value.Parse(schema, complete)
}

/** Converts digits to a number. Other values stay as they are and fail validation. */
function parseNumber(property: TSchema, sent: unknown): unknown {
  return property.type === 'integer' && typeof sent === 'string' && /^\d{1,9}$/.test(sent)
    ? Number(sent)
    : sent
}

function describeExpected(property: TSchema): string {
  if (property.type === 'integer') return `one whole number from ${property.minimum} to ${property.maximum}`
  if (Array.isArray(property.anyOf))
    return `one of ${property.anyOf.map((choice: TSchema) => choice.const).join(', ')}`
  return property.description === undefined ? 'one value' : toPhrase(property.description)
}

function toPhrase(description: string): string {
  return `${description.charAt(0).toLowerCase()}${description.slice(1).replace(/\.$/, '')}`
}

/** A name from a request is echoed only if it is a plain name. */
function sanitizeName(name: string): string {
  return /^[\w:.-]{1,40}$/.test(name) ? name : '(not a name)'
}

/** Checks scopes, then parameters, then reads records. The routes and the demo app both use it. */
export async function queryApi<Query extends TObject, Body extends TSchema>(
  endpoint: Endpoint<Query, Body>,
  sessionRequest: SessionRequest,
  sent: Readonly<Record<string, unknown>> = {},
): Promise<Result<Static<Body>>> {
  const missing = findMissingScopes(endpoint.scopes, sessionRequest.session.scope)
  if (missing.length > 0) return fail({ kind: 'missing-scope', missing })
  const query = readQuery(endpoint.query, sent)
  return isFailure(query) ? query : endpoint.answer(sessionRequest, query)
}
