import type { Migration } from '../migration.ts'

/** Bulk exports: what they select, and the files that they have. They hold no data of patients. */
export const exportJobs: Migration = {
  name: '0005-export-jobs',
  needs: '0001-schema',
  list: () => [
    `create table export_job (
      id text primary key,
      issuer text not null,
      client_id text not null,
      level text not null,
      types text not null,
      started_at bigint not null,
      expires_at bigint not null,
      next_poll_at bigint not null,
      revision integer not null,
      files integer,
      order_sealed text not null,
      plan_sealed text
    )`,
    'create index export_job_client_id on export_job (client_id, started_at)',
    'create index export_job_expires_at on export_job (expires_at)',
  ],
}
