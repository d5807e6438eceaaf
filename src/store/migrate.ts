import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'
import type { Store } from './store.ts'

/** One step of the schema. Released migrations never change: a change is a new migration. */
export interface Migration {
  readonly name: string
  up(db: Kysely<Schema>, dialect: Store['dialect']): Promise<void>
}
