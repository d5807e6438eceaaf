import { randomUUID } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import type { Settings } from '../../../config/index.ts'
import { DAY_MS, MINUTE_MS } from '../../../core/index.ts'
import { lockRows, prepareInsert, prepareQuery, type Schema, sha256 } from '../../../store/index.ts'
import { LIFETIME, LIMITS } from '../../base/limits.ts'
import { type AuthUser, buildFhirUser, opensRecords } from '../../base/user.ts'
import { findLoginRow } from '../../users/find-login.ts'
import { ACCOUNT_COLUMNS, isOffline, keepGood, parseBasis, readBasis } from '../../users/validity/facts.ts'
import { type AccessRules, type Basis, computeClientMark, isUsableClient } from '../../users/validity/rule.ts'
import type { Client } from '../clients/client.ts'
import type { AuthContext } from '../context.ts'
import { readExtension } from '../hooks.ts'
import type { ExtraContext } from '../launch/options.ts'
import { getStyle } from '../style.ts'
import { areAgentsOff } from './agents-switch.ts'

/** The access that a user granted to a client. */
export interface UserGrant {
  readonly id: string
  readonly clientId: string
  readonly scope: string
  readonly patientId: string | undefined
  readonly encounterId: string | undefined
  readonly needPatientBanner: boolean | undefined
  /** Whether it follows from an EHR launch. */
  readonly fromEhr: boolean
  /** Whether a CDS service has it for one call. Nobody allowed it, and it ends with the response. */
  readonly isForHook?: boolean
  readonly extraContext: ExtraContext
  /** The endpoint of assistants, if its tokens are for that. Otherwise the FHIR base. */
  readonly resource?: string | undefined
  /** Of the launch; only hooks read it. */
  readonly extension?: string | undefined
  readonly authTime: number
  readonly acr: string | undefined
  readonly amr: readonly string[] | undefined
  /** The user's own resource in this grant: that of the clinician, or a RelatedPerson of the patient. */
  readonly fhirUserId: string
  readonly user: { readonly id: string; readonly displayName: string; readonly fhirUserId: string }
  /** When it ends at the latest: undefined means never, 0 that it has ended. */
  readonly endsAt: number | undefined
}

export type NewGrant = Omit<UserGrant, 'id' | 'clientId' | 'user' | 'fhirUserId' | 'endsAt'> & {
  /** As it was when the user approved the grant. */
  readonly client: Pick<Client, 'id' | 'mark'>
  readonly fhirUserId: string | undefined
  readonly loginIdHash: string
  /** The launch id of the request. It becomes the id of the grant and the prefix of every `jti`. */
  readonly launchId: string | undefined
}

type GrantContext = Pick<AuthContext, 'rules' | 'clock'>

/**
 * Creates a grant on the basis of a login, in the transaction that issues a code or a token. Undefined if the login has
 * ended, the account opens no records, or the client changed. Locks the account and the client, so that a simultaneous change waits and finds the grant.
 */
export async function createGrant(
  trx: Kysely<Schema>,
  context: GrantContext,
  grant: NewGrant,
): Promise<string | undefined> {
  const now = context.clock()
  const given = await findBasis(trx, context, grant)
  if (!given) return undefined
  const id = grant.launchId ?? randomUUID()
  await insertGrant(trx, {
    id,
    client_id: grant.client.id,
    client_mark: grant.client.mark,
    login_id_hash: grant.loginIdHash,
    ...given,
    scope: grant.scope,
    patient_id: grant.patientId ?? null,
    encounter_id: grant.encounterId ?? null,
    need_patient_banner: grant.needPatientBanner ?? null,
    context: JSON.stringify({
      ...grant.extraContext,
      fromEhr: grant.fromEhr,
      isForHook: grant.isForHook,
      fhirUserId: grant.fhirUserId,
    }),
    extension: grant.extension ?? null,
    auth_time: grant.authTime,
    acr: grant.acr ?? null,
    amr: grant.amr === undefined ? null : JSON.stringify(grant.amr),
    created_at: now,
    last_used_at: now,
    revoked_at: null,
    resource: grant.resource ?? null,
  })
  return id
}

const insertGrant = prepareInsert('grant')

/** The columns that say what a grant is given for. */
async function findBasis(
  trx: Kysely<Schema>,
  { rules, clock }: GrantContext,
  { client, loginIdHash, extension }: NewGrant,
) {
  const row = await findLoginRow(trx, { rules, clock }, loginIdHash)
  const known = row && (await readBasis(trx, rules, row.clinician_id))
  const [found] = (await selectClientFacts(trx, { id: client.id })).rows
  const isSameClient =
    found && isUsableClient(found, rules, clock()) && computeClientMark(found) === client.mark
  if (!row || !known || !isSameClient || known.account_mark !== row.account_mark) return undefined
  if (!opensRecords({ fhirUserId: row.fhir_user_id })) return undefined
  const basis: Basis = {
    ...parseBasis(row.basis),
    ...known.basis,
    ...(extension !== undefined && { developerTools: true }),
  }
  const { clinician_id, issuer, subject } = row
  return { clinician_id, issuer, subject, account_mark: known.account_mark, basis: JSON.stringify(basis) }
}

const selectClientFacts = prepareQuery((db, { id }: { id: string }) =>
  lockRows(
    db,
    db
      .selectFrom('client')
      .select(['scope', 'created_at', 'enabled_at', 'expires_at', 'disabled', 'for_loopback'])
      .where('client_id', '=', id),
  ),
)

/** Finds a grant that is still good. */
export async function findLiveGrant(
  db: Kysely<Schema>,
  { rules, clock }: GrantContext,
  id: string,
): Promise<UserGrant | undefined> {
  const { rows } = await selectGrant(db, { id })
  const [row] = await keepGoodGrants(db, rules, rows, clock())
  if (row?.resource != null && (await areAgentsOff(db))) return undefined
  return row && toGrant(row, rules)
}

const selectGrant = prepareQuery((db, { id }: { id: string }) => selectGrants(db).where('grant.id', '=', id))

/** Grants with everything that decides whether they are still good. */
export function selectGrants(db: Kysely<Schema>) {
  return db
    .selectFrom('grant')
    .innerJoin('clinician', 'clinician.id', 'grant.clinician_id')
    .innerJoin('client', 'client.client_id', 'grant.client_id')
    .leftJoin('login', 'login.id_hash', 'grant.login_id_hash')
    .leftJoin('clinician_link', join =>
      join
        .onRef('clinician_link.issuer', '=', 'grant.issuer')
        .onRef('clinician_link.subject', '=', 'grant.subject'),
    )
    .selectAll('grant')
    .select([
      'username',
      'display_name',
      'client.name as client_name',
      'client.first_party as client_first_party',
    ])
    .select(['login.expires_at as login_expires_at', ...ACCOUNT_COLUMNS])
    .select(['client.scope as client_scope', 'client.created_at as client_created_at'])
    .select(['client.enabled_at as client_enabled_at', 'client.expires_at as client_expires_at'])
    .select(['client.disabled as client_disabled', 'client.for_loopback as client_for_loopback'])
}

export type GrantRow = Awaited<ReturnType<ReturnType<typeof selectGrants>['execute']>>[number]

/** The grants that are still good. */
export function keepGoodGrants(
  db: Kysely<Schema>,
  rules: AccessRules,
  rows: readonly GrantRow[],
  now: number,
): Promise<readonly GrantRow[]> {
  return keepGood(db, rules, rows, now, row => ({
    isRevoked: row.revoked_at !== null,
    endsAt: findLatestEnd(row, rules),
    client: {
      mark: row.client_mark,
      scope: row.client_scope,
      created_at: row.client_created_at,
      enabled_at: row.client_enabled_at,
      expires_at: row.client_expires_at,
      disabled: Boolean(row.client_disabled),
      for_loopback: Boolean(row.client_for_loopback),
    },
  }))
}

/** When a grant ends at the latest: undefined means never, 0 that its login has ended. */
function findLatestEnd(
  {
    scope,
    created_at,
    login_expires_at,
    resource,
  }: Pick<GrantRow, 'scope' | 'created_at' | 'login_expires_at' | 'resource'>,
  { offlineAccessMaxDays, agents }: AccessRules,
): number | undefined {
  if (resource !== null && !agents.enabled) return 0
  const login = login_expires_at ?? 0
  if (!hasScope(scope, 'offline_access'))
    return resource === null ? login : Math.min(login, created_at + agents.accessMinutes * MINUTE_MS)
  return offlineAccessMaxDays === 0 ? undefined : created_at + offlineAccessMaxDays * DAY_MS
}

/** A grant that can still be used. */
export interface UsableGrant extends GrantRow {
  /** When it ends at the latest. Undefined: when it is revoked, or has not been used for a long time. */
  readonly ends_at: number | undefined
}

/**
 * The grants that can still be used: one answer to who has access now, for users and administrators (REVOKE-3). A grant
 * that is still good cannot be used when its last token has expired, or before its code is exchanged for the first one. The
 * calls of CDS services are none that anybody could end.
 */
export async function keepUsableGrants(
  db: Kysely<Schema>,
  rules: AccessRules,
  rows: readonly GrantRow[],
  now: number,
): Promise<readonly UsableGrant[]> {
  const good = (await keepGoodGrants(db, rules, rows, now)).filter(
    row => findLastUse(row, rules) > now && !parseContext(row).isForHook,
  )
  const tokenless = await findTokenless(db, good)
  return good
    .filter(({ id }) => !tokenless.has(id))
    .map(row => {
      const latest = findLatestEnd(row, rules)
      if (hasScope(row.scope, 'offline_access')) return { ...row, ends_at: latest }
      return { ...row, ends_at: Math.min(latest ?? Infinity, findLastUse(row, rules)) }
    })
}

/** Ids of a statement. */
const AT_ONCE = 500

/** The grants without a token: the code was not exchanged. Codes are deleted a day after they expire, refresh tokens when they end. */
async function findTokenless(db: Kysely<Schema>, grants: readonly GrantRow[]): Promise<ReadonlySet<string>> {
  const found = new Set<string>()
  for (let from = 0; from < grants.length; from += AT_ONCE) {
    const rows = await db
      .selectFrom('grant')
      .select('id')
      .where(
        'id',
        'in',
        grants.slice(from, from + AT_ONCE).map(({ id }) => id),
      )
      .where(({ or, and, not, exists, selectFrom }) => {
        const ofGrant = (table: 'authorization_code' | 'refresh_token') =>
          selectFrom(table).select('grant_id').whereRef('grant_id', '=', 'grant.id')
        return or([
          exists(ofGrant('authorization_code').where('used_at', 'is', null)),
          and([isRefreshable, not(exists(ofGrant('refresh_token')))]),
        ])
      })
      .execute()
    for (const { id } of rows) found.add(id)
  }
  return found
}

const isRefreshable = sql<boolean>`(${isOffline} or resource is not null or ' ' || scope || ' ' like '% online_access %')`

/** When the last token of a grant expires: a refresh token, or without one the access token. */
function findLastUse(row: GrantRow, { accessTokenTtlSeconds }: AccessRules): number {
  if (hasScope(row.scope, 'offline_access')) return row.last_used_at + LIFETIME.offlineRefresh
  const login = row.login_expires_at ?? 0
  if (hasScope(row.scope, 'online_access') || row.resource !== null) return login
  const seconds = row.extension === null ? 0 : LIMITS.extensionTokenSeconds
  return Math.min(login, row.last_used_at + Math.max(accessTokenTtlSeconds, seconds) * 1000)
}

/** Revokes a grant with all its codes and tokens. False if it was revoked before. */
export async function revokeGrant(db: Kysely<Schema>, id: string, now: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('grant')
    .set({ revoked_at: now })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

export function hasScope(scope: string, name: string): boolean {
  return scope.split(' ').includes(name)
}

function toGrant(row: GrantRow, rules: AccessRules): UserGrant {
  const { fromEhr = false, isForHook = false, fhirUserId, ...extraContext } = parseContext(row)
  return {
    id: row.id,
    clientId: row.client_id,
    scope: row.scope,
    patientId: row.patient_id ?? undefined,
    encounterId: row.encounter_id ?? undefined,
    needPatientBanner: row.need_patient_banner ?? undefined,
    fromEhr,
    isForHook,
    extraContext,
    extension: row.extension ?? undefined,
    resource: row.resource ?? undefined,
    authTime: row.auth_time,
    acr: row.acr ?? undefined,
    amr: row.amr === null ? undefined : JSON.parse(row.amr),
    fhirUserId: fhirUserId ?? row.fhir_user_id,
    user: {
      id: row.clinician_id,
      displayName: row.display_name,
      fhirUserId: row.fhir_user_id,
    },
    endsAt: findLatestEnd(row, rules),
  }
}

function parseContext({ context }: Pick<GrantRow, 'context'>) {
  return context === null ? {} : JSON.parse(context)
}

/** The launch context in a token response or an introspection response (SMART 2.2, launch context). */
export function buildContextMembers(context: Pick<AuthContext, 'settings' | 'hooks'>, grant: UserGrant) {
  const { patientId, encounterId, needPatientBanner, fromEhr, extraContext } = grant
  const style =
    readExtension(context, grant).style ?? `${context.settings.issuerUrl}${getStyle(context.settings).path}`
  return {
    ...(patientId === undefined ? {} : { patient: patientId }),
    ...(encounterId === undefined ? {} : { encounter: encounterId }),
    ...(needPatientBanner === undefined ? {} : { need_patient_banner: needPatientBanner }),
    ...extraContext,
    ...(fromEhr && style !== 'none' ? { smart_style_url: style } : {}),
  }
}

/** The claims about the user in an ID token and a user info response (OIDC Core, 5.1; SMART 2.2, scopes for identity). */
export function buildUserClaims(
  { fhirBaseUrl }: Pick<Settings, 'fhirBaseUrl'>,
  { user, fhirUserId }: UserGrant,
  scope: string,
) {
  const fhirUser = hasScope(scope, 'fhirUser')
  return {
    ...(fhirUser ? { fhirUser: buildFhirUser(fhirUserId, fhirBaseUrl) } : {}),
    ...(fhirUser || hasScope(scope, 'profile') ? { name: user.displayName } : {}),
  }
}

/** The owner of a grant, active or not. */
export interface AuditedGrant {
  readonly client: string
  readonly user: Pick<AuthUser, 'id' | 'fhirUserId'>
  readonly patient: string | undefined
  readonly launch: string
}

/** Finds the grant of a code or refresh token, used or not, of any client. For the audit trail only. */
export async function findGrantForAudit(
  db: Kysely<Schema>,
  sent: { readonly code: string | undefined; readonly refreshToken: string | undefined },
): Promise<AuditedGrant | undefined> {
  const found = await db
    .selectFrom('authorization_code')
    .select('grant_id')
    .where('code_hash', '=', sha256(sent.code ?? ''))
    .unionAll(
      db
        .selectFrom('refresh_token')
        .select('grant_id')
        .where('token_hash', '=', sha256(sent.refreshToken ?? '')),
    )
    .executeTakeFirst()
  if (!found) return undefined
  const row = await db
    .selectFrom('grant')
    .innerJoin('clinician', 'clinician.id', 'grant.clinician_id')
    .select(['clinician.id', 'fhir_user_id', 'patient_id', 'client_id'])
    .where('grant.id', '=', found.grant_id)
    .executeTakeFirst()
  return (
    row && {
      client: row.client_id,
      user: { id: row.id, fhirUserId: row.fhir_user_id },
      patient: row.patient_id ?? undefined,
      launch: found.grant_id,
    }
  )
}
