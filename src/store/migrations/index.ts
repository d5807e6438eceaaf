import type { Migration } from '../migrate.ts'
import { tables } from './0001-tables.ts'

/** Every migration, in the order in which it is applied. */
export const migrations: readonly Migration[] = [tables]
