import type { TObject, TSchema } from 'typebox'

/** What an endpoint declares. Each API adds its own rules and the function that answers. */
export interface Endpoint<
  Query extends TObject = TObject,
  Body extends TSchema = TSchema,
  Result extends TSchema = TSchema,
> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  /** Below the prefix of its API, with parameters: `/clients/:id`. */
  readonly path: `/${string}`
  readonly title: string
  readonly description?: string
  readonly query?: Query
  readonly body?: Body
  readonly status?: 200 | 201
  /** Undefined for a streamed response. */
  readonly result?: Result
  /** The content types of a streamed response. */
  readonly streams?: readonly string[]
}

/** An API: its endpoints, and what they have in common. */
export interface Api<One extends Endpoint> {
  readonly title: string
  readonly description: string
  readonly url: string
  /** Of all paths. */
  readonly prefix: `/${string}`
  readonly endpoints: readonly One[]
  readonly securitySchemes: object
  /** Unless each endpoint has its own. */
  readonly security?: readonly object[]
  /** Of every endpoint, by name. */
  readonly parameters?: Readonly<Record<string, object>>
  /** The body of an error, and the errors that every endpoint may return, by status. */
  readonly error: {
    readonly name: string
    readonly schema: TSchema
    readonly texts: Readonly<Record<number, string>>
  }
  /** What this API says about an endpoint, beyond what the endpoint declares. */
  describe(endpoint: One): {
    readonly operationId: string
    readonly description?: string | undefined
    readonly members?: object
    readonly example?: object | undefined
  }
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
