import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Insertable, type Kysely, sql, type Transaction } from 'kysely'
import { createRandomToken, type Schema, type Sealer, sha256 } from '../../store/index.ts'
import { defineCookie } from '../../web/http/index.ts'
import { LIFETIME, LIMITS } from '../base/limits.ts'
import { paths } from '../base/paths.ts'
import { type AuthUser, isPatientUser, opensRecords } from '../base/user.ts'
import { describeBrowser } from './browser.ts'
import type { UsersContext } from './context.ts'
import { listAcrValues } from './factors/methods.ts'
import { findLoginByHash, type Login } from './find-login.ts'
import { isIdle, recordLoginUse } from './idle.ts'
import { isDeveloper, mayViewActivity } from './login-rights.ts'
import type { ProviderLogin } from './providers/provider-login.ts'
import { findRequestedPage, rememberReturnPath } from './return-path.ts'
import { isOffline, readBasis } from './validity/facts.ts'
import type { AccessRules, Basis } from './validity/rule.ts'

/**
 * Begins a login with a new id, against session fixation. The previous login of the browser ends; its grants move to the
 * new login if it is the same user.
 */
export async function beginLogin(
  context: Pick<UsersContext, 'sealer' | 'clock' | 'rules'>,
  trx: Transaction<Schema>,
  newLogin: NewLogin,
): Promise<string> {
  const { userId, before, provider, methods, byTools, request } = newLogin
  const id = createRandomToken()
  const now = context.clock()
  const columns = {
    ...(await makeBasis(trx, context.rules, newLogin)),
    ...(provider && { issuer: provider.issuer, subject: provider.subject }),
  }
  await trx
    .insertInto('login')
    .values({
      id_hash: sha256(id),
      clinician_id: userId,
      created_at: now,
      expires_at: byTools?.endsAt ?? now + LIFETIME.login,
      browser: describeBrowser(request?.headers['user-agent']) ?? null,
      address: request?.ip ?? null,
      ...columns,
      ...(provider && toColumns(provider, context.sealer, sha256(id))),
      ...(methods && { amr: JSON.stringify(methods), acr: listAcrValues(methods)[0] ?? null }),
    })
    .execute()
  if (!byTools)
    await trx.updateTable('clinician').set({ signed_in_at: now }).where('id', '=', userId).execute()
  if (before?.user.id === userId) await moveGrants(trx, before.idHash, sha256(id), columns)
  if (before) await endLogin(trx, before.idHash)
  return id
}

interface NewLogin {
  readonly userId: string
  /** The previous login of the browser. */
  readonly before?: Login | undefined
  readonly provider?: ProviderLogin | undefined
  /** With which the user signs in. */
  readonly request?: Pick<FastifyRequest, 'headers' | 'ip'> | undefined
  /** How this server or a directory authenticated the user (RFC 8176). */
  readonly methods?: readonly string[] | undefined
  /** Set if developer tools begin the login, and the user does not sign in. */
  readonly byTools?: { readonly endsAt?: number } | undefined
}

async function makeBasis(
  trx: Kysely<Schema>,
  rules: AccessRules,
  { userId, provider, methods, byTools }: NewLogin,
) {
  const known = await readBasis(trx, rules, userId)
  if (!known) throw new Error('Cannot begin a login: there is no such account')
  const basis: Basis = {
    ...known.basis,
    ...(byTools && { developerTools: true }),
    ...(provider && { evidence: provider.evidence }),
    ...(methods?.includes('mfa') && { secondFactor: true }),
  }
  return { account_mark: known.account_mark, basis: JSON.stringify(basis) }
}

function toColumns(provider: ProviderLogin, sealer: Sealer, idHash: string) {
  const { sid, acr, amr, authTime, idToken, evidence } = provider
  return {
    sid: sid ?? null,
    acr: acr ?? null,
    auth_time: authTime ?? null,
    admin: evidence.admin !== undefined,
    amr: amr === undefined ? null : JSON.stringify(amr),
    id_token_sealed: idToken === undefined ? null : sealer.seal(idToken, toIdTokenCell(idHash)),
  }
}

function toIdTokenCell(idHash: string) {
  return { table: 'login', column: 'id_token_sealed', row: idHash } as const
}

/** Finds the id_token with which a login began, for the logout at its provider. */
export async function findIdToken(
  { store, sealer }: Pick<UsersContext, 'store' | 'sealer'>,
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

/** Grants that end with the login end with the new one. */
async function moveGrants(
  trx: Kysely<Schema>,
  from: string,
  to: string,
  columns: Pick<Insertable<Schema['grant']>, 'account_mark' | 'basis' | 'issuer' | 'subject'>,
): Promise<void> {
  await trx
    .updateTable('grant')
    .set({ issuer: null, subject: null, ...columns, login_id_hash: to })
    .where('login_id_hash', '=', from)
    .where(sql<boolean>`not ${isOffline}`)
    .execute()
}

/** Ends the logins of a provider's user, or of one session at the provider. Returns their users, and the grants that end with each. */
export async function endProviderLogins(
  trx: Transaction<Schema>,
  { issuer, subject, sid }: { readonly issuer: string; readonly subject?: string; readonly sid?: string },
): Promise<readonly EndedLogin[]> {
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
  const logins: EndedLogin[] = []
  for (const { id_hash, id, fhir_user_id } of rows)
    logins.push({ user: { id, fhirUserId: fhir_user_id }, ended: await endLogin(trx, id_hash) })
  return logins
}

interface EndedLogin {
  readonly user: Pick<AuthUser, 'id' | 'fhirUserId'>
  readonly ended: readonly string[]
}

/** Ends a login. Its grants without `offline_access` end with it: returns their ids, for the audit trail. */
export async function endLogin(trx: Kysely<Schema>, idHash: string): Promise<readonly string[]> {
  const ended = await trx
    .selectFrom('grant')
    .select('id')
    .where('clinician_id', '=', eb =>
      eb.selectFrom('login').select('login.clinician_id').where('id_hash', '=', idHash),
    )
    .where('login_id_hash', '=', idHash)
    .where('revoked_at', 'is', null)
    .where(sql<boolean>`not ${isOffline}`)
    .orderBy('created_at', 'desc')
    .limit(LIMITS.grantsRecorded)
    .execute()
  await trx.deleteFrom('login').where('id_hash', '=', idHash).execute()
  return ended.map(({ id }) => id)
}

/** Finds the login of the browser, unless it was idle for too long. Opening a page counts as use, and so do the reports of its script. */
export async function findCurrentLogin(
  context: UsersContext,
  request: FastifyRequest,
): Promise<Login | undefined> {
  const { settings, store, clock } = context
  const login = await findLastLogin(context, request)
  if (!login || isIdle(login, settings, clock())) return undefined
  if (isNavigation(request)) await recordLoginUse(store, settings, login, clock())
  return {
    ...login,
    mayViewActivity: mayViewActivity(settings, login),
    developerPages: isDeveloper(settings, login) ? context.developerPages : undefined,
  }
}

/** Like `findCurrentLogin`, but also finds an idle login, which can be ended or replaced. */
export async function findLastLogin(
  context: UsersContext,
  request: FastifyRequest,
): Promise<Login | undefined> {
  const id = request.cookies[makeLoginCookie(context.settings.issuerUrl).name]
  return id === undefined ? undefined : findLoginByHash(context.store.db, context, sha256(id))
}

export function hasLoginCookie({ settings }: UsersContext, request: FastifyRequest): boolean {
  return request.cookies[makeLoginCookie(settings.issuerUrl).name] !== undefined
}

/** Whether it is the login of this browser. A launch may have a login of its own. */
export function isLoginOfBrowser({ settings }: UsersContext, request: FastifyRequest, login: Login): boolean {
  const id = request.cookies[makeLoginCookie(settings.issuerUrl).name]
  return id !== undefined && sha256(id) === login.idHash
}

// A polling script does not count as use. Over plain http browsers omit `Sec-Fetch-Mode`, so our scripts send a header.
function isNavigation({ headers }: FastifyRequest): boolean {
  return headers['x-requested-with'] === undefined && (headers['sec-fetch-mode'] ?? 'navigate') === 'navigate'
}

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>
type LoginHandler = (request: FastifyRequest, reply: FastifyReply, login: Login) => Promise<FastifyReply>

type FindPage = (request: FastifyRequest) => string

/** Redirects to the login page. The sign-in returns to the page that the user wanted. */
export function sendToLogin(
  context: UsersContext,
  request: FastifyRequest,
  reply: FastifyReply,
  findPage: FindPage = findRequestedPage,
): FastifyReply {
  if (isNavigation(request)) rememberReturnPath(context, reply, findPage(request))
  return reply.redirect(paths.login, 302)
}

/** Redirects to the login page without a login. */
export function requireLogin(context: UsersContext, handle: LoginHandler, findPage?: FindPage): Handler {
  return async (request, reply) => {
    const login = await findCurrentLogin(context, request)
    return login ? handle(request, reply, login) : sendToLogin(context, request, reply, findPage)
  }
}

/** Where a user begins: patients with their own records, and accounts that open none with their area. */
export function findStartPage({ user, admin, auditor }: Login): string {
  if (isPatientUser(user)) return paths.home
  if (opensRecords(user)) return paths.portal
  return admin || auditor ? paths.admin : paths.account
}

/** Like `requireLogin`, for pages about all patients: others are redirected to their own start page (PATIENTS-3, LOGIN-19). */
export function requireClinician(context: UsersContext, handle: LoginHandler, findPage?: FindPage): Handler {
  return requireLogin(
    context,
    async (request, reply, login) => {
      const start = findStartPage(login)
      return start === paths.portal
        ? handle(request, reply, login)
        : reply.redirect(start, request.method === 'GET' ? 302 : 303)
    },
    findPage,
  )
}

/** A session cookie; the login itself ends after 8 hours. */
export function setLoginCookie({ settings }: UsersContext, reply: FastifyReply, id: string): void {
  const { name, attributes } = makeLoginCookie(settings.issuerUrl)
  reply.setCookie(name, id, attributes)
}

export function clearLoginCookie({ settings }: UsersContext, reply: FastifyReply): void {
  const { name, attributes } = makeLoginCookie(settings.issuerUrl)
  reply.clearCookie(name, attributes)
}

// Browsers share cookies between ports, so the app's cookies have other names.
function makeLoginCookie(issuerUrl: string) {
  return defineCookie(issuerUrl, 'sallyport-login')
}
