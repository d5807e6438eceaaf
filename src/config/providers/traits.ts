/** What the rest of the program knows about a provider, whatever its kind. */
export interface ProviderTraits {
  /** The issuer of its users. */
  readonly issuer: string
  readonly url: string
  /** The files that its settings name. */
  readonly files: readonly (string | undefined)[]
  /** The settings that are secrets. */
  readonly secrets: readonly string[]
  /** Patients and related persons, or clinicians. */
  readonly users: 'clinicians' | 'patients'
  /**
   * Users sign in on its own pages, where it also checks their second factors, or in our form, with passwords that it
   * checks.
   */
  readonly signIn: 'redirect' | 'form'
  /** The claims that may be the subject of a user. The first one that a user has counts. */
  readonly subjectClaims: readonly string[]
  /** How sure and how recent a sign-in must be. */
  readonly acrValues: readonly string[]
  readonly maxAge: number | undefined
  /** Where it looks for users and their groups. A change ends their logins. */
  readonly directory: readonly unknown[] | undefined
  /** What a successful check shows. */
  readonly works: string
}
