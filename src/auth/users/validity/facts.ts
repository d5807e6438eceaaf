import { type Kysely, sql } from 'kysely'
import { lockRows, prepareQuery, type Schema } from '../../../store/index.ts'
import { isPatientUser } from '../../base/user.ts'
import { type AccessRules, type Basis, computeAccountMark, findEnd, type Given } from './rule.ts'

/** The columns of a query of logins or grants, joined with `clinician` and `clinician_link`, that `keepGood` reads. */
export const ACCOUNT_COLUMNS = [
  'clinician.id as account_id',
  'clinician.password_hash',
  'clinician.fhir_user_id',
  'clinician.access_version',
  'clinician.disabled as account_disabled',
  'clinician.for_loopback as account_for_loopback',
  'clinician.admin as account_admin',
  'clinician.auditor as account_auditor',
  'clinician_link.clinician_id as linked_id',
  'clinician_link.provisioned as link_provisioned',
] as const

interface StoredRow {
  readonly account_mark: string
  readonly basis: string
  readonly issuer: string | null
  readonly account_id: string
  readonly password_hash: string
  readonly fhir_user_id: string
  readonly access_version: number
  readonly account_disabled: boolean
  readonly account_for_loopback: boolean
  readonly account_admin: boolean
  readonly account_auditor: boolean
  readonly linked_id: string | null
  readonly link_provisioned: boolean | null
}

/** Reads the RelatedPersons of the accounts whose logins or grants depend on them; most accounts have none. */
async function findRelatedPersons(
  db: Kysely<Schema>,
  rows: readonly Pick<StoredRow, 'account_id' | 'basis'>[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const dependent = rows.filter(({ basis }) => parseBasis(basis).relatedPersons !== undefined)
  const ids = [...new Set(dependent.map(({ account_id }) => account_id))]
  if (ids.length === 0) return new Map()
  const found = await db
    .selectFrom('account_related_person')
    .selectAll()
    .where('clinician_id', 'in', ids)
    .execute()
  const byAccount = Map.groupBy(found, ({ clinician_id }) => clinician_id)
  return new Map(ids.map(id => [id, (byAccount.get(id) ?? []).map(row => row.related_person_id)]))
}

/** The logins or the grants that are still good. `describe` reads what depends on their kind. */
export async function keepGood<Row extends StoredRow>(
  db: Kysely<Schema>,
  rules: AccessRules,
  rows: readonly Row[],
  now: number,
  describe: (row: Row) => Pick<Given, 'isRevoked' | 'endsAt' | 'client'>,
): Promise<readonly Row[]> {
  const relatedPersons = await findRelatedPersons(db, rows)
  return rows.filter(row => {
    const given = {
      ...toGiven(row),
      ...describe(row),
      relatedPersons: relatedPersons.get(row.account_id) ?? [],
    }
    return findEnd(given, rules, now) === undefined
  })
}

function toGiven(row: StoredRow) {
  return {
    accountMark: row.account_mark,
    account: {
      id: row.account_id,
      password_hash: row.password_hash,
      fhir_user_id: row.fhir_user_id,
      access_version: row.access_version,
      disabled: Boolean(row.account_disabled),
      for_loopback: Boolean(row.account_for_loopback),
      admin: Boolean(row.account_admin),
      auditor: Boolean(row.account_auditor),
    },
    basis: parseBasis(row.basis),
    issuer: row.issuer ?? undefined,
    link:
      row.linked_id === null
        ? undefined
        : { accountId: row.linked_id, isProvisioned: Boolean(row.link_provisioned) },
  }
}

/** Empty for a row without a basis, whose mark matches no account. */
export function parseBasis(json: string): Basis {
  return json === '' ? {} : JSON.parse(json)
}

/** What is true about an account now, for a new login or a new grant. Undefined if there is no such account. */
export async function readBasis(
  trx: Kysely<Schema>,
  { onLoopback }: Pick<AccessRules, 'onLoopback'>,
  accountId: string,
): Promise<{ readonly account_mark: string; readonly basis: Basis } | undefined> {
  const [account] = (await selectAccount(trx, { accountId })).rows
  if (!account) return undefined
  const isPatient = isPatientUser({ fhirUserId: account.fhir_user_id })
  const related = isPatient ? await listRelatedPersons(trx, accountId) : []
  return {
    account_mark: computeAccountMark(account),
    basis: { ...(onLoopback && { loopback: true }), ...(related.length > 0 && { relatedPersons: related }) },
  }
}

const selectAccount = prepareQuery((db, { accountId }: { accountId: string }) =>
  lockRows(
    db,
    db
      .selectFrom('clinician')
      .select(['password_hash', 'fhir_user_id', 'access_version'])
      .where('id', '=', accountId),
  ),
)

async function listRelatedPersons(db: Kysely<Schema>, accountId: string): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('account_related_person')
    .select('related_person_id')
    .where('clinician_id', '=', accountId)
    .execute()
  return rows.map(row => row.related_person_id)
}

/** Access that a change of the account does not end. */
export interface Kept {
  readonly accountId: string
  /** The mark of the account before the change. */
  readonly mark: string
  /** Everything, apps with `offline_access`, or one login with its apps. */
  readonly what: 'everything' | 'offline' | { readonly loginIdHash: string }
}

/** Keeps access that the change of an account would end otherwise. Returns the ids of the grants, for the audit trail. */
export async function keepAccess(
  trx: Kysely<Schema>,
  { accountId, mark, what }: Kept,
): Promise<readonly string[]> {
  const [account] = (await selectAccount(trx, { accountId })).rows
  const account_mark = account && computeAccountMark(account)
  const grants = trx
    .updateTable('grant')
    .set({ account_mark })
    .where('clinician_id', '=', accountId)
    .where('account_mark', '=', mark)
  const logins = trx
    .updateTable('login')
    .set({ account_mark })
    .where('clinician_id', '=', accountId)
    .where('account_mark', '=', mark)
  const isOfLogin = typeof what === 'object'
  const kept = await grants
    .$if(what === 'offline', query => query.where(isOffline))
    .$if(isOfLogin, query =>
      query
        .where('login_id_hash', '=', isOfLogin ? what.loginIdHash : '')
        .where(sql<boolean>`not ${isOffline}`),
    )
    .returning(['id', 'revoked_at'])
    .execute()
  if (isOfLogin) await logins.where('id_hash', '=', what.loginIdHash).execute()
  else if (what === 'everything') await logins.execute()
  return kept.flatMap(({ id, revoked_at }) => (revoked_at === null ? id : []))
}

/** With spaces, because it may also be a value in a granular scope. */
export const isOffline = sql<boolean>`' ' || scope || ' ' like '% offline_access %'`
