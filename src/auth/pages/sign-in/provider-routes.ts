import type { FastifyInstance, FastifyReply } from 'fastify'
import { hasForm, isRedirecting, type LoginProvider, type OidcProvider } from '../../../config/index.ts'
import { isFailure } from '../../../core/index.ts'
import { auditEvent } from '../../base/audit.ts'
import { NO_HEAD_ROUTE, paths } from '../../base/paths.ts'
import { readParameters } from '../../base/request.ts'
import { findPendingAuthorization, type PendingAuthorization } from '../../oauth/authorize/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { findCurrentLogin } from '../../users/login.ts'
import { collectEvidence } from '../../users/providers/groups.ts'
import { SignInRefusal } from '../../users/providers/refusal.ts'
import { findAccount, storeAccount } from '../../users/sign-in/account.ts'
import { addBackchannelLogoutRoute } from '../../users/sign-in/oidc/logout-token.ts'
import { storePendingSignIn, takePendingSignIn } from '../../users/sign-in/oidc/pending-sign-in.ts'
import {
  finishSignIn,
  makeRecentRequest,
  type ProviderUser,
  prepareSignIn,
  type WantedSignIn,
} from '../../users/sign-in/oidc/sign-in.ts'
import { sendErrorPage } from '../parts/page-parts.ts'
import { completeLogin, describeLaunch, withInteraction } from './complete.ts'

/** `GET /login/providers/<id>` redirects to a provider, which redirects back to `GET /login/callback`. */
export function addProviderRoutes(app: FastifyInstance, context: AuthContext): void {
  addBackchannelLogoutRoute(app, context)

  app.get(`${paths.loginProviders}/:id`, NO_HEAD_ROUTE, async (request, reply) => {
    const provider = context.providers.find(readParameters(request.params).get('id') ?? '')
    if (!isRedirecting(provider)) return reply.callNotFound()
    const pending = await findPendingAuthorization(context, readParameters(request.query))
    const isAgain = readParameters(request.query).get('prompt') === 'login'
    const wanted = pending ?? (isAgain ? { request: makeRecentRequest(context.clock()) } : undefined)
    const url = await startSignIn(context, reply, provider, wanted)
    return typeof url === 'string'
      ? reply.redirect(url, 302)
      : refuseSignIn(context, reply, url, { provider, pending })
  })

  for (const path of [paths.loginCallback, `${paths.loginCallback}/:id`])
    app.get(path, NO_HEAD_ROUTE, (_request, reply) => handleCallback(context, reply))
}

async function startSignIn(
  context: AuthContext,
  reply: FastifyReply,
  provider: OidcProvider,
  wanted: WantedSignIn | undefined,
): Promise<string | SignInRefusal> {
  const prepared = await prepareSignIn(context, provider, wanted)
  if (isFailure(prepared)) return prepared
  const state = await storePendingSignIn(context, reply.request, reply, prepared.pending)
  return state === undefined ? new SignInRefusal('busy') : prepared.buildUrl(state)
}

async function handleCallback(context: AuthContext, reply: FastifyReply): Promise<FastifyReply> {
  const { request } = reply
  const state = readParameters(request.query).get('state') ?? ''
  const signIn = await takePendingSignIn(context, request, reply, state)
  const provider = signIn && context.rules.findByIssuer(signIn.issuer)
  if (!signIn || !isRedirecting(provider))
    return refuseSignIn(context, reply, new SignInRefusal('expired'), {})
  const { interaction = '' } = signIn
  const pending = await findPendingAuthorization(context, readParameters({ interaction }))
  const url = new URL(request.url, context.settings.issuerUrl)
  const user = await finishSignIn(context, provider, signIn, { url, state })
  return isFailure(user)
    ? refuseSignIn(context, reply, user, { provider, pending })
    : completeSignIn(context, reply, { provider, pending, user })
}

interface SignIn {
  readonly provider: LoginProvider
  readonly pending: PendingAuthorization | undefined
  readonly user: ProviderUser
}

/** Logs a user in whom a provider authenticated, if the user has an account. */
export async function completeSignIn(
  context: AuthContext,
  reply: FastifyReply,
  signIn: SignIn,
): Promise<FastifyReply> {
  const { provider, pending, user } = signIn
  const tryOnce = async (): Promise<FastifyReply> => {
    const account = await findAccount(context, provider, user.login.subject, user.claims)
    if (isFailure(account))
      return refuseSignIn(context, reply, account, { provider, pending, subject: user.login.subject })
    const authenticated = {
      store: (trx: Parameters<typeof storeAccount>[0]) => storeAccount(trx, account, context.clock()),
      retry: tryOnce,
      methods: hasForm(provider) ? user.login.amr : undefined,
      provider: { ...user.login, evidence: collectEvidence(provider, user, context.clock()) },
      reason: `Signed in with ${provider.id}`,
    }
    return completeLogin(context, reply, authenticated, pending)
  }
  // A simultaneous sign-in of the same user may have created the account: then the second attempt finds it.
  return tryOnce().catch(tryOnce)
}

interface RefusedSignIn {
  readonly provider?: LoginProvider
  readonly pending?: PendingAuthorization | undefined
  /** The user, if the provider authenticated one. */
  readonly subject?: string
}

/** Records a refused sign-in and explains it to the user, who can go back to the sign-in page. */
export async function refuseSignIn(
  context: AuthContext,
  reply: FastifyReply,
  refusal: SignInRefusal,
  { provider, pending, subject }: RefusedSignIn,
): Promise<FastifyReply> {
  const { request } = reply
  const { status, reason, detail, title, paragraphs } = refusal
  context.metrics.signIns.add([provider?.id ?? 'unknown', reason])
  request.log.info({ provider: provider?.id, reason, detail }, 'Sign-in refused')
  await auditEvent(context, request, {
    kind: 'login' as const,
    allowed: false,
    status,
    ...describeLaunch(pending),
    anonymous: subject === undefined,
    subject,
    reason: provider ? `${provider.id}: ${refusal.text}` : refusal.text,
    details: { reason, detail },
  })
  const back = withInteraction(paths.login, pending)
  return sendErrorPage(reply, context, {
    kind: status >= 500 ? 'unavailable' : 'refused',
    status,
    title,
    text: paragraphs,
    code: reason,
    actions: [{ href: back, text: 'Back to sign-in' }],
    login: await findCurrentLogin(context, request),
    isRecorded: true,
    ...(provider && { facts: [['Sign-in', provider.name]] }),
  })
}
