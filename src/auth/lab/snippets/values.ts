/** The values that the code of an app contains. */
export interface SnippetValues {
  readonly clientId: string
  readonly isPublic: boolean
  /** Undefined if it is not known any more. */
  readonly secret: string | undefined
  /** Without `launch`, which means nothing if the app starts by itself. */
  readonly scope: string
  /** Whether the app may request the scope `launch`. */
  readonly isLaunched: boolean
  readonly redirectUri: string
  readonly fhirBaseUrl: string
  /** What it reads: `{patient}` stands for the id of the patient. */
  readonly requests: readonly string[]
}
