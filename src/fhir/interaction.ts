import type { FactsArgument } from '../core/index.ts'
import { fail } from '../core/index.ts'
import type { BUNDLES } from './reasons/bundles.ts'
import type { EXCESSES } from './reasons/excesses.ts'
import type { Because, FhirFactsOf } from './reasons/reasons.ts'
import type { REQUESTS } from './reasons/requests.ts'
import type { SEARCHES } from './reasons/searches.ts'

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
      /** `DELETE` of the status URL of an asynchronous job, which ends the job (R4 async.html). */
      readonly cancels?: true
    }

/** A change of one resource. */
export type WriteInteraction = Extract<
  Interaction,
  {
    readonly kind:
      | 'create'
      | 'update'
      | 'update-conditional'
      | 'patch'
      | 'patch-conditional'
      | 'delete'
      | 'delete-conditional'
  }
>

/** The reasons for which a request, or a Bundle or search in it, cannot be read. */
type MisunderstoodReason =
  | keyof typeof REQUESTS
  | keyof typeof BUNDLES
  | keyof typeof SEARCHES
  | keyof typeof EXCESSES

/** A request that is not a supported FHIR interaction: it has a `kind` as interactions have, and fails for a reason. It is refused, never normalized (ROUTE-6, ROUTE-7). */
export interface Misunderstood extends Because<MisunderstoodReason> {
  readonly kind: 'misunderstood'
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

/** Whether an interaction may change data here or at the upstream. */
export function mayWrite(interaction: Interaction): boolean {
  return isWriting(interaction) || (interaction.kind === 'operation' && mayChange(interaction))
}

/** Whether an operation may change data at the upstream: with GET it must not (R4 operations.html). */
export function mayChange({
  posted,
  cancels,
}: Extract<Interaction, { readonly kind: 'operation' }>): boolean {
  return posted === true || cancels === true
}

/** Whether an interaction may change data here. Our own operations only read. */
export function isWriting({ kind }: Interaction): boolean {
  return WRITING[kind]
}

// R4 datatypes.html#id
const ID = /^[A-Za-z0-9\-.]{1,64}$/

// No character of a FHIR path needs encoding, so an encoded one may hide something (ROUTE-7).
const SEGMENT = /^[A-Za-z0-9\-._$*]+$/

/** Whether FHIR allows a logical id or version id. `.` and `..` are refused as path segments. */
export function isId(text: string): boolean {
  return ID.test(text) && text !== '.' && text !== '..'
}

/** The segments of a path below the FHIR base, or why it is refused. */
export function parsePath(path: string): readonly string[] | Misunderstood {
  if (path === '' || path === '/') return []
  if (!path.startsWith('/')) return misunderstand('path-outside-base')
  const segments = path.slice(1).split('/')
  for (const segment of segments) {
    if (segment === '') return misunderstand('path-with-empty-segment')
    if (segment === '.' || segment === '..') return misunderstand('path-with-dots')
    if (segment.includes('%')) return misunderstand('path-with-encoded-character')
    if (!SEGMENT.test(segment)) return misunderstand('path-with-foreign-character')
  }
  return segments
}

export function misunderstand<const Reason extends keyof typeof REQUESTS>(
  reason: Reason,
  ...facts: FactsArgument<FhirFactsOf<Reason>>
): Misunderstood {
  return fail({ kind: 'misunderstood', reason, facts: facts[0] ?? {} })
}

/** A request that is not understood, because of a failure to read a part of it. */
export function toMisunderstood(
  { reason, facts }: Because<MisunderstoodReason>,
  allow?: readonly string[],
): Misunderstood {
  return fail({ kind: 'misunderstood', reason, facts, ...(allow && { allow }) })
}
