import type { Store } from './store.ts'

/** One step of the schema. Released migrations never change: a change is a new migration. */
export interface Migration {
  readonly name: string
  /** Its statements, in order. */
  list(dialect: Store['dialect']): readonly string[]
}
