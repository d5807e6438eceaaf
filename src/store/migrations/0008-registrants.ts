import type { Migration } from '../migration.ts'

/** Who registered an app. The release before, which does not know the column, leaves it empty. */
export const registrants: Migration = {
  name: '0008-registrants',
  needs: '0001-schema',
  list: () => [
    'alter table client add column registered_by text references clinician (id) on delete set null',
    'create index client_registered_by on client (registered_by)',
  ],
}
