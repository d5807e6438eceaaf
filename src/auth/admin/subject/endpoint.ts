import type { FastifyInstance } from 'fastify'
import type { Static, TObject, TSchema } from 'typebox'
import type { Endpoint as Declared } from '../../../endpoint/index.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { Admin, AdminOperation } from '../base/action.ts'

/** A request of an administrator's client, with checked members. */
export interface AdminCall<Query extends TObject = TObject, Body extends TSchema = TSchema> {
  readonly admin: Admin
  readonly context: AuthContext
  readonly app: FastifyInstance
  /** The parameters of the path. */
  readonly params: Readonly<Record<string, string>>
  readonly query: Static<Query>
  readonly body: Static<Body>
}

/** An endpoint of the administration API, below `/admin/api`. */
export type AdminEndpoint<Query extends TObject = TObject, Body extends TSchema = TSchema> = Declared<
  Query,
  Body
> & {
  /** Returns the result, a `StreamedText` or an `AdminFailure`. */
  handle(call: AdminCall<Query, Body>): Promise<unknown>
} & (
    | { readonly method: 'GET'; readonly operation?: AdminOperation }
    | { readonly method: 'POST' | 'PATCH' | 'PUT' | 'DELETE'; readonly operation: AdminOperation }
  )

/** Infers the types of the members from their schemas. */
export function defineEndpoint<Query extends TObject, Body extends TSchema>(
  endpoint: AdminEndpoint<Query, Body>,
): AdminEndpoint {
  return endpoint
}
