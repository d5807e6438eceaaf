import type { Migration } from '../migration.ts'

/** What an app states about its maker (RFC 7591, 2). */
export const makers: Migration = {
  name: '0003-makers',
  needs: '0001-schema',
  list: () => [
    'alter table client add column website_url text',
    'alter table client add column policy_url text',
    'alter table client add column terms_url text',
    "alter table client add column contacts text not null default '[]'",
  ],
}
