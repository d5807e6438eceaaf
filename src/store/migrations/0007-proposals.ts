import type { Migration } from '../migration.ts'

/** Changes that assistants propose, and that a person signs or rejects. */
export const proposals: Migration = {
  name: '0007-proposals',
  needs: '0001-schema',
  list: () => [
    `create table proposal (
      id text primary key,
      clinician_id text not null references clinician (id) on delete cascade,
      client_id text not null,
      grant_id text not null,
      patient_id text,
      action text not null,
      resource_type text not null,
      state text not null,
      created_at bigint not null,
      expires_at bigint not null,
      decided_at bigint,
      change_sealed text not null,
      outcome_sealed text
    )`,
    'create index proposal_clinician_id on proposal (clinician_id, created_at)',
    'create index proposal_created_at on proposal (created_at, id)',
    'create index proposal_expires_at on proposal (expires_at)',
  ],
}
