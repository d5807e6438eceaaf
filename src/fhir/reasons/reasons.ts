/** Every reason for which a FHIR server refuses or fails an expected request, with its words. Nothing decides by a sentence. */
import { type FactsIn, type FailBy, failBy, fill, joinTables, type NamedFailure } from '../../core/index.ts'
import { INSUFFICIENT_SCOPE, NOT_WITHIN, REFUSALS, TOKENS } from './access.ts'
import { BUNDLES } from './bundles.ts'
import { CALLS } from './calls.ts'
import { BODIES, MALFORMED_PATCHES, RESOURCES, UNUSABLE_PATCHES } from './content.ts'
import { EXCESSES } from './excesses.ts'
import { EXPORTS } from './exports.ts'
import { REQUESTS } from './requests.ts'
import { SEARCHES } from './searches.ts'
import { UPSTREAM } from './upstream.ts'
import type { FhirWords } from './words.ts'

/** The tables by their titles in docs/errors.md. */
export const FHIR_REASON_TABLES = {
  'FHIR server: refused before the request is read': REFUSALS,
  'FHIR server: tokens that are not accepted': TOKENS,
  'FHIR server: requests that are not within the grant': NOT_WITHIN,
  'FHIR server: requests that are not understood': REQUESTS,
  'FHIR server: bodies': BODIES,
  'FHIR server: patches': { ...MALFORMED_PATCHES, ...UNUSABLE_PATCHES },
  'FHIR server: resources': RESOURCES,
  'FHIR server: searches': SEARCHES,
  'FHIR server: Bundles': BUNDLES,
  'FHIR server: bulk export': EXPORTS,
  'FHIR server: too much for one request': EXCESSES,
  'FHIR server: the upstream': UPSTREAM,
  'FHIR server: messages of assistants': CALLS,
} as const

export const FHIR_REASONS = joinTables(FHIR_REASON_TABLES)

export type FhirReason = keyof typeof FHIR_REASONS

/** The facts that a reason needs. */
export type FhirFactsOf<Reason extends FhirReason> = FactsIn<(typeof FHIR_REASONS)[Reason]>

/** A failure that names its reason. */
export interface Because<Reason extends FhirReason = FhirReason> extends NamedFailure<Reason> {
  /** The entry of a Bundle that is not understood. */
  readonly entry?: number
  /** With 405: the methods that the URL supports. */
  readonly allow?: readonly string[]
  /** Further headers of the response. */
  readonly headers?: Readonly<Record<string, string>>
}

export const failFor: FailBy<typeof FHIR_REASONS> = failBy()

export function getFhirWords(reason: FhirReason): FhirWords {
  return FHIR_REASONS[reason]
}

/** Whether a name, such as one in a record, is that of a reason. */
export function isFhirReason(name: string): name is FhirReason {
  return Object.hasOwn(FHIR_REASONS, name)
}

/** The sentence of a failure. */
export function describeFailed({ reason, facts }: Pick<Because, 'reason' | 'facts'>): string {
  return fill(FHIR_REASONS[reason].sentence, facts)
}

/** Whether a failure is one of too much for one request. */
export function isExcess({ reason }: { readonly reason: string }): boolean {
  return Object.hasOwn(EXCESSES, reason)
}

const GROUPS = {
  misunderstood: REQUESTS,
  'bad-token': TOKENS,
  'not-within': NOT_WITHIN,
  'insufficient-scope': INSUFFICIENT_SCOPE,
  'bad-search': SEARCHES,
  'bad-bundle': BUNDLES,
  'malformed-patch': MALFORMED_PATCHES,
  'unusable-patch': UNUSABLE_PATCHES,
  'refused-call': CALLS,
} as const

/** Whether a reason is one of a group. */
export function isFor(group: keyof typeof GROUPS, reason: string): boolean {
  return Object.hasOwn(GROUPS[group], reason)
}

const COUNTED = ['misunderstood', 'bad-token', 'not-within', 'insufficient-scope'] as const

/** The reason as metrics count it: one name for the reasons of a group. */
export function nameGroup(reason: string): string {
  return COUNTED.find(group => isFor(group, reason)) ?? reason
}
