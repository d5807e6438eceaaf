import type { Migration } from '../migration.ts'

/** Finds the records of an account, and who has access to what, without reading all rows. Counts wrong one-time codes. */
export const who: Migration = {
  name: '0002-who',
  needs: '0001-schema',
  list: () => [
    `create table wrong_code (
      id text primary key not null,
      clinician_id text not null references clinician (id) on delete cascade,
      at bigint not null
    )`,
    'create index wrong_code_clinician_id_at on wrong_code (clinician_id, at)',
    'create index wrong_code_at on wrong_code (at)',
  ],
  listIndexes: dialect => [
    {
      name: 'audit_event_subject',
      table: 'audit_event',
      // Every index of SQLite ends with the rowid, which is the id of a record.
      of: `(subject, ${dialect === 'sqlite' ? 'at' : 'at, id'}) where subject is not null`,
    },
    { name: 'grant_created_at', table: 'grant', of: '(created_at, id)' },
    {
      name: 'grant_patient_id_created_at',
      table: 'grant',
      of: '(patient_id, created_at, id) where patient_id is not null',
    },
  ],
}
