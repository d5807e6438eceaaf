import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Kysely, sql, type Transaction } from 'kysely'
import {
  createRandomToken,
  prepareQuery,
  type Schema,
  type Sealer,
  type Store,
  sha256,
} from '../../store/index.ts'
import { defineCookie } from '../../web/index.ts'
import { type Clinician, isPatientUser, toClinician } from '../clinician.ts'
import type { AuthContext, AuthSettings } from '../context.ts'
import { LIFETIME } from '../limits.ts'
import { paths } from '../paths.ts'

/** A clinician's login in a browser. */
export interface Login {
  readonly idHash: string
  readonly clinician: Clinician
  readonly createdAt: number
  readonly lastUsedAt: number
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
  readonly mayViewActivity?: boolean
  readonly mayUseLab?: boolean
}

/** The statements of an identity provider about a login. */
export interface ProviderLogin {
  readonly issuer: string
  readonly subject: string
  readonly sid?: string | undefined
  readonly acr?: string | undefined
  readonly amr?: readonly string[] | undefined
  /** In milliseconds. */
  readonly authTime?: number | undefined
  readonly admin: boolean
  readonly idToken?: string | undefined
}

/** Finds the login of a cookie, unless it has expired or its clinician is disabled. */
export function findLogin(store: Store, id: string, now: number): Promise<Login | undefined> {
  return findLoginByHash(store, sha256(id), now)
}

export async function findLoginByHash(
  { db }: Store,
  idHash: string,
  now: number,
): Promise<Login | undefined> {
  const [row] = (await selectLogin(db, { idHash, now })).rows
  return (
    row && {
      idHash: row.id_hash,
      createdAt: row.created_at,
      lastUsedAt: row.seen_at ?? row.created_at,
      authTime: row.auth_time ?? row.created_at,
      isAuthTimeKnown: row.auth_time !== null || row.issuer === null,
      admin: Boolean(row.admin || row.login_admin) && !isPatientUser(toClinician(row)),
      ...(row.acr === null ? {} : { acr: row.acr }),
      ...(row.amr === null ? {} : { amr: JSON.parse(row.amr) }),
      ...(row.issuer === null ? {} : { issuer: row.issuer }),
      clinician: toClinician(row),
    }
  )
}

const selectLogin = prepareQuery((db, { idHash, now }: { idHash: string; now: number }) =>
  db
    .selectFrom('login')
    .innerJoin('clinician', 'clinician.id', 'login.clinician_id')
    .select(['id_hash', 'created_at', 'seen_at', 'clinician.id', 'username', 'display_name', 'fhir_user_id'])
    .select(['auth_time', 'acr', 'amr', 'issuer', 'login.admin as login_admin', 'clinician.admin'])
    .where('id_hash', '=', idHash)
    .where('expires_at', '>', now)
    .where('disabled', '=', false),
)

const NOTED_MS = 60_000

/** Records that a login is in use, at most once a minute, to save writes. */
export async function recordLoginUse(
  { db }: Store,
  { idHash, lastUsedAt }: Login,
  now: number,
): Promise<void> {
  if (now - lastUsedAt < NOTED_MS) return
  await db.updateTable('login').set({ seen_at: now }).where('id_hash', '=', idHash).execute()
}

/**
 * Begins a login with a new id, against session fixation. The previous login of the browser ends; its grants move to the
 * new login if it is the same clinician.
 */
export async function beginLogin(
  { sealer, clock }: Pick<AuthContext, 'sealer' | 'clock'>,
  trx: Transaction<Schema>,
  { clinicianId, before, provider }: NewLogin,
): Promise<string> {
  const id = createRandomToken()
  const now = clock()
  await trx
    .insertInto('login')
    .values({
      id_hash: sha256(id),
      clinician_id: clinicianId,
      created_at: now,
      expires_at: now + LIFETIME.login,
      ...(provider && toColumns(provider, sealer, sha256(id))),
    })
    .execute()
  if (before?.clinician.id === clinicianId) await moveGrants(trx, before.idHash, sha256(id))
  if (before) await endLogin(trx, before.idHash, now)
  return id
}

interface NewLogin {
  readonly clinicianId: string
  /** The previous login of the browser. */
  readonly before: Login | undefined
  readonly provider?: ProviderLogin | undefined
}

function toColumns(provider: ProviderLogin, sealer: Sealer, idHash: string) {
  const { issuer, subject, sid, acr, amr, authTime, admin, idToken } = provider
  return {
    ...{ issuer, subject, sid: sid ?? null, acr: acr ?? null, auth_time: authTime ?? null, admin },
    amr: amr === undefined ? null : JSON.stringify(amr),
    id_token_sealed: idToken === undefined ? null : sealer.seal(idToken, toIdTokenCell(idHash)),
  }
}

function toIdTokenCell(idHash: string) {
  return { table: 'login', column: 'id_token_sealed', row: idHash } as const
}

/** Finds the id_token with which a login began, for the logout at its provider. */
export async function findIdToken(
  { store, sealer }: Pick<AuthContext, 'store' | 'sealer'>,
  { idHash }: Pick<Login, 'idHash'>,
): Promise<string | undefined> {
  const row = await store.db
    .selectFrom('login')
    .select('id_token_sealed')
    .where('id_hash', '=', idHash)
    .executeTakeFirst()
  const sealed = row?.id_token_sealed ?? undefined
  return sealed === undefined ? undefined : sealer.tryOpen(sealed, toIdTokenCell(idHash))
}

/**
 * Ends every login of a clinician, and all grants or only those without `offline_access`.
 */
export async function endAccess(
  trx: Kysely<Schema>,
  clinicianId: string,
  { now, keepOffline }: { readonly now: number; readonly keepOffline: boolean },
): Promise<void> {
  await trx.deleteFrom('login').where('clinician_id', '=', clinicianId).execute()
  await trx
    .updateTable('grant')
    .set({ revoked_at: now })
    .where('clinician_id', '=', clinicianId)
    .where('revoked_at', 'is', null)
    .$if(keepOffline, query => query.where(isOnline))
    .execute()
}

// With spaces, because it may also be a value in a granular scope.
const isOnline = sql<boolean>`' ' || scope || ' ' not like '% offline_access %'`

async function moveGrants(trx: Kysely<Schema>, from: string, to: string): Promise<void> {
  await trx.updateTable('grant').set({ login_id_hash: to }).where('login_id_hash', '=', from).execute()
}

/** Ends the logins of a provider's user, or of one session at the provider, and returns their clinicians. */
export async function endProviderLogins(
  trx: Transaction<Schema>,
  { issuer, subject, sid }: { readonly issuer: string; readonly subject?: string; readonly sid?: string },
  now: number,
): Promise<readonly Pick<Clinician, 'id' | 'fhirUserId'>[]> {
  const rows = await trx
    .selectFrom('login')
    .innerJoin('clinician', 'clinician.id', 'login.clinician_id')
    .select(['id_hash', 'clinician.id', 'fhir_user_id'])
    .where('issuer', '=', issuer)
    .$if(subject !== undefined, query => query.where('subject', '=', subject ?? ''))
    .$if(sid !== undefined, query =>
      query.where(({ or, eb }) =>
        // The id_token of the user may have had no `sid`.
        or([eb('sid', '=', sid ?? ''), ...(subject === undefined ? [] : [eb('sid', 'is', null)])]),
      ),
    )
    .execute()
  for (const row of rows) await endLogin(trx, row.id_hash, now)
  return rows.map(row => ({ id: row.id, fhirUserId: row.fhir_user_id }))
}

/** Ends a login and its grants without `offline_access`. */
export async function endLogin(trx: Transaction<Schema>, idHash: string, now: number): Promise<void> {
  await trx.deleteFrom('login').where('id_hash', '=', idHash).execute()
  await trx
    .updateTable('grant')
    .set({ revoked_at: now })
    .where('login_id_hash', '=', idHash)
    .where('revoked_at', 'is', null)
    .where(isOnline)
    .execute()
}

/** Ends the clinician's logins in other browsers. */
export async function endOtherLogins(
  trx: Transaction<Schema>,
  { idHash, clinician }: Pick<Login, 'idHash' | 'clinician'>,
  now: number,
): Promise<void> {
  const others = await trx
    .selectFrom('login')
    .select('id_hash')
    .where('clinician_id', '=', clinician.id)
    .where('id_hash', '<>', idHash)
    .execute()
  for (const { id_hash } of others) await endLogin(trx, id_hash, now)
}

/** Finds the login of the browser, unless it was idle for too long. Opening a page counts as use. */
export async function findCurrentLogin(
  context: AuthContext,
  request: FastifyRequest,
): Promise<Login | undefined> {
  const { settings, store, clock } = context
  const login = await findLastLogin(context, request)
  if (!login || isIdle(login, settings.loginIdleSeconds, clock())) return undefined
  if (isNavigation(request)) await recordLoginUse(store, login, clock())
  return {
    ...login,
    mayViewActivity: mayViewActivity(settings, login.clinician),
    mayUseLab: settings.lab && !isPatientUser(login.clinician),
  }
}

/** Like `findCurrentLogin`, but also finds an idle login, which can be ended or replaced. */
export async function findLastLogin(
  { settings, store, clock }: AuthContext,
  request: FastifyRequest,
): Promise<Login | undefined> {
  const id = request.cookies[makeLoginCookie(settings.issuerUrl).name]
  return id === undefined ? undefined : findLogin(store, id, clock())
}

export function hasLoginCookie({ settings }: AuthContext, request: FastifyRequest): boolean {
  return request.cookies[makeLoginCookie(settings.issuerUrl).name] !== undefined
}

function isIdle({ lastUsedAt }: Login, idleSeconds: number, now: number): boolean {
  return idleSeconds > 0 && now - lastUsedAt >= idleSeconds * 1000
}

// A polling script does not count as use. Over plain http browsers omit `Sec-Fetch-Mode`, so our scripts send a header.
function isNavigation({ headers }: FastifyRequest): boolean {
  return headers['x-requested-with'] === undefined && (headers['sec-fetch-mode'] ?? 'navigate') === 'navigate'
}

/** Redirects to the login page without a login. */
export function requireLogin(
  context: AuthContext,
  handle: (request: FastifyRequest, reply: FastifyReply, login: Login) => Promise<FastifyReply>,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  return async (request, reply) => {
    const login = await findCurrentLogin(context, request)
    return login ? handle(request, reply, login) : reply.redirect(paths.login, 302)
  }
}

/** Like `requireLogin`, for pages about all patients: patients who sign in are redirected to their own pages (PATIENTS-3). */
export function requireClinician(
  context: AuthContext,
  handle: (request: FastifyRequest, reply: FastifyReply, login: Login) => Promise<FastifyReply>,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  return requireLogin(context, async (request, reply, login) =>
    isPatientUser(login.clinician)
      ? reply.redirect(paths.manage, request.method === 'GET' ? 302 : 303)
      : handle(request, reply, login),
  )
}

/** A session cookie; the login itself ends after 8 hours. */
export function setLoginCookie({ settings }: AuthContext, reply: FastifyReply, id: string): void {
  const { name, attributes } = makeLoginCookie(settings.issuerUrl)
  reply.setCookie(name, id, attributes)
}

export function clearLoginCookie({ settings }: AuthContext, reply: FastifyReply): void {
  const { name, attributes } = makeLoginCookie(settings.issuerUrl)
  reply.clearCookie(name, attributes)
}

// Browsers share cookies between ports, so the app's cookies have other names.
function makeLoginCookie(issuerUrl: string) {
  return defineCookie(issuerUrl, 'sallyport-login')
}

/** The clinicians in the setting may view the activity page; by default all, on loopback or while the lab is on. */
export function mayViewActivity(
  { audit, onLoopback, lab }: AuthSettings,
  clinician: Pick<Clinician, 'username' | 'fhirUserId'>,
): boolean {
  if (isPatientUser(clinician)) return false
  return audit.activityClinicians?.includes(clinician.username) ?? (onLoopback || lab)
}
