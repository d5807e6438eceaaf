/** Search parameters in the order they were sent, decoded. */
export type Params = readonly (readonly [name: string, value: string])[]

/**
 * A FHIR interaction (R4 http.html). The FHIR API and the interceptor share this value; any other request is refused.
 */
export type Interaction =
  | { readonly kind: 'capabilities' }
  | { readonly kind: 'smart-configuration' }
  | { readonly kind: 'read'; readonly type: string; readonly id: string; readonly params: Params }
  | {
      readonly kind: 'vread'
      readonly type: string
      readonly id: string
      readonly version: string
      readonly params: Params
    }
  | { readonly kind: 'history-instance'; readonly type: string; readonly id: string; readonly params: Params }
  | { readonly kind: 'history-type'; readonly type: string; readonly params: Params }
  | { readonly kind: 'history-system'; readonly params: Params }
  | { readonly kind: 'search-type'; readonly type: string; readonly params: Params; readonly posted?: true }
  | { readonly kind: 'search-system'; readonly params: Params; readonly posted?: true }
  /** `Patient/1/Condition?…`; the type may be `*`. */
  | {
      readonly kind: 'search-compartment'
      readonly compartment: string
      readonly id: string
      readonly type: string
      readonly params: Params
      readonly posted?: true
    }
  | { readonly kind: 'create'; readonly type: string; readonly ifNoneExist?: Params }
  | { readonly kind: 'update'; readonly type: string; readonly id: string }
  | { readonly kind: 'update-conditional'; readonly type: string; readonly params: Params }
  | { readonly kind: 'patch'; readonly type: string; readonly id: string }
  | { readonly kind: 'patch-conditional'; readonly type: string; readonly params: Params }
  | { readonly kind: 'delete'; readonly type: string; readonly id: string }
  | { readonly kind: 'delete-conditional'; readonly type: string; readonly params: Params }
  /** `POST [base]`: a batch or transaction; each entry is an interaction. */
  | { readonly kind: 'bundle' }
  | {
      readonly kind: 'operation'
      /** With its `$`. */
      readonly name: string
      readonly type?: string
      readonly id?: string
      readonly params: Params
      readonly posted?: true
    }

/** A request that is not a supported FHIR interaction. It is refused, never normalised (ROUTE-6, ROUTE-7). */
export interface Misunderstood {
  readonly kind: 'misunderstood'
  readonly status: 400 | 404 | 405 | 415
  readonly text: string
  /** The request is too long, but not malformed. */
  readonly isExcess?: true
  /** With 405: the methods that the URL supports. */
  readonly allow?: readonly string[]
}

/** The two interactions that clients make before they have a token (BEARER-3). */
export function isPublic(interaction: Interaction | Misunderstood): boolean {
  return interaction.kind === 'capabilities' || interaction.kind === 'smart-configuration'
}

const WRITING = {
  capabilities: false,
  'smart-configuration': false,
  read: false,
  vread: false,
  'history-instance': false,
  'history-type': false,
  'history-system': false,
  'search-type': false,
  'search-system': false,
  'search-compartment': false,
  create: true,
  update: true,
  'update-conditional': true,
  patch: true,
  'patch-conditional': true,
  delete: true,
  'delete-conditional': true,
  bundle: true,
  operation: false,
} as const satisfies Readonly<Record<Interaction['kind'], boolean>>

/** Whether an interaction may change data here or at the upstream, which may change data in an operation by POST. */
export function mayWrite(interaction: Interaction): boolean {
  return isWriting(interaction) || (interaction.kind === 'operation' && interaction.posted === true)
}

/** Whether an interaction may change data here. Our own operations only read. */
export function isWriting({ kind }: Interaction): boolean {
  return WRITING[kind]
}
