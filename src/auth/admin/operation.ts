/** The page on which an administrator confirms an operation on an app or a user. */
export interface Question {
  title(name: string): string
  readonly text: string
  readonly button: string
  readonly isDangerous?: boolean
}

/** The link to that page, on the page of the app or user. */
export interface ActionLink<Subject> {
  readonly text: string
  /** By default `btn--quiet`. */
  readonly style?: string
  isOffered(subject: Subject): boolean
}

/** The words of a command. `client disable growth` prints `Disabled client growth`. */
export interface CommandWords {
  /** The text of `--help` below the usage. */
  readonly help?: string
  readonly done: string
}
