import type { Static, TObject, TSchema } from 'typebox'
import { failApp } from '../../app-reasons/index.ts'
import { isFailure } from '../../core/index.ts'
import { type Endpoint as Declared, type InvalidMembers, readMembers } from '../../endpoint/index.ts'
import { type Permission, parseScope, parseScopes, permits, type Scope } from '../../smart/index.ts'
import type { Result } from '../failure.ts'
import type { SessionRequest } from '../records/resources.ts'

/** An endpoint of the session API. */
export interface SessionEndpoint<Query extends TObject = TObject, Body extends TSchema = TSchema>
  extends Declared<Query, TSchema, Body> {
  readonly method: 'GET'
  readonly description: string
  readonly query: Query
  readonly scopes: readonly string[]
  readonly result: Body
  /** Set for endpoints that a countdown polls. */
  readonly extendsSession?: false
  answer(sessionRequest: SessionRequest, query: Static<Query>): Promise<Result<Static<Body>>>
}

/** Infers the types of the members from their schemas. */
export function defineEndpoint<Query extends TObject, Body extends TSchema>(
  definition: Omit<SessionEndpoint<Query, Body>, 'method'>,
): SessionEndpoint<Query, Body> {
  return { method: 'GET', ...definition }
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

/** Checks scopes, then parameters, then reads records. The routes and the demo app both use it. */
export async function queryApi<Query extends TObject, Body extends TSchema>(
  endpoint: SessionEndpoint<Query, Body>,
  sessionRequest: SessionRequest,
  sent: unknown = {},
): Promise<Result<Static<Body>>> {
  const missing = findMissingScopes(endpoint.scopes, sessionRequest.session.scope)
  if (missing.length > 0) return failApp('scope-not-granted', { scopes: missing.join(' ') })
  const query = readMembers(endpoint.query, sent, { isText: true })
  return isFailure<Static<Query> | InvalidMembers, InvalidMembers>(query)
    ? refuseParameter(query)
    : endpoint.answer(sessionRequest, query)
}

function refuseParameter({ faults: [fault] }: InvalidMembers): Result<never> {
  const { kind, name = '', expected = 'one value' } = fault ?? {}
  return failApp('parameter-not-usable', {
    name,
    expected: kind === 'unknown' ? 'no such parameter' : expected,
  })
}
