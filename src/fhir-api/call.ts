import type { Interaction, Preconditions, Preferences } from '../fhir/index.ts'
import type { Access, Authenticated } from '../smart/index.ts'

/** A request below HTTP, allowed and read: the same for a request of its own and for an entry of a Bundle. */
export interface Call<I extends Interaction = Interaction> {
  readonly interaction: I
  /** Exact JSON (`parseExact`); undefined where there was none. */
  readonly body?: unknown
  readonly preconditions: Preconditions
  readonly preferences: Preferences
  readonly access: Access
  /** What decided, for the audit trail. */
  readonly by?: string | undefined
  /** Who judges the interactions that this one holds (Bundle entries, a page's search). */
  readonly admitted: Authenticated
}

/** One that came by itself. */
export interface FhirRequest extends Call {
  readonly requestId: string
  /** Destroyed when the caller has gone. */
  readonly connection: { readonly destroyed: boolean }
  /** Logs an error that does not become the response to the whole request. */
  readonly report: (error: unknown) => void
}
