import { sql } from 'kysely'
import type { Migration } from '../migrate.ts'

/**
 * The details of OAuth events; failed requests by their request id; the OAuth events of a launch without its FHIR
 * requests. An allowed FHIR request is in none of these indexes. Searches repeat the conditions word for word.
 */
export const auditDetails: Migration = {
  name: '0021-audit-details',
  async up(db, dialect) {
    const order = dialect === 'sqlite' ? 'at' : 'at, id'
    await db.schema.alterTable('audit_event').addColumn('details', 'text').execute()
    for (const [name, columns, condition] of [
      ['audit_event_request_id', `request_id, ${order}`, 'allowed = false or status >= 400 or status = 0'],
      [
        'audit_event_oauth',
        `launch_id, ${order}`,
        "kind in ('launch', 'authorize', 'token', 'refresh', 'introspect', 'revoke')",
      ],
    ])
      await sql.raw(`create index ${name} on audit_event (${columns}) where ${condition}`).execute(db)
  },
}
