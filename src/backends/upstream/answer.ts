import type { Readable } from 'node:stream'
import type { NativeContent, Resource } from '../../fhir/index.ts'

/** The answer to an interaction, above or inside a Bundle. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Whether `body` is JSON that was made here: it need not be checked again. */
  readonly isOwn?: true
  /** JSON of a resource; a stream where nothing in it has to be looked at. */
  readonly body?: string | Readable | undefined
  /** The content of the Binary in `body`, which is sent in its place. */
  readonly content?: NativeContent | undefined
  /** Of a write: what was there before, for the audit trail. */
  readonly before?: Resource | undefined
}
