import type { FastifyInstance } from 'fastify'
import { type Static, type TObject, type TSchema, Type } from 'typebox'
import { isFailure } from '../../../core/index.ts'
import {
  type Endpoint as Declared,
  type InvalidMembers,
  readMembers as readChecked,
} from '../../../endpoint/index.ts'
import { type Fault, makeFault } from '../../base/fault.ts'
import { LIMITS } from '../../base/limits.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { type Admin, type AdminOperation, failAdmin, type ListPage } from './action.ts'

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

export const PAGE_QUERY = {
  after: Type.Optional(
    Type.String({ maxLength: LIMITS.cursorCharacters, description: '`next` of the previous page.' }),
  ),
  limit: Type.Integer({ minimum: 1, maximum: LIMITS.adminPage, default: 50 }),
}

export function toPage<Row, Item>({ items, next }: ListPage<Row>, convert: (row: Row) => Item) {
  return { items: items.map(convert), ...(next !== undefined && { next }) }
}

/** The members of a query or a body, or every fault in them. */
export function readMembers(schema: TSchema, sent: unknown, how: { readonly isText: boolean }): unknown {
  // PostgreSQL does not accept it.
  if (JSON.stringify(sent ?? {}).includes('\\u0000')) return failAdmin('member-malformed')
  const read = readChecked(schema, sent, how)
  return isFailure<unknown, InvalidMembers>(read)
    ? failAdmin('members-invalid', { faults: read.faults.map(toFault) })
    : read
}

function toFault({ kind, name, text: expected }: InvalidMembers['faults'][number]): Fault {
  if (kind === 'unknown') return makeFault('member-not-known', { name })
  if (kind === 'missing') return makeFault('member-missing', { name })
  const fault = makeFault('not-as-expected', { expected })
  return name === '' ? fault : makeFault('member-invalid', { name, fault })
}
