/** The words about a failure of the app server. `{name}` stands for the fact of this name. */
export interface AppWords {
  readonly status: number
  /** Of the issue in the response of the API, or of the error page. */
  readonly code: string
  /** Of the error page. */
  readonly title?: string
  /** For the user, or the client of the API. */
  readonly sentence: string
  /** For the log and the audit trail; by default the sentence. */
  readonly detail?: string
  /** What happened, for developers; by default the detail or the sentence. */
  readonly cause?: string
  readonly remedy: string
}
