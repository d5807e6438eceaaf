import type { Kysely } from 'kysely'
import { describeProvider, getProviderIssuer, type LoginProvider } from '../../../config/index.ts'
import { isFailure } from '../../../core/index.ts'
import type { Claims } from '../../../jwt/index.ts'
import type { Schema } from '../../../store/index.ts'
import {
  createUserLookup,
  type LookupContext,
  type LookupType,
  listResources,
} from '../../base/fhir-reader.ts'
import { type AuthUser, formatFhirUser, isPatientUser, opensRecords } from '../../base/user.ts'
import type { UsersContext } from '../context.ts'
import { NO_PASSWORD } from '../passwords.ts'
import { checkAllowed, isAdministratorBy } from '../providers/groups.ts'
import { getUserType, mapFhirUser, readNames, type UserQuery } from '../providers/identity.ts'
import { SignInRefusal } from '../providers/refusal.ts'
import { isUsableAccount } from '../validity/rule.ts'

/** The account that a user of a provider signs in to. */
export interface MatchedAccount {
  readonly issuer: string
  readonly subject: string
  /** `linked`: by an administrator, with the user's own resource. Otherwise the claims decide. */
  readonly kind: 'linked' | 'provisioned' | 'new'
  /** Undefined for a new account. */
  readonly userId: string | undefined
  readonly username: string
  readonly displayName: string
  readonly fhirUserId: string
  /** For `login explain`: a login decides by its evidence (find-login.ts). */
  readonly admin: boolean
}

/** The subject of a user: `sub`, or the id of a directory entry. */
export function findSubject(provider: LoginProvider, claims: Claims): string | undefined {
  const { subjectClaims } = describeProvider(provider)
  return subjectClaims
    .map(name => claims[name])
    .find((value): value is string => typeof value === 'string' && value !== '')
}

/** What accounts are found with; `login explain` has no more. */
type AccountContext = LookupContext & Pick<UsersContext, 'store' | 'rules'>

/** Finds the account of verified claims. Changes nothing. Users are identified by issuer and subject, never by a name. */
export async function findAccount(
  context: AccountContext,
  provider: LoginProvider,
  subject: string,
  claims: Claims,
): Promise<MatchedAccount | SignInRefusal> {
  const found = await findOnce(context, provider, subject, claims)
  // The username may be that of the same user, whose first sign-in completed between two queries.
  const isTaken = isFailure(found) && found.reason === 'username-taken'
  return isTaken ? findOnce(context, provider, subject, claims) : found
}

async function findOnce(
  context: AccountContext,
  provider: LoginProvider,
  subject: string,
  claims: Claims,
): Promise<MatchedAccount | SignInRefusal> {
  const refused = checkAllowed(provider, claims)
  if (refused) return refused
  const issuer = getProviderIssuer(provider)
  const link = await findLink(context.store.db, issuer, subject)
  if (link && !isUsableAccount(link, context.rules)) return new SignInRefusal('disabled')
  if (!link && !provider.provision) return new SignInRefusal('unknown-subject')
  const type = getUserType(provider)
  // A provider for patients signs in no clinician, and the other way round, whatever is linked.
  if (link && isPatientUser({ fhirUserId: link.fhir_user_id }) !== (type === 'Patient'))
    return new SignInRefusal('other-users')
  // The mapping of the provider does not undo what an administrator decided.
  const opens = !link || opensRecords({ fhirUserId: link.fhir_user_id })
  const mapped =
    link && !(link.provisioned && opens) ? readLinked(link) : readMapped(context, provider, claims)
  if (isFailure(mapped)) return mapped
  const { query, username, displayName } = mapped
  const fhirUserId = opens ? await findUserResource(context, mapped.type ?? type, query) : ''
  if (isFailure(fhirUserId)) return fhirUserId
  const kind = link ? (link.provisioned ? 'provisioned' : 'linked') : 'new'
  const account = { issuer, subject, kind, userId: link?.id, username, displayName, fhirUserId } as const
  return (await isUsernameTaken(context.store.db, account))
    ? new SignInRefusal('username-taken')
    : { ...account, admin: isAdministratorBy(provider, claims) || (link?.admin ?? false) }
}

type Link = NonNullable<Awaited<ReturnType<typeof findLink>>>

/** The account that an administrator or a former sign-in linked to the user of a provider. */
export function findLink(db: Kysely<Schema>, issuer: string, subject: string) {
  return db
    .selectFrom('clinician_link')
    .innerJoin('clinician', 'clinician.id', 'clinician_link.clinician_id')
    .select(['clinician.id', 'username', 'display_name', 'fhir_user_id', 'admin', 'provisioned'])
    .select(['disabled', 'for_loopback'])
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst()
}

function readLinked({ username, display_name, fhir_user_id }: Link) {
  const [type, ...rest] = formatFhirUser(fhir_user_id).split('/') as [LookupType, ...string[]]
  const id = rest.join('/')
  return { username, displayName: display_name, type, query: { kind: 'id', id } as const }
}

function readMapped({ settings }: AccountContext, provider: LoginProvider, claims: Claims) {
  const names = readNames(provider, claims)
  if (isFailure(names)) return names
  const query = mapFhirUser(provider, claims, settings.fhirBaseUrl)
  return isFailure(query) ? query : { ...names, type: undefined, query }
}

async function isUsernameTaken(
  db: Kysely<Schema>,
  { username, userId }: Pick<MatchedAccount, 'username' | 'userId'>,
): Promise<boolean> {
  const found = await db
    .selectFrom('clinician')
    .select('id')
    .where('username', '=', username)
    .executeTakeFirst()
  return found !== undefined && found.id !== userId
}

/**
 * Stores a new account, or the current mapping of a provisioned one. Throws if a simultaneous sign-in created the account
 * or took the username. Undefined if the account was disabled, unlinked or kept from records since it was found.
 */
export async function storeAccount(
  trx: Kysely<Schema>,
  account: MatchedAccount,
  now: number,
): Promise<Pick<AuthUser, 'id' | 'fhirUserId'> | undefined> {
  const { userId, kind, fhirUserId, issuer, subject } = account
  if (kind === 'new' || userId === undefined)
    return { id: await createAccount(trx, account, now), fhirUserId }
  // Also locks the row of a linked account until the transaction ends.
  await trx
    .updateTable('clinician')
    .set(({ ref }) => (kind === 'provisioned' ? toColumns(account) : { display_name: ref('display_name') }))
    .where('id', '=', userId)
    .where('fhir_user_id', opensRecords(account) ? '!=' : '=', '')
    .execute()
  const link = await findLink(trx, issuer, subject)
  const isSame =
    link?.id === userId &&
    !link.disabled &&
    opensRecords({ fhirUserId: link.fhir_user_id }) === opensRecords(account)
  return isSame ? { id: userId, fhirUserId } : undefined
}

async function createAccount(trx: Kysely<Schema>, account: MatchedAccount, now: number): Promise<string> {
  const { id } = await trx
    .insertInto('clinician')
    .values({ ...toColumns(account), password_hash: NO_PASSWORD, created_at: now })
    .returning('id')
    .executeTakeFirstOrThrow()
  const { issuer, subject } = account
  await trx
    .insertInto('clinician_link')
    .values({ issuer, subject, clinician_id: id, provisioned: true, created_at: now })
    .execute()
  return id
}

function toColumns({ username, displayName, fhirUserId }: MatchedAccount) {
  return { username, display_name: displayName, fhir_user_id: fhirUserId }
}

/** Finds the one resource of a user on the FHIR server, and returns its id, with the type unless it is a Practitioner. */
async function findUserResource(
  context: LookupContext,
  type: LookupType,
  query: UserQuery,
): Promise<string | SignInRefusal> {
  const isClinician = type === 'Practitioner'
  const none = isClinician ? 'no-practitioner' : 'no-patient'
  const read = await createUserLookup(context, type, { purpose: 'sign-in' })
  const result =
    query.kind === 'id' ? await read.resource(type, query.id) : await read(`${query.query}&_count=2`)
  if (result.kind === 'unavailable') return new SignInRefusal('fhir-unavailable', result.detail)
  if (result.kind === 'absent') return new SignInRefusal(none)
  const found = query.kind === 'id' ? [result.resource] : listResources(result.resource, type)
  const [first, second] = found.flatMap(({ id }) => id ?? [])
  if (first === undefined) return new SignInRefusal(none)
  if (second !== undefined)
    return new SignInRefusal(isClinician ? 'several-practitioners' : 'several-patients')
  return isClinician ? first : `${type}/${first}`
}
