import type { Misunderstood } from '../fhir/index.ts'
import type { Permission, ScopeContext } from '../smart/index.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** No granted scope covers the type and the permission (service.md 7). */
export interface InsufficientScope {
  readonly kind: 'insufficient-scope'
  readonly method: Method
  /** A resource type, or `*` where the request names none. */
  readonly type: string
  readonly permission: Permission
  /** The contexts whose scopes would reach something of the type with this token. */
  readonly contexts: readonly ScopeContext[]
  /** What the token would have to name for scopes of other contexts. */
  readonly lacking?: readonly ('patient' | 'fhirUser')[]
}

/** A scope covers type and permission, and yet the request is outside of what it reaches. */
export interface NotWithin {
  readonly kind: 'not-within'
  /** What would have permitted it, told from the token and the request alone. */
  readonly hint: string
  /** The scope that covers type and permission. */
  readonly by?: string | undefined
}

/** Why a request is turned away. */
export type Refusal =
  | { readonly kind: 'no-bearer' }
  /** `why` is for the log only, unless `told` is set: otherwise the caller learns only that the token is invalid. */
  | { readonly kind: 'bad-token'; readonly why: string; readonly told?: true }
  | { readonly kind: 'expired-token' }
  | { readonly kind: 'no-keys' }
  | { readonly kind: 'no-configuration' }
  | InsufficientScope
  | NotWithin
  | Misunderstood
  /** This server does not offer the operation at this address: no grant would help. */
  | { readonly kind: 'unsupported-operation'; readonly name: string }
  | { readonly kind: 'broken' }
