import type { Migration } from '../migration.ts'

/**
 * Says of each wrong second factor what it was and where it came from. The release before, which does not know the columns,
 * writes rows of one-time codes of strangers.
 */
export const wrongProofs: Migration = {
  name: '0004-wrong-proofs',
  needs: '0001-schema',
  list: () => [
    "alter table wrong_code add column kind text not null default 'code'",
    'alter table wrong_code add column sender_hash text',
    'alter table wrong_code add column address text',
  ],
}
