import type { Dialect, Migration } from '../migration.ts'

/**
 * Finds the records of an account, the changes to an account or app, and who has access to what, without reading all rows.
 * Keeps the names of removed accounts and apps, when an account was created and last used, and when its password changed.
 * Counts wrong one-time codes and wrong passwords. Marks auditors; for the release before they are users like others.
 * Keeps the links with which users choose a password.
 */
export const who: Migration = {
  name: '0002-who',
  needs: '0001-schema',
  list: dialect => [
    `create table wrong_code (
      id text primary key not null,
      clinician_id text not null references clinician (id) on delete cascade,
      at bigint not null
    )`,
    'create index wrong_code_clinician_id_at on wrong_code (clinician_id, at)',
    'create index wrong_code_at on wrong_code (at)',
    `create table removed_clinician (
      id text primary key not null,
      username text not null,
      display_name text not null,
      fhir_user_id text not null
    )`,
    `create table removed_client (
      client_id text primary key not null,
      name text not null,
      first_party boolean not null
    )`,
    ...KEPT.flatMap(kept => [...createTrigger(kept, dialect), copyRemoved(kept, dialect)]),
    `create table wrong_password (
      id text primary key not null,
      clinician_id text not null references clinician (id) on delete cascade,
      sender_hash text,
      at bigint not null,
      address text not null
    )`,
    'create index wrong_password_clinician_id_sender_hash on wrong_password (clinician_id, sender_hash)',
    `create table known_sender (
      clinician_id text not null references clinician (id) on delete cascade,
      sender_hash text not null,
      seen_at bigint not null,
      constraint known_sender_key primary key (clinician_id, sender_hash)
    )`,
    'create index known_sender_seen_at on known_sender (seen_at)',
    `create table activation_link (
      clinician_id text primary key not null references clinician (id) on delete cascade,
      token_hash text not null unique,
      account_mark text not null,
      expires_at bigint not null,
      used_at bigint
    )`,
    'create index activation_link_expires_at on activation_link (expires_at)',
    'alter table clinician add column created_at bigint',
    'alter table clinician add column signed_in_at bigint',
    'alter table clinician add column password_changed_at bigint',
    'alter table clinician add column auditor boolean not null default false',
    `update clinician set signed_in_at =
      (select max(login.created_at) from login where login.clinician_id = clinician.id)`,
  ],
  listIndexes: dialect => [
    {
      name: 'audit_event_subject',
      table: 'audit_event',
      of: `(subject, ${ORDER[dialect]}) where subject is not null`,
    },
    {
      name: 'audit_event_change',
      table: 'audit_event',
      of: `(${ORDER[dialect]}) where kind in ('admin', 'register') and (request is null or request not in ('audit list', 'audit export ndjson', 'audit export csv'))`,
    },
    { name: 'grant_created_at', table: 'grant', of: '(created_at, id)' },
    {
      name: 'grant_patient_id_created_at',
      table: 'grant',
      of: '(patient_id, created_at, id) where patient_id is not null',
    },
  ],
}

/** Every index of SQLite ends with the rowid, which is the id of a record. */
const ORDER: Readonly<Record<Dialect, string>> = { sqlite: 'at', postgres: 'at, id' }

/** What stays of a row that was deleted, by any statement. */
interface Kept {
  readonly table: 'clinician' | 'client'
  readonly columns: readonly [key: string, ...others: string[]]
  /** The values of the columns in the audit record of an earlier removal. */
  copied(read: (member: string) => string, dialect: Dialect): readonly string[]
  /** The beginnings of its `request`. */
  readonly operations: readonly string[]
}

const KEPT: readonly Kept[] = [
  {
    table: 'clinician',
    columns: ['id', 'username', 'display_name', 'fhir_user_id'],
    copied: read => [
      read('id'),
      read('username'),
      read('displayName'),
      `replace(${read('fhirUser')}, 'Practitioner/', '')`,
    ],
    operations: ['clinician remove', 'account remove'],
  },
  {
    table: 'client',
    columns: ['client_id', 'name', 'first_party'],
    copied: (read, dialect) => [
      read('client_id'),
      read('client_name'),
      `coalesce(${read('first_party')}${dialect === 'sqlite' ? ', 0' : '::boolean, false'})`,
    ],
    operations: ['client remove'],
  },
]

function createTrigger({ table, columns }: Kept, dialect: Dialect): readonly string[] {
  const [key, ...others] = columns
  const does = `insert into removed_${table} (${columns.join(', ')})
    values (${columns.map(column => `old.${column}`).join(', ')})
    on conflict (${key}) do update set ${others.map(column => `${column} = excluded.${column}`).join(', ')}`
  const name = `keep_removed_${table}`
  return dialect === 'sqlite'
    ? [`create trigger ${name} after delete on ${table} begin ${does}; end`]
    : [
        `create function ${name}() returns trigger language plpgsql as $$ begin ${does}; return null; end $$`,
        `create trigger ${name} after delete on ${table} for each row execute function ${name}()`,
      ]
}

/** Those that were removed before, by the records of their removal. The newest one names them. */
function copyRemoved({ table, columns, copied, operations }: Kept, dialect: Dialect): string {
  const values = copied(
    member =>
      dialect === 'sqlite'
        ? `json_extract(details, '$.before.${member}')`
        : `(details::json #>> '{before,${member}}')`,
    dialect,
  )
  const isRemoval = operations.map(operation => `request like '${operation} %'`).join(' or ')
  return `insert into removed_${table} (${columns.join(', ')})
    select ${values.join(', ')} from audit_event
    where kind <> 'fhir' and kind = 'admin' and allowed and (${isRemoval})
      and ${values.map(value => `${value} is not null`).join(' and ')}
    order by id desc on conflict do nothing`
}
