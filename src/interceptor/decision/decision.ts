import type {
  Access,
  AccessFilter,
  EnforcementPolicy,
  Grant,
  GrantedAccess,
  ResourceScope,
} from '../../smart/index.ts'
import type { Method, Refusal } from '../refuse.ts'

/** Allowed by a granted scope within its access filter, or refused for a reason that the caller may know. */
export type Decision =
  | {
      readonly allowed: true
      /** The deciding scope, `fhirUser` for the user's own resource, or `entries` for a Bundle, whose entries decide. */
      readonly by: ResourceScope | 'fhirUser' | 'public' | 'entries'
      /** What the caller may access; the server must apply it. */
      readonly access: Access
      /** The filter for the type that the request is about. */
      readonly within: AccessFilter
    }
  | { readonly allowed: false; readonly refusal: Refusal }

/** Everything that a decision depends on, except the interaction. */
export interface DecisionContext {
  readonly method: Method
  readonly grant: Grant
  readonly policy: EnforcementPolicy
  readonly access: GrantedAccess
}
