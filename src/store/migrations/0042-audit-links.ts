import { sql } from 'kysely'
import type { Migration } from '../migrate.ts'

/** The patients of a record about several, by record: `audit verify` compares them with the record. */
export const auditLinks: Migration = {
  name: '0042-audit-links',
  async up(db, dialect) {
    for (const statement of STATEMENTS[dialect]) await sql.raw(statement).execute(db)
    await db.schema
      .createIndex('audit_event_patient_audit_id')
      .on('audit_event_patient')
      .columns(['audit_id', 'patient_id', 'at'])
      .execute()
  },
}

const REMOVE = 'delete from audit_event_patient where audit_id = old.id'

const STATEMENTS = {
  sqlite: [
    'drop trigger audit_event_remove_patients',
    `create trigger audit_event_remove_patients after delete on audit_event when old.patients is not null
     begin ${REMOVE}; end`,
  ],
  postgres: [
    `create or replace function audit_event_remove_patients() returns trigger language plpgsql as
     $$ begin ${REMOVE}; return null; end $$`,
  ],
} as const
