import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Transaction } from 'kysely'
import type { Schema } from '../../../store/index.ts'
import { html, renderAlert } from '../../../web/ui/index.ts'
import { auditEvent, describeRefused } from '../../base/audit.ts'
import { NO_HEAD_ROUTE, paths } from '../../base/paths.ts'
import { readParameters } from '../../base/request.ts'
import { findPendingAuthorization, type PendingAuthorization } from '../../oauth/authorize/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { lockAccount } from '../../users/accounts.ts'
import { findFactorOf } from '../../users/factors/factors.ts'
import { METHODS } from '../../users/factors/methods.ts'
import {
  consumePasskey,
  findRelyingParty,
  offersPasskeys,
  readCredentialId,
  requestPasskey,
  type UsedPasskey,
  verifyPasskey,
} from '../../users/factors/passkeys.ts'
import { NO_PASSWORD } from '../../users/passwords.ts'
import { SignInRefusal } from '../../users/providers/refusal.ts'
import {
  consumePendingLogin,
  findPasskeyLogin,
  setPendingCookie,
  startPasskeyLogin,
} from '../../users/sign-in/pending-login.ts'
import { isUsableAccount } from '../../users/validity/rule.ts'
import { renderPasskeyForm } from '../parts/factors/passkey-form.ts'
import { sendErrorPage } from '../parts/page-parts.ts'
import { completeLogin, describeLaunch, withInteraction } from './complete.ts'
import { renderGate } from './page.ts'

/** `/login/passkey`: a sign-in without a password. The passkey says whose it is, and verifies its user. */
export function addPasskeyRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(paths.loginPasskey, NO_HEAD_ROUTE, async (request, reply) => {
    const pending = await findPendingAuthorization(context, readParameters(request.query))
    return offersPasskeys(context)
      ? sendPage(context, reply, pending)
      : reply.redirect(withInteraction(paths.login, pending), 302)
  })
  app.post(paths.loginPasskey, async (request, reply) => {
    const form = readParameters(request.body)
    const pending = await findPendingAuthorization(context, form)
    return offersPasskeys(context)
      ? signIn(context, reply, pending, form.get('credential') ?? '')
      : reply.redirect(withInteraction(paths.login, pending), 303)
  })
}

async function sendPage(
  context: AuthContext,
  reply: FastifyReply,
  pending: PendingAuthorization | undefined,
  problem?: string,
): Promise<FastifyReply> {
  const party = findRelyingParty(context.settings)
  const started = party && (await startPasskeyLogin(context, reply.request))
  if (!started) {
    const { status, title, paragraphs: text } = new SignInRefusal('busy')
    return sendErrorPage(reply, context, { kind: 'unavailable', status, title, text })
  }
  setPendingCookie(context, reply, started.id)
  const page = renderGate(
    { title: 'Sign in with a passkey', brand: context.brand, scripts: ['passkey.js'] },
    html`<div class="signin">
<h1>Sign in with a passkey</h1>
<p class="muted">Your browser asks for your fingerprint, face or PIN, or for your security key.</p>
${problem !== undefined && renderAlert(problem, '', 'bad')}
<p data-without-passkey>This browser has no passkeys, or does not run scripts. Sign in with your password.</p>
${renderPasskeyForm({
  action: paths.loginPasskey,
  hidden: { interaction: pending?.id },
  request: requestPasskey(party, started.challenge),
  button: 'Use your passkey',
  starts: problem === undefined,
})}
<p><a href="${withInteraction(paths.login, pending)}">Sign in another way</a></p>
</div>`,
  )
  const formTargets = pending ? [pending.request.redirectUri] : []
  return reply.sendPage(page, { status: problem === undefined ? 200 : 401, formTargets })
}

async function signIn(
  context: AuthContext,
  reply: FastifyReply,
  pending: PendingAuthorization | undefined,
  credential: string,
): Promise<FastifyReply> {
  const { store, settings, clock } = context
  const found = await findPasskeyLogin(context, reply.request)
  const factor = found && (await findFactorOf(store.db, readCredentialId(credential) ?? ''))
  const party = findRelyingParty(settings)
  const used = party && factor && (await verifyPasskey(party, found.challenge, [factor], credential))
  const refuse = async () => {
    context.metrics.signIns.add(['passkey', 'wrong'])
    const refused = describeRefused('passkey-wrong')
    const event = { kind: 'login', anonymous: true, ...refused } as const
    await auditEvent(context, reply.request, { ...event, ...describeLaunch(pending) })
    return sendPage(context, reply, pending, `${refused.reason}.`)
  }
  if (!used || !found) return refuse()
  const takePasskey = async (trx: Transaction<Schema>) =>
    (await consumePendingLogin(trx, found)) && (await consumePasskey(trx, used, clock()))
      ? findOwner(context, trx, used)
      : undefined
  return completeLogin(
    context,
    reply,
    { store: takePasskey, methods: METHODS.passkey, reason: 'Signed in with a passkey', retry: refuse },
    pending,
  )
}

/** The user of a passkey. A user of a directory needs its password too: the directory may have disabled the user. */
async function findOwner(
  { rules }: Pick<AuthContext, 'rules'>,
  trx: Transaction<Schema>,
  { factor }: UsedPasskey,
) {
  const account = await lockAccount(trx, factor.clinician_id)
  if (!account || !isUsableAccount(account, rules) || account.password_hash === NO_PASSWORD) return undefined
  return { id: account.id, fhirUserId: account.fhir_user_id }
}
