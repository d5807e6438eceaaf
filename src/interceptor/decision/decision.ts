import type { Access, AccessFilter, ResourceScope } from '../../smart/index.ts'
import type { Refusal } from '../refusal.ts'

/** Allowed by a granted scope within what it reaches, or refused for a reason that the caller may be told. */
export type Decision =
  | {
      readonly allowed: true
      /** The scope that decided; the user's own resource; public to all; or a Bundle, whose entries decide. */
      readonly by: ResourceScope | 'fhirUser' | 'public' | 'entries'
      /** What the caller may touch, for the server to keep to. */
      readonly access: Access
      /** What the request reaches of the type it is about: what only the stored content can still refuse. */
      readonly within: AccessFilter
    }
  | { readonly allowed: false; readonly refusal: Refusal }
