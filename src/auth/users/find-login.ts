import type { ExpressionBuilder, Kysely } from 'kysely'
import type { LoginProvider } from '../../config/index.ts'
import { prepareQuery, type Schema } from '../../store/index.ts'
import type { DeveloperPages } from '../base/context.ts'
import { type AuthUser, isPatientUser } from '../base/user.ts'
import { toUser } from './accounts.ts'
import { isStillAdministrator } from './validity/evidence.ts'
import { ACCOUNT_COLUMNS, keepGood, parseBasis } from './validity/facts.ts'
import type { AccessRules } from './validity/rule.ts'

/** A user's login in a browser. */
export interface Login {
  readonly idHash: string
  readonly user: AuthUser
  readonly createdAt: number
  readonly lastUsedAt: number
  /** The end that use does not move. */
  readonly endsAt: number
  /** When the user authenticated, here or at the identity provider. */
  readonly authTime: number
  /** Without a time of the provider, the user may have authenticated there long before this login. */
  readonly isAuthTimeKnown: boolean
  readonly acr?: string
  readonly amr?: readonly string[]
  /** The identity provider; undefined after a login with a password of ours. */
  readonly issuer?: string
  /** Patients and related persons are never administrators. */
  readonly admin: boolean
  /** Sees the administration, and changes nothing. Never an administrator. */
  readonly auditor: boolean
  /** Whether the account was made for loopback: so is what it adds. */
  readonly isForLoopback: boolean
  /** Changes that assistants propose to the user. */
  readonly openProposals: number
  readonly mayViewActivity?: boolean
  /** For developers only. */
  readonly developerPages?: DeveloperPages | undefined
}

interface LoginContext {
  readonly rules: AccessRules
  readonly clock: () => number
}

/** Finds a login that is still good. */
export async function findLoginByHash(
  db: Kysely<Schema>,
  context: LoginContext,
  idHash: string,
): Promise<Login | undefined> {
  const row = await findLoginRow(db, context, idHash)
  return row && toLogin(row, context.rules)
}

export async function findLoginRow(
  db: Kysely<Schema>,
  { rules, clock }: LoginContext,
  idHash: string,
): Promise<LoginRow | undefined> {
  const { rows } = await selectLogin(db, { idHash })
  const [row] = await keepGoodLogins(db, rules, rows, clock())
  return row
}

const selectLogin = prepareQuery((db, { idHash }: { idHash: string }) =>
  selectLogins(db).where('id_hash', '=', idHash),
)

/** Logins with everything that decides whether they are still good. */
export function selectLogins(db: Kysely<Schema>) {
  return db
    .selectFrom('login')
    .innerJoin('clinician', 'clinician.id', 'login.clinician_id')
    .leftJoin('clinician_link', join =>
      join
        .onRef('clinician_link.issuer', '=', 'login.issuer')
        .onRef('clinician_link.subject', '=', 'login.subject'),
    )
    .selectAll('login')
    .select(['username', 'display_name', ...ACCOUNT_COLUMNS])
    .select(selectOpenProposals)
}

function selectOpenProposals({ selectFrom }: ExpressionBuilder<Schema, 'login'>) {
  return selectFrom('proposal')
    .select(({ fn }) => fn.countAll<number | string>().as('count'))
    .whereRef('proposal.clinician_id', '=', 'login.clinician_id')
    .where('proposal.state', 'in', ['open', 'signing'])
    .as('open_proposals')
}

export type LoginRow = Awaited<ReturnType<ReturnType<typeof selectLogins>['execute']>>[number]

/** The logins that are still good. */
export function keepGoodLogins(
  db: Kysely<Schema>,
  rules: AccessRules,
  rows: readonly LoginRow[],
  now: number,
): Promise<readonly LoginRow[]> {
  return keepGood(db, rules, rows, now, row => ({ isRevoked: false, endsAt: row.expires_at }))
}

function toLogin(row: LoginRow, rules: AccessRules): Login {
  const user = toUser({ ...row, id: row.account_id })
  const isClinician = !isPatientUser(user)
  const isAdmin = isAdministrator(row, rules)
  return {
    idHash: row.id_hash,
    createdAt: row.created_at,
    lastUsedAt: row.seen_at ?? row.created_at,
    endsAt: row.expires_at,
    authTime: row.auth_time ?? row.created_at,
    isAuthTimeKnown: row.auth_time !== null || row.issuer === null,
    isForLoopback: Boolean(row.account_for_loopback),
    admin: isClinician && isAdmin,
    openProposals: Number(row.open_proposals ?? 0),
    auditor: isClinician && !isAdmin && Boolean(row.account_auditor),
    ...(row.acr === null ? {} : { acr: row.acr }),
    ...(row.amr === null ? {} : { amr: JSON.parse(row.amr) }),
    ...(row.issuer === null ? {} : { issuer: row.issuer }),
    user,
  }
}

function isAdministrator(row: LoginRow, rules: AccessRules): boolean {
  return Boolean(row.account_admin) || findAdminProvider(row, rules) !== undefined
}

/** The identity provider that called the user an administrator at this login, and still would. */
export function findAdminProvider(
  { admin, issuer, basis }: Pick<LoginRow, 'admin' | 'issuer' | 'basis'>,
  rules: AccessRules,
): LoginProvider | undefined {
  const provider = admin ? rules.findByIssuer(issuer) : undefined
  return provider && isStillAdministrator(provider, parseBasis(basis).evidence) ? provider : undefined
}
