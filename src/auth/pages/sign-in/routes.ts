import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import { hasForm, isRedirecting, type LdapProvider } from '../../../config/index.ts'
import { isFailure } from '../../../core/index.ts'
import type { Schema } from '../../../store/index.ts'
import { formatLength } from '../../../web/ui/index.ts'
import { auditEvent, describeRefused } from '../../base/audit.ts'
import { paths } from '../../base/paths.ts'
import { type Parameters, readParameters } from '../../base/request.ts'
import { needsConsent } from '../../oauth/authorize/choose-step.ts'
import { findPendingAuthorization, type PendingAuthorization } from '../../oauth/authorize/request.ts'
import { findClient } from '../../oauth/clients/client.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { findTestAccounts, TEST_CLINICIAN } from '../../users/accounts.ts'
import { tryLogin } from '../../users/attempt.ts'
import { offersPasskeys } from '../../users/factors/passkeys.ts'
import { findCurrentLogin, findLastLogin, hasLoginCookie } from '../../users/login.ts'
import { isPasswordOf } from '../../users/passwords.ts'
import { findLastUser, findReturnPath } from '../../users/return-path.ts'
import { readBrowser } from '../../users/senders.ts'
import { completeLogin, describeLaunch } from './complete.ts'
import { logInAtDirectory } from './directory.ts'
import { type LoginPageOptions, type OtherWay, renderLoginPage, type TestLogin } from './page.ts'

/** The documented default password on loopback. */
const SHOWN_PASSWORD = 'sallyport'

/**
 * The test login for the login page: only on loopback with sample patients, and only while the default password is
 * correct. The result is cached by password hash.
 */
function createTestLoginReader({
  settings,
  store,
  rules,
  hasSampleRecords,
}: AuthContext): () => Promise<TestLogin | undefined> {
  const shown = settings.onLoopback && settings.fhir.upstreamUrl === undefined
  let known: { readonly hash: string; readonly right: Promise<boolean> } | undefined
  const forget = () => {
    known = undefined
  }
  return async () => {
    if (!shown) return undefined
    const { hash, samples } = await findTestAccounts(store, rules)
    if (hash === undefined) return undefined
    // Requests that arrive during the comparison share its result.
    if (known?.hash !== hash) known = { hash, right: isPasswordOf(hash, SHOWN_PASSWORD) }
    if (!(await known.right.catch(forget))) return undefined
    const others = samples.filter(({ kind }) => kind === 'Admin' || hasSampleRecords)
    return { username: TEST_CLINICIAN.username, password: SHOWN_PASSWORD, others }
  }
}

/** `GET /login` shows the form, `POST /login` checks it. */
export function addLoginRoutes(app: FastifyInstance, context: AuthContext): void {
  const readTestLogin = createTestLoginReader(context)

  async function sendForm(reply: FastifyReply, form: LoginForm): Promise<FastifyReply> {
    const { pending, directory, status = 200, ...shown } = form
    const client = pending && (await findClient(context.store.db, context, pending.request.clientId))
    const options: LoginPageOptions = {
      ...shown,
      brand: context.brand,
      offersPasskeys: offersPasskeys(context),
      app: client,
      asksConsent: client && needsConsent(client, pending.request),
      pendingId: pending?.id,
      username: shown.username ?? pending?.request.loginHint,
      testLogin: directory ? undefined : await readTestLogin(),
      ...chooseForm(context, directory),
    }
    // The form's redirects lead to the client, and the content security policy applies to all of them.
    const formTargets = pending ? [pending.request.redirectUri] : []
    return reply.sendPage(renderLoginPage(options), { status, formTargets })
  }

  async function handleDirectory(
    reply: FastifyReply,
    directory: LdapProvider,
    pending: PendingAuthorization | undefined,
    form: Parameters,
  ): Promise<FastifyReply> {
    const username = form.get('username') ?? ''
    const password = form.get('password') ?? ''
    const browser = readBrowser(context, reply.request)
    const attempt = { username, password, address: reply.request.ip, browser }
    const result = await logInAtDirectory(context, reply, directory, pending, attempt)
    if (typeof result !== 'string') return result
    if (result === 'password-wrong')
      return sendForm(reply, { pending, directory, username, status: 401, problem: WRONG })
    const { loginFailureWindowSeconds: retryAfterSeconds } = context.settings
    return sendTooMany(reply, { pending, directory, username }, retryAfterSeconds)
  }

  function sendTooMany(
    reply: FastifyReply,
    form: LoginForm,
    retryAfterSeconds: number,
  ): Promise<FastifyReply> {
    reply.header('retry-after', String(retryAfterSeconds))
    return sendForm(reply, { ...form, status: 429, problem: describeWait(retryAfterSeconds) })
  }

  app.get(paths.login, async (request, reply) => {
    const query = readParameters(request.query)
    // Only if it is true: anyone can make a link. The cookie of an ended login stays: the next sign-in ends what remains of it.
    const login = await findCurrentLogin(context, request)
    const signedOut = query.get('signed-out') === '1' && !login
    const expired =
      login || !hasLoginCookie(context, request) ? undefined : await describeExpiry(context, request)
    const again = query.get('prompt') === 'login' && login !== undefined
    const wanted = login || signedOut || expired ? undefined : describeWanted(context, request)
    const pending = await findPendingAuthorization(context, query)
    const username = again && !login.issuer ? login.user.username : undefined
    const directory = chooseDirectory(context, query)
    return sendForm(reply, { directory, pending, username, signedOut, expired, again, wanted })
  })

  app.post(paths.login, async (request, reply) => {
    const form = readParameters(request.body)
    const pending = await findPendingAuthorization(context, form)
    const directory = findDirectory(context, form)
    if (directory) return handleDirectory(reply, directory, pending, form)
    if (!context.providers.passwords) return sendForm(reply, { pending, status: 403, problem: NO_PASSWORDS })
    return handlePassword(reply, pending, form)
  })

  async function handlePassword(
    reply: FastifyReply,
    pending: PendingAuthorization | undefined,
    form: Parameters,
  ): Promise<FastifyReply> {
    const { request } = reply
    const username = form.get('username') ?? ''
    const password = form.get('password') ?? ''
    const attempt = { username, password, address: request.ip, browser: readBrowser(context, request) }
    const result = await tryLogin(context, attempt, refused => {
      const event = describeRefused(
        refused.reason === 'password-wrong' && refused.isLocked ? 'account-locked' : refused.reason,
      )
      return auditFailure(context, request, username, { ...describeLaunch(pending), ...event }, refused.keep)
    })
    if (!isFailure(result))
      return completeLogin(
        context,
        reply,
        {
          store: async trx => ((await result.confirm(trx)) ? result.user : undefined),
          methods: ['pwd'],
          retry: () => handlePassword(reply, pending, form),
        },
        pending,
      )
    if (result.reason === 'password-too-many') {
      context.metrics.signIns.add(['password', 'too-many'])
      return sendTooMany(reply, { pending, username }, result.retryAfterSeconds)
    }
    context.metrics.signIns.add(['password', 'wrong'])
    return sendForm(reply, {
      pending,
      username,
      status: 401,
      problem: WRONG,
      ...(result.isRepeated && { advice: OTHER_REASONS }),
    })
  }
}

interface LoginForm
  extends Pick<
    LoginPageOptions,
    'username' | 'problem' | 'advice' | 'signedOut' | 'expired' | 'again' | 'wanted'
  > {
  readonly pending: PendingAuthorization | undefined
  /** The directory whose passwords the form takes. */
  readonly directory?: LdapProvider | undefined
  readonly status?: 401 | 403 | 429
}

/** Why the login has ended, as far as that is known. */
async function describeExpiry(
  context: AuthContext,
  request: FastifyRequest,
): Promise<LoginPageOptions['expired']> {
  const isIdle = (await findLastLogin(context, request)) !== undefined
  return isIdle
    ? {
        what: `You were signed out because you were inactive for ${formatLength(context.settings.loginIdleSeconds)}.`,
        advice: `Sign in again to continue where you were. ${OTHER_APPS}`,
      }
    : { what: 'Your sign-in has ended.', advice: 'Sign in again to continue where you were.' }
}

/** Apps of others keep the access that the user gave them, and do not learn of the end of the sign-in. */
const OTHER_APPS =
  'Records that you opened in other apps may still be open there. If you leave this computer, close them.'

/** A click on a page of this server comes from a user who was signed in. The start page needs no explanation otherwise. */
function describeWanted(context: AuthContext, request: FastifyRequest): LoginPageOptions['wanted'] {
  const path = findReturnPath(context, request, findLastUser(context, request))
  if (path === undefined) return undefined
  if (request.headers['sec-fetch-site'] === 'same-origin') return 'again'
  return path === paths.portal || path === paths.home ? undefined : 'page'
}

/** The directory whose passwords a sent form has. Without a name, they are those of this server if it has any. */
function findDirectory({ providers }: AuthContext, parameters: Parameters): LdapProvider | undefined {
  const named = parameters.get('provider')
  const directories = providers.all.filter(hasForm)
  if (named === undefined) return providers.passwords ? undefined : directories[0]
  return directories.find(({ id }) => id === named)
}

type Method = AuthContext['providers']['ordered'][number]

/** The first method that has passwords. */
function findFirstForm({ providers }: AuthContext): 'password' | LdapProvider | undefined {
  return providers.ordered.find(method => method === 'password' || hasForm(method))
}

/** The directory whose passwords the page asks for: the named one, or the first method that has passwords. */
function chooseDirectory(context: AuthContext, parameters: Parameters): LdapProvider | undefined {
  if (parameters.get('provider') !== undefined) return findDirectory(context, parameters)
  const first = findFirstForm(context)
  return first === 'password' ? undefined : first
}

/** The form of the page, and links to the other ways to sign in. A form that the user chose is above all of them. */
function chooseForm(
  context: AuthContext,
  directory: LdapProvider | undefined,
): Pick<LoginPageOptions, 'form' | 'above' | 'others'> {
  const { ordered, passwords } = context.providers
  const chosen = directory ?? (passwords ? 'password' : undefined)
  const others = ordered.filter(method => method !== chosen)
  const isFirst = chosen !== undefined && chosen === findFirstForm(context)
  const at = isFirst ? ordered.indexOf(chosen) : 0
  return {
    form: chosen === 'password' ? 'own' : chosen,
    above: others.slice(0, at).map(method => describeWay(context, method)),
    others: others.slice(at).map(method => describeWay(context, method)),
  }
}

function describeWay({ brand }: AuthContext, method: Method): OtherWay {
  if (method === 'password')
    return { name: `${brand.name} account`, path: `${paths.login}?provider=password` }
  const { id, name } = method
  return {
    name,
    path: isRedirecting(method) ? `${paths.loginProviders}/${id}` : `${paths.login}?provider=${id}`,
  }
}

const NO_PASSWORDS = 'Sign-in with a password is switched off.'
const WRONG = 'The username or password is incorrect. Check both and try again.'
/** The same for every username: whether an account exists or is locked is not disclosed. */
const OTHER_REASONS =
  'If you are sure of both, the account may be locked: after many wrong passwords, its user can sign in only in a browser or network where they have signed in before. An administrator can unlock it, or set a new password.'

function describeWait(retryAfterSeconds: number): string {
  if (retryAfterSeconds < 60) return 'Too many attempts. Wait a moment and try again.'
  const minutes = Math.ceil(retryAfterSeconds / 60)
  return `Too many attempts. Wait ${minutes === 1 ? 'a minute' : `${minutes} minutes`} and try again.`
}

/** Records the user only if the username exists: the field may contain a mistyped password. */
async function auditFailure(
  context: AuthContext,
  request: FastifyRequest,
  username: string,
  failure: ReturnType<typeof describeRefused>,
  keep: (trx: Transaction<Schema>) => Promise<void>,
): Promise<void> {
  const user = await context.store.db
    .selectFrom('clinician')
    .select(['id', 'fhir_user_id'])
    .where('username', '=', username)
    .executeTakeFirst()
  const event = {
    kind: 'login' as const,
    anonymous: true,
    ...failure,
    user: user && { id: user.id, fhirUserId: user.fhir_user_id },
  }
  await context.store.db.transaction().execute(async trx => {
    await keep(trx)
    await auditEvent(context, request, event, trx)
  })
}
