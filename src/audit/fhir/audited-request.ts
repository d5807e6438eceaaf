import type { Interaction, Misunderstood, Refused, Resource } from '../../fhir/index.ts'
import type { Grant } from '../../smart/index.ts'
import type { Kept } from './patients-in.ts'

/** A request to a FHIR server, or an entry of a Bundle, with its decision and its answer. */
export interface AuditedRequest {
  readonly at: number
  readonly method: string
  readonly interaction: Interaction | Misunderstood
  /** Raw, below the base: kept only as far as it looks like FHIR, where the interaction is not understood. */
  readonly address?: string | undefined
  /** Of the token, once it was found good, also where it is so no more. */
  readonly grant?: Grant | undefined
  /** Whether no token was found good, now or before. */
  readonly anonymous?: boolean | undefined
  /** What decided, where it was allowed. */
  readonly by?: string | undefined
  /** Why it was turned away: by the guard, by the stored content, or since it is no FHIR. Undefined: it was allowed. */
  readonly refusal?: Refused | string | undefined
  readonly status: number
  /** JSON that was answered with: tells whose data it carries. */
  readonly body?: string | undefined
  /** The same, parsed, of an entry of a Bundle. */
  readonly resource?: unknown
  /** JSON that was sent, parsed. */
  readonly sent?: unknown
  /** Of the version that was written, or of the resource that was deleted: `Condition/1/_history/2`. */
  readonly location?: string | undefined
  /** Of a write: the resource as it was before, where the server has it in hand. */
  readonly before?: Resource | undefined
  readonly kept?: Kept | undefined
  readonly requestId?: string | undefined
  readonly clientAddress?: string | undefined
}
