import type { Html } from '../../../web/ui/index.ts'

/** The page on which an administrator confirms an operation. */
export interface OperationQuestion<Row = never> {
  title(name: string): string
  readonly text: string | ((row: Row) => Html | string)
  readonly button: string
  /** It ends the access of apps: the page says how much. */
  readonly endsAccess?: true
  /** False: it can be undone. Otherwise its button and the link to its page are red. */
  readonly isDangerous?: false
}

/** The link to that page, on the page of the app or user. */
export interface ActionLink<Subject> {
  readonly text: string
  readonly isMain?: true
  isOffered(subject: Subject): boolean
}

/** The words of a command. `client disable growth` prints `Disabled app growth`. */
export interface CommandWords {
  /** The text of `--help` below the usage. */
  readonly help?: string
  readonly done: string
}
