/** The used codes of R4's IssueType. */
export type IssueCode =
  | 'login'
  | 'expired'
  | 'forbidden'
  | 'invalid'
  | 'structure'
  | 'required'
  | 'value'
  | 'invariant'
  | 'not-supported'
  | 'not-found'
  | 'deleted'
  | 'conflict'
  | 'duplicate'
  | 'multiple-matches'
  | 'too-long'
  | 'too-costly'
  | 'throttled'
  | 'code-invalid'
  | 'processing'
  | 'transient'
  | 'timeout'
  | 'exception'
  | 'incomplete'
  | 'suppressed'
  | 'informational'

/** The words about a failure of a FHIR request. `{name}` stands for the fact of this name. */
export interface FhirWords {
  readonly status: number
  readonly code: IssueCode
  readonly sentence: string
  /** Follows the sentence in the diagnostics. */
  readonly hint?: string
  /** What happened, for developers; by default the hint or the sentence. */
  readonly cause?: string
  /** What to do. */
  readonly remedy: string
  /** Of `Retry-After`, in seconds. */
  readonly retryAfter?: string
  /** Of `WWW-Authenticate`. */
  readonly challenge?: string
}

type Sentences = Readonly<Record<string, string>>

/** The rows of reasons that have everything in common but the sentence. */
export function share<const Own extends Sentences>(common: Omit<FhirWords, 'sentence'>, sentences: Own) {
  const rows = Object.entries(sentences).map(([reason, sentence]) => [reason, { ...common, sentence }])
  return Object.fromEntries(rows) as {
    readonly [Reason in keyof Own]: FhirWords & { readonly sentence: Own[Reason] }
  }
}

/** The rows of reasons that have everything in common but the hint. */
export function shareButHint<const Own extends Sentences>(common: Omit<FhirWords, 'hint'>, hints: Own) {
  const rows = Object.entries(hints).map(([reason, hint]) => [reason, { ...common, hint }])
  return Object.fromEntries(rows) as {
    readonly [Reason in keyof Own]: FhirWords & { readonly hint: Own[Reason] }
  }
}
