import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox'
import { Value, ValueErrorType } from '@sinclair/typebox/value'
import type { FastifyInstance } from 'fastify'
import type { Html } from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { type Admin, type AdminFailure, failAdmin, type ListPage, type Operation } from './action.ts'

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

/** A response that is sent in parts. */
export class StreamedText {
  readonly type: string
  readonly parts: AsyncIterable<string>
  constructor(type: string, parts: AsyncIterable<string>) {
    this.type = type
    this.parts = parts
  }
}

/** A request for the page of a confirmation. */
export interface Asked extends Pick<AdminCall, 'admin' | 'params'> {
  /** The name of a patient, if the administrator may read it. */
  findPatient(id: string): Promise<string | undefined>
}

/** What the administrator has to know about the operation. */
export interface Answered {
  readonly text: Html | string
  readonly facts?: readonly (readonly [name: string, value: Html | string])[]
  /** If it depends on the subject. */
  readonly back?: string
}

/** An endpoint of the administration API. The routes, the checks and the OpenAPI document are all derived from it. */
export type Endpoint<Query extends TObject = TObject, Body extends TSchema = TSchema> = {
  /** Below `/admin/api`. */
  readonly path: `/${string}`
  readonly title: string
  readonly description?: string
  readonly query?: Query
  readonly body?: Body
  readonly status?: 200 | 201
  /** Undefined for a streamed response. */
  readonly result?: TSchema
  /** The content types of a streamed response. */
  readonly streams?: readonly string[]
  /** On which an administrator confirms the operation. */
  readonly page?: {
    /** Below `/admin`, with the parameters of the endpoint. */
    readonly path: string
    readonly section: 'apps' | 'access' | 'keys'
    /** A question. */
    readonly title: string
    readonly button: string
    readonly isDangerous?: boolean
    /** The page below `/admin` to which `Cancel` leads, and the operation. */
    readonly back: string
    /** The `done` of that page after the operation. */
    readonly done: string
    ask(call: Asked): Promise<Answered | AdminFailure>
  }
  /** Returns the result, a `StreamedText` or an `AdminFailure`. */
  handle(call: AdminCall<Query, Body>): Promise<unknown>
} & (
  | { readonly method: 'GET'; readonly operation?: Operation }
  | { readonly method: 'POST' | 'PATCH' | 'PUT' | 'DELETE'; readonly operation: Operation }
)

/** Infers the types of the members from their schemas. */
export function defineEndpoint<Query extends TObject, Body extends TSchema>(
  endpoint: Endpoint<Query, Body>,
): Endpoint {
  return endpoint
}

export const CLOSED = { additionalProperties: false } as const

export const NONE = Type.Object({}, CLOSED)

export const Time = Type.String({ format: 'date-time' })

export function formatTime(at: number): string {
  return new Date(at).toISOString()
}

export const PAGE_QUERY = {
  after: Type.Optional(
    Type.String({ maxLength: LIMITS.cursorCharacters, description: '`next` of the previous page.' }),
  ),
  limit: Type.Integer({ minimum: 1, maximum: LIMITS.adminPage, default: 50 }),
}

export function PageOf<Item extends TSchema>(item: Item) {
  return Type.Object(
    {
      items: Type.Array(item),
      next: Type.Optional(
        Type.String({ description: 'For `after` of the next page. Absent on the last page.' }),
      ),
    },
    { additionalProperties: false },
  )
}

export function toPage<Row, Item>({ items, next }: ListPage<Row>, convert: (row: Row) => Item) {
  return { items: items.map(convert), ...(next !== undefined && { next }) }
}

/** Reads the members of a query or a body. Unknown members are refused. */
export function readMembers(schema: TSchema, sent: unknown, isText: boolean): unknown {
  const values = isText ? convertTexts(schema, sent) : (sent ?? {})
  // PostgreSQL does not accept it.
  if (JSON.stringify(values).includes('\\u0000')) return failAdmin('member-malformed')
  const complete = Value.Default(schema, Value.Clone(values))
  const faults = listFaults(schema, complete)
  return faults.length === 0 ? complete : failAdmin('members-invalid', { faults: faults.join('; ') })
}

/** Faults that a response names. */
const NAMED_FAULTS = 20

/** What is wrong with each member, the unknown ones first: one of them may be a misspelled one that is missing. */
function listFaults(schema: TSchema, values: unknown): readonly string[] {
  const texts = new Map<string, { readonly isUnknown: boolean; readonly text: string }>()
  for (const { path, message, type } of Value.Errors(schema, values)) {
    const name = path.slice(1).replaceAll('/', '.')
    // The other errors of a member follow from the first one.
    if (!texts.has(name))
      texts.set(name, { isUnknown: UNKNOWN.has(type), text: describeError(name, message, type) })
    if (texts.size >= NAMED_FAULTS) break
  }
  return [...texts.values()]
    .toSorted((a, b) => Number(b.isUnknown) - Number(a.isUnknown))
    .map(({ text }) => text)
}

const UNKNOWN: ReadonlySet<ValueErrorType> = new Set([ValueErrorType.ObjectAdditionalProperties])

function describeError(path: string, message: string, type: ValueErrorType): string {
  if (path === '') return message.charAt(0).toLowerCase() + message.slice(1)
  const name = sanitizeName(path)
  if (UNKNOWN.has(type)) return `there is no member ${name}`
  if (type === ValueErrorType.ObjectRequiredProperty) return `the member ${name} is missing`
  return `the member ${name} is not valid: ${message.charAt(0).toLowerCase()}${message.slice(1)}`
}

/** The members of a query are texts. */
function convertTexts(schema: TSchema, sent: unknown): unknown {
  const properties: Readonly<Record<string, TSchema>> = schema.properties ?? {}
  const entries = Object.entries(sent ?? {}).map(([name, text]) => [
    name,
    Object.hasOwn(properties, name) ? convertText(properties[name], text) : text,
  ])
  return Object.fromEntries(entries)
}

function convertText(property: TSchema | undefined, text: unknown): unknown {
  if (property?.type === 'integer' && typeof text === 'string' && /^\d{1,9}$/.test(text)) return Number(text)
  if (property?.type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

/** A name from a request is repeated only if it is a plain name. */
function sanitizeName(name: string): string {
  return /^[\w.-]{1,60}$/.test(name) ? name : '(not a name)'
}
