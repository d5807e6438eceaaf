import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import type { Schema } from '../../store/index.ts'
import {
  type Html,
  html,
  renderAlert,
  renderDocument,
  renderField,
  renderLoginArt,
  renderLogo,
} from '../../web/index.ts'
import { auditEvent } from '../audit.ts'
import { findPendingAuthorization, type PendingAuthorization } from '../authorize/pending-authorization.ts'
import type { Client } from '../client/client.ts'
import { findClient } from '../client/client.ts'
import { TEST_CLINICIAN } from '../clinician/clinician.ts'
import { isPasswordOf } from '../clinician/password.ts'
import type { AuthContext } from '../context.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { renderUnverifiedWarning } from '../portal/apps.ts'
import { type AttemptResult, tryLogin } from './attempt.ts'
import { beginLogin, findCurrentLogin, findLastLogin, setLoginCookie } from './login.ts'

/** The documented default password on loopback. */
const SHOWN_PASSWORD = 'sallyport'

interface TestLogin {
  readonly username: string
  readonly password: string
}

/**
 * The test login for the login page: only on loopback with sample patients, and only while the default password is
 * correct. The result is cached by password hash.
 */
function createTestLoginReader({ settings, store }: AuthContext): () => Promise<TestLogin | undefined> {
  const shown = settings.onLoopback && settings.fhir.upstreamUrl === undefined
  let known: { readonly hash: string; readonly right: boolean } | undefined
  return async () => {
    if (!shown) return undefined
    const clinician = await store.db
      .selectFrom('clinician')
      .select(['password_hash', 'disabled'])
      .where('username', '=', TEST_CLINICIAN.username)
      .executeTakeFirst()
    if (!clinician || clinician.disabled) return undefined
    const hash = clinician.password_hash
    if (known?.hash !== hash) known = { hash, right: await isPasswordOf(hash, SHOWN_PASSWORD) }
    return known.right ? { username: TEST_CLINICIAN.username, password: SHOWN_PASSWORD } : undefined
  }
}

/** `GET /login` shows the form, `POST /login` checks it. */
export function addLoginRoutes(app: FastifyInstance, context: AuthContext): void {
  const readTestLogin = createTestLoginReader(context)

  async function sendForm(reply: FastifyReply, form: LoginForm): Promise<FastifyReply> {
    const { pending, username, problem, signedOut, status } = form
    const client = pending && (await findClient(context.store, pending.request.clientId))
    const options: LoginPageOptions = {
      app: client,
      pendingId: pending?.id,
      username: username ?? pending?.request.loginHint,
      testLogin: await readTestLogin(),
      ...(problem === undefined ? {} : { problem }),
      ...(signedOut === undefined ? {} : { signedOut }),
    }
    // The form's redirects lead to the client, and the content security policy applies to all of them.
    const formTargets = pending ? [pending.request.redirectUri] : []
    return reply.sendPage(renderLoginPage(options), { status: status ?? 200, formTargets })
  }

  app.get(paths.login, async (request, reply) => {
    const query = readParameters(request.query)
    // Only if it is true: anyone can make a link.
    const signedOut = query.get('signed-out') === '1' && !(await findCurrentLogin(context, request))
    return sendForm(reply, { pending: await findPendingAuthorization(context, query), signedOut })
  })

  app.post(paths.login, async (request, reply) => {
    const form = readParameters(request.body)
    const pending = await findPendingAuthorization(context, form)
    const username = form.get('username') ?? ''
    const password = form.get('password') ?? ''
    const result = await tryLogin(context, { username, password, address: request.ip }, ({ kind, keep }) =>
      auditFailure(context, request, username, { ...describeLaunch(pending), ...REFUSED_EVENTS[kind] }, keep),
    )
    switch (result.kind) {
      case 'wrong':
        return sendForm(reply, { pending, username, status: 401, problem: WRONG })
      case 'too-many':
        reply.header('retry-after', String(result.retryAfterSeconds))
        return sendForm(reply, { pending, username, status: 429, problem: describeWait(result) })
      case 'right':
        return completeLogin(context, request, reply, result, pending)
    }
  })
}

interface LoginForm {
  readonly pending: PendingAuthorization | undefined
  readonly username?: string
  readonly status?: 401 | 429
  readonly problem?: string
  readonly signedOut?: boolean
}

const WRONG = 'The username or password is incorrect. Check both and try again.'

function describeWait({ retryAfterSeconds }: Extract<AttemptResult, { kind: 'too-many' }>): string {
  if (retryAfterSeconds < 60) return 'Too many attempts. Wait a moment and try again.'
  const minutes = Math.ceil(retryAfterSeconds / 60)
  return `Too many attempts. Wait ${minutes === 1 ? 'a minute' : `${minutes} minutes`} and try again.`
}

async function completeLogin(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { clinician, keep }: Extract<AttemptResult, { kind: 'right' }>,
  pending: PendingAuthorization | undefined,
): Promise<FastifyReply> {
  const before = await findLastLogin(context, request)
  const event = { kind: 'login', status: 302, clinician, ...describeLaunch(pending) } as const
  const id = await context.store.db.transaction().execute(async trx => {
    await keep(trx)
    const begun = await beginLogin(trx, clinician.id, before, context.clock())
    await auditEvent(context, request, event, trx)
    return begun
  })
  setLoginCookie(context, reply, id)
  request.log.info({ clinicianId: clinician.id }, 'Clinician logged in')
  return reply.redirect(pending ? `${paths.resume}?interaction=${pending.id}` : paths.portal, 302)
}

/** Records the clinician only if the username exists: the field may contain a mistyped password. */
async function auditFailure(
  context: AuthContext,
  request: FastifyRequest,
  username: string,
  failure: { readonly status: number; readonly reason: string },
  keep?: (trx: Transaction<Schema>) => Promise<void>,
): Promise<void> {
  const clinician = await context.store.db
    .selectFrom('clinician')
    .select(['id', 'fhir_user_id'])
    .where('username', '=', username)
    .executeTakeFirst()
  const event = {
    ...({ kind: 'login', allowed: false, anonymous: true, ...failure } as const),
    clinician: clinician && { id: clinician.id, fhirUserId: clinician.fhir_user_id },
  }
  if (!keep) return auditEvent(context, request, event)
  await context.store.db.transaction().execute(async trx => {
    await keep(trx)
    await auditEvent(context, request, event, trx)
  })
}

const REFUSED_EVENTS = {
  wrong: { status: 401, reason: 'Wrong username or password' },
  'too-many': { status: 429, reason: 'Too many failed attempts' },
} as const

/** The client and launch that the login belongs to. */
function describeLaunch(pending: PendingAuthorization | undefined) {
  return pending && { client: pending.request.clientId, launch: pending.request.launchId }
}

interface LoginPageOptions {
  /** The app that redirected the user here. */
  readonly app?: Client | undefined
  readonly pendingId?: string | undefined
  readonly username?: string | undefined
  readonly problem?: string
  /** Whether the user has just signed out. */
  readonly signedOut?: boolean
  /** Shown on loopback with sample patients. */
  readonly testLogin?: { readonly username: string; readonly password: string } | undefined
}

function renderLoginPage(options: LoginPageOptions): Html {
  return renderDocument(
    { title: 'Sign in' },
    html`<div class="gate">${renderCover()}<main id="main">${renderForm(options)}</main></div>`,
  )
}

function renderCover(): Html {
  return html`<header class="gate__leaf">${renderLogo('/login', 'Sallyport')}${renderLoginArt()}<div class="gate__say">
<p>You decide which records an app can use.</p>
<p>You choose the patient and the data. Every request of the app is then checked against your choice.</p>
</div></header>`
}

function renderForm({ app, pendingId, username, problem, signedOut, testLogin }: LoginPageOptions): Html {
  return html`<div class="signin">
<h1>Sign in</h1>
<p class="muted">Use your clinician account.</p>
<form method="post" action="/login">
${problem !== undefined && renderAlert(problem, '', 'bad')}
${signedOut && renderAlert('You are signed out.', '', 'ok')}
${app && problem === undefined && html`${renderAlert(`${app.name} sent you here.`, 'After you sign in, it opens.')}${renderUnverifiedWarning(app)}`}
${pendingId !== undefined && html`<input type="hidden" name="interaction" value="${pendingId}">`}
${renderField({ name: 'username', label: 'Username', autocomplete: 'username', required: true, ...(username === undefined ? {} : { value: username }) })}
${renderField({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password', required: true, autofocus: problem !== undefined })}
<button class="btn btn--wide">Sign in</button>
</form>
${
  testLogin &&
  html`<p class="note">Sallyport runs on this computer with sample patients. Test login: <code>${testLogin.username}</code>, password <code>${testLogin.password}</code>.</p>`
}
</div>`
}
