import type { Migration } from '../migration.ts'

/**
 * What an app states about its maker (RFC 7591, 2). Finds the apps that a user allowed, and the accounts that open a record,
 * without reading all rows.
 */
export const makers: Migration = {
  name: '0003-makers',
  needs: '0001-schema',
  list: () => [
    'alter table client add column website_url text',
    'alter table client add column policy_url text',
    'alter table client add column terms_url text',
    "alter table client add column contacts text not null default '[]'",
  ],
  listIndexes: dialect => [
    { name: 'clinician_fhir_user_id', table: 'clinician', of: '(fhir_user_id)' },
    {
      name: 'account_related_person_related_person_id',
      table: 'account_related_person',
      of: '(related_person_id)',
    },
    {
      name: 'audit_event_own',
      table: 'audit_event',
      of: `(subject, ${dialect === 'sqlite' ? 'at' : 'at, id'}) where kind in ('authorize', 'revoke', 'logout')`,
    },
  ],
}
