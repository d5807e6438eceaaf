import type { Migration } from '../migration.ts'

/** Grants of agents, whose tokens are for another resource than the FHIR base, and clients that a document describes. */
export const agents: Migration = {
  name: '0006-agents',
  needs: '0001-schema',
  list: () => [
    'alter table "grant" add column resource text',
    'alter table client add column document_until bigint',
  ],
}
