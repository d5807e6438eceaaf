import { type FactsArgument, fail } from '../../core/index.ts'
import { type Because, type FhirFactsOf, failFor, getFhirWords } from '../reasons/reasons.ts'
import type { SEARCHES } from '../reasons/searches.ts'

/** Why a search or a history cannot be performed. Only `parameter-unknown` may be ignored, and only by a lenient search. */
export type BadSearch = Because<keyof typeof SEARCHES>

/** A search parameter that cannot be used, in place of its clause. */
export interface SearchError extends BadSearch {
  readonly kind: 'error'
}

export function failSearch<const Reason extends keyof typeof SEARCHES>(
  reason: Reason,
  ...facts: FactsArgument<FhirFactsOf<Reason>>
): SearchError {
  return fail({ ...failFor(reason, ...facts), kind: 'error' })
}

/** Whether a search is readable, but takes too much. */
export function isTooCostly({ reason }: BadSearch): boolean {
  return getFhirWords(reason).code === 'too-costly'
}
