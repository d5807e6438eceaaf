import type { Misunderstood } from '../fhir/index.ts'
import type { Permission, ScopeContext } from '../smart/index.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** No granted scope covers the type and the permission. */
export interface InsufficientScope {
  readonly kind: 'insufficient-scope'
  readonly method: Method
  /** A resource type, or `*` if the request names none. */
  readonly type: string
  readonly permission: Permission
  /** The contexts whose scopes would grant access with this token. */
  readonly contexts: readonly ScopeContext[]
  /** The claims that scopes of the other contexts would need. */
  readonly missing: readonly ('patient' | 'fhirUser')[]
}

/** A scope covers the type and the permission, but not what the request is about. */
export interface NotWithin {
  readonly kind: 'not-within'
  /** What would permit the request, from the token and the request alone. */
  readonly hint: string
  readonly by?: string | undefined
}

/** Why a request is refused. */
export type Refusal =
  | { readonly kind: 'no-bearer' }
  /** `why` is for the log only, unless `told` is set. */
  | { readonly kind: 'bad-token'; readonly why: string; readonly told?: true }
  | { readonly kind: 'expired-token' }
  | { readonly kind: 'no-keys' }
  | { readonly kind: 'no-configuration' }
  | InsufficientScope
  | NotWithin
  | Misunderstood
  /** The server does not offer the operation at this URL, whatever the grant. */
  | { readonly kind: 'unsupported-operation'; readonly name: string }
  | { readonly kind: 'broken' }
