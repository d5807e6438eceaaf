import type { EntryInteraction, Interaction } from '../../fhir/index.ts'
import type { AccessCache, FhirRequest, Pages } from '../../fhir-api/index.ts'
import type { PanelMembership, VersionAccess } from '../../smart/index.ts'
import type { Answer } from './answer.ts'
import type { Problem } from './problem.ts'
import type { Repository } from './repository/repository.ts'
import type { ReadBudget } from './work.ts'

/** A call as the handlers take it. */
export interface Call<I extends Interaction = Interaction> extends FhirRequest<I> {
  /** The id that a create shall give, where a transaction has given it already. */
  readonly newId?: string
}

/** What the handlers work with. */
export interface Context {
  readonly repository: Repository
  readonly baseUrl: string
  readonly pages: Pages
  /** Who is on whose panel: the rights of users (`smart.fhir.policy-file`). */
  readonly membership: PanelMembership
  readonly accessCache: AccessCache
  readonly versionAccess: VersionAccess
  /** What the transaction that this is part of writes: `Binary/1`. */
  readonly writing?: ReadonlySet<string>
  /** JSON of the CapabilityStatement. */
  readonly capabilities: () => string
  readonly smartConfiguration: () => object
  readonly clock: () => number
  /** What the searches and reads of a transaction may take. */
  readonly reads?: ReadBudget
  /** `handle` of this room: the entries of a Bundle go the way of requests. */
  readonly handle: (context: Context, call: Call<EntryInteraction>) => Answer | Problem
}

export type Kind = Interaction['kind']
export type InteractionOf<K extends Kind> = Extract<Interaction, { readonly kind: K }>
export type Handler<K extends Kind> = (context: Context, call: Call<InteractionOf<K>>) => Answer | Problem
