import { type Failed, fail } from '../../core/index.ts'

/** Why a search or a history cannot be performed. */
export interface BadSearch extends Failed {
  readonly problem: 'bad-search'
  readonly code: 'invalid' | 'not-supported' | 'too-costly'
  readonly text: string
  /** Why a parameter cannot be used. Only `unknown-parameter` may be ignored, and only by a lenient search. */
  readonly reason?: keyof typeof CODES
}

export function failSearch(text: string, code: BadSearch['code'] = 'invalid'): BadSearch {
  return fail({ problem: 'bad-search', code, text })
}

/** A search parameter that cannot be used, in place of its clause. */
export interface SearchError extends BadSearch {
  readonly kind: 'error'
  readonly reason: keyof typeof CODES
}

const CODES = {
  'invalid-value': 'invalid',
  'unknown-parameter': 'not-supported',
  'unsupported-modifier': 'not-supported',
  'too-costly': 'too-costly',
} as const satisfies Record<string, BadSearch['code']>

export function createSearchError(reason: SearchError['reason'], text: string): SearchError {
  return { ...failSearch(text, CODES[reason]), kind: 'error', reason }
}
