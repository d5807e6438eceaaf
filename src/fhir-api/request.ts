import type { Interaction, Preconditions, Preferences } from '../fhir/index.ts'
import type { Access, Authenticated } from '../smart/index.ts'

export type Kind = Interaction['kind']
export type InteractionOf<K extends Kind> = Extract<Interaction, { readonly kind: K }>
export type Search = InteractionOf<'search-type' | 'search-system' | 'search-compartment'>
export type History = InteractionOf<'history-instance' | 'history-type' | 'history-system'>
export type Operation = InteractionOf<'operation'>

/** An allowed and parsed request: one that came over HTTP, or an entry of a Bundle. */
export interface FhirRequest<I extends Interaction = Interaction> {
  readonly interaction: I
  /** Exact JSON (`parseExact`); undefined where there was none. */
  readonly body?: unknown
  readonly preconditions: Preconditions
  readonly preferences: Preferences
  readonly access: Access
  /** The scope that allowed the request, for the audit trail. */
  readonly by?: string | undefined
  /** Decides the interactions that this one contains: the entries of a Bundle, the search of a page. */
  readonly authenticated: Authenticated
  readonly requestId: string
  /** Destroyed when the caller has closed the connection. */
  readonly connection: { readonly destroyed: boolean }
  /** Logs an error that does not become the response to the whole request. */
  readonly report: (error: unknown) => void
  /** An entry of a Bundle: its response becomes a part of another one, so it is never a stream. */
  readonly isEntry?: true
}
