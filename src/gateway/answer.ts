import type { Readable } from 'node:stream'
import type { NativeContent, Resource } from '../fhir/index.ts'

/** The answer to an interaction, above or inside a Bundle. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** JSON of a resource; a stream where nothing in it has to be looked at. */
  readonly body?: string | Readable | undefined
  /** The content of the Binary in `body`, which is sent in its place. */
  readonly content?: NativeContent | undefined
  /** Of a write: what was there before, for the audit trail. */
  readonly before?: Resource | undefined
}
