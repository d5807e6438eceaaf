import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox'
import type { Result } from '../failure.ts'
import type { Visit } from '../records/visit.ts'

/**
 * An endpoint of the session API: its scopes, parameters and response. The routes, the checks, the types and the OpenAPI
 * document are all made from it.
 */
export interface ApiRow<Query extends TObject = TObject, Body extends TSchema = TSchema> {
  readonly path: `/api/${string}`
  readonly title: string
  readonly description: string
  /** Scopes that must be granted, by meaning. */
  readonly scopes: readonly string[]
  readonly query: Query
  readonly body: Body
  /** False for what a countdown polls: it does not count as use of the session. */
  readonly extendsSession: boolean
  answer(visit: Visit, query: Static<Query>): Promise<Result<Static<Body>>>
}

export const NoQuery = Type.Object({})

/** A row as it stands, with the types of its own query and body. */
export function defineRow<Query extends TObject, Body extends TSchema>(
  definition: ApiRow<Query, Body>,
): ApiRow<Query, Body> {
  return definition
}
