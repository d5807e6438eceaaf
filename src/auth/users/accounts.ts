import { type Kysely, type Selectable, sql } from 'kysely'
import { prepareQuery, type Schema, type Store } from '../../store/index.ts'
import { type AuthUser, opensRecords } from '../base/user.ts'
import { hashPassword } from './passwords.ts'
import { type AccessRules, isUsableAccount } from './validity/rule.ts'

export function toUser(
  row: Pick<Selectable<Schema['clinician']>, 'id' | 'username' | 'display_name' | 'fhir_user_id'>,
): AuthUser {
  return { id: row.id, username: row.username, displayName: row.display_name, fhirUserId: row.fhir_user_id }
}

/** Finds a user for whom apps are launched: the account may be used, and opens records. */
export async function findLaunchUser(
  { store, rules }: { readonly store: Store; readonly rules: AccessRules },
  username: string,
): Promise<AuthUser | undefined> {
  const row = await store.db
    .selectFrom('clinician')
    .selectAll()
    .where('username', '=', username)
    .executeTakeFirst()
  const user = row && isUsableAccount(row, rules) ? toUser(row) : undefined
  return user && opensRecords(user) ? user : undefined
}

/** The test clinician of the first start. */
export const TEST_CLINICIAN = { username: 'clinician', displayName: 'Dr. Robin Ahmadi' } as const

/** Accounts for the sample data: an administrator, a patient, and the mother of another one. */
const SAMPLE_ACCOUNTS = [
  { kind: 'Admin', username: 'admin', displayName: 'Dr. Priya Quill', fhirUserId: 'practitioner-2' },
  { kind: 'Patient', username: 'alba', displayName: 'Alba Juniper', fhirUserId: 'Patient/patient-1' },
  { kind: 'Mother', username: 'mira', displayName: 'Mira Alabaster', fhirUserId: 'RelatedPerson/mother-27' },
] as const

/** Creates the sample accounts, with the password of the test clinician, which everybody knows: they are for loopback. */
export async function seedSampleAccounts({ db }: Store, now = Date.now()): Promise<void> {
  const { password_hash } = await db
    .selectFrom('clinician')
    .select('password_hash')
    .where('username', '=', TEST_CLINICIAN.username)
    .executeTakeFirstOrThrow()
  for (const { kind, username, displayName, fhirUserId } of SAMPLE_ACCOUNTS) {
    const added = await db
      .insertInto('clinician')
      .values({
        username,
        password_hash,
        display_name: displayName,
        fhir_user_id: fhirUserId,
        for_loopback: true,
        admin: kind === 'Admin',
        created_at: now,
      })
      .onConflict(conflict => conflict.doNothing())
      .returning('id')
      .executeTakeFirst()
    const [type, id = ''] = fhirUserId.split('/')
    if (added && type === 'RelatedPerson')
      await db
        .insertInto('account_related_person')
        .values({ clinician_id: added.id, related_person_id: id })
        .execute()
  }
}

/** The password hash of the test clinician, and the sample accounts that still have the same password. */
export async function findTestAccounts({ db }: Store, rules: Pick<AccessRules, 'onLoopback'>) {
  const rows = (await selectTestAccounts(db, {})).rows.filter(row => isUsableAccount(row, rules))
  const find = (name: string) => rows.find(({ username }) => username === name)?.password_hash
  const hash = find(TEST_CLINICIAN.username)
  const samples = SAMPLE_ACCOUNTS.filter(({ username }) => hash !== undefined && find(username) === hash)
  return { hash, samples }
}

/** Whether a local account is an administrator. */
export async function hasAdministrator({ db }: Pick<Store, 'db'>): Promise<boolean> {
  const found = await db
    .selectFrom('clinician')
    .select('id')
    .where('admin', '=', true)
    .where('disabled', '=', false)
    .limit(1)
    .executeTakeFirst()
  return found !== undefined
}

const selectTestAccounts = prepareQuery(db =>
  db
    .selectFrom('clinician')
    .select(['username', 'password_hash', 'disabled', 'for_loopback'])
    .where('username', 'in', [TEST_CLINICIAN.username, ...SAMPLE_ACCOUNTS.map(({ username }) => username)]),
)

interface TestClinician {
  readonly password: string
  readonly practitionerId: string
  readonly passwordCost: number | undefined
  readonly isForLoopback: boolean
  readonly mustChangePassword: boolean
  readonly now: number
}

/**
 * Creates the test clinician if there is no clinician yet. Safe if several instances start at once, because the username
 * is unique. Returns whether this start created it.
 */
export async function seedClinician(
  { db }: Store,
  { password, practitionerId, passwordCost, isForLoopback, mustChangePassword, now }: TestClinician,
): Promise<boolean> {
  const existing = await db.selectFrom('clinician').select('id').limit(1).executeTakeFirst()
  if (existing) return false
  const passwordHash = await hashPassword(password, passwordCost)
  const result = await db
    .insertInto('clinician')
    .columns([
      'username',
      'password_hash',
      'display_name',
      'fhir_user_id',
      'for_loopback',
      'must_change_password',
      'created_at',
    ])
    .expression(
      db
        .selectNoFrom([
          sql<string>`cast(${TEST_CLINICIAN.username} as text)`.as('username'),
          sql<string>`cast(${passwordHash} as text)`.as('password_hash'),
          sql<string>`cast(${TEST_CLINICIAN.displayName} as text)`.as('display_name'),
          sql<string>`cast(${practitionerId} as text)`.as('fhir_user_id'),
          sql<boolean>`cast(${isForLoopback} as boolean)`.as('for_loopback'),
          sql<boolean>`cast(${mustChangePassword} as boolean)`.as('must_change_password'),
          sql<number>`cast(${now} as bigint)`.as('created_at'),
        ])
        .where(({ not, exists, selectFrom }) => not(exists(selectFrom('clinician').select('id')))),
    )
    .onConflict(conflict => conflict.doNothing())
    .executeTakeFirst()
  return result.numInsertedOrUpdatedRows === 1n
}

export type Account = Selectable<Schema['clinician']>

/** Reads an account, and locks it until the transaction ends. */
export function lockAccount(trx: Kysely<Schema>, id: string): Promise<Account | undefined> {
  return trx
    .updateTable('clinician')
    .set(({ ref }) => ({ display_name: ref('display_name') }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
}
