import type { Store } from './store.ts'

/** One step of the schema. Released migrations never change: a change is a new migration. */
export interface Migration {
  readonly name: string
  /**
   * The migration that code must know to work with the database after this one. A migration that only adds what older
   * code may ignore names an older one, so that servers of both versions run side by side. A migration that removes
   * something names the one since which no code uses it.
   */
  readonly needs: string
  /** Its statements, in order. */
  list(dialect: Store['dialect']): readonly string[]
}
