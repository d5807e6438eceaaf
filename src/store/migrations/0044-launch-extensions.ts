import { sql } from 'kysely'
import type { Migration } from '../migrate.ts'

/** Names of columns and values that do not say which extension they belong to. */
export const launchExtensions: Migration = {
  name: '0044-launch-extensions',
  async up(db) {
    await db.schema.dropIndex('grant_lab').execute()
    for (const table of ['launch_token', 'grant'] as const)
      await db.schema.alterTable(table).renameColumn('lab', 'extension').execute()
    for (const table of ['login', 'grant'] as const)
      await sql`update ${sql.table(table)} set basis = replace(basis, '"lab":true', '"developerTools":true')
        where basis like '%"lab":true%'`.execute(db)
  },
}
