import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { renderErrorPage } from '../../web/index.ts'
import { type AppContext, isSampleData, linkPortal } from '../context.ts'
import { SESSIONS_PER_BROWSER } from '../limits.ts'
import type { OAuthProblem } from '../oauth/client.ts'
import { type Exchange, exchangeCode, revokeSession, revokeTokens } from '../oauth/token-requests.ts'
import {
  clearSessionCookie,
  planSessionCookie,
  readSessionCookies,
  type SessionCookie,
} from '../sessions/find-session.ts'
import { getSessionPath } from '../sessions/session.ts'
import { auditSession, type NewSession, type OpenedSession, openSession } from '../sessions/session-store.ts'
import { beginLaunch, getCallbackUrl } from './begin-launch.ts'
import {
  isInFrame,
  type LaunchParameters,
  needsPage,
  renderFramePage,
  renderReturnPage,
  testCookies,
} from './frame.ts'
import {
  isWaitingInFrame,
  type LaunchTicket,
  makeRoom,
  type PendingLaunch,
  planLaunchCookie,
  takeLaunch,
} from './pending-launch.ts'
import { describeRefusal, findLongParameter, type LaunchRefusal } from './refusal.ts'
import { chooseRefusalTexts } from './refusal-page.ts'

interface Callback {
  readonly search: string
  readonly state: string
  readonly launchCookie: string
  readonly held: readonly SessionCookie[]
  readonly requestId: string
}

type FinishedLaunch =
  | ({ readonly kind: 'opened' } & OpenedSession)
  /** The auth server must show a page, which is never shown in a frame. */
  | { readonly kind: 'needs-window'; readonly parameters: LaunchParameters }
  | LaunchRefusal

async function finishLaunch(context: AppContext, callback: Callback): Promise<FinishedLaunch> {
  const launch = await takeLaunch(context, callback.state, callback.launchCookie)
  if (!launch)
    return {
      kind: 'unknown-state',
      check:
        callback.launchCookie === ''
          ? 'the browser sent no cookie of this launch'
          : 'the launch is unknown, already finished, or expired',
    }
  const found = await context.discovery.find(launch.fhirBaseUrl)
  if (!found.ok) return { kind: 'no-discovery', failure: found.failure }
  // The app sends the code only to the auth server that it started the launch with (RFC 9207, mix-up).
  if (found.value.issuer !== launch.issuer)
    return { kind: 'no-tokens', problem: hasOtherIssuer(launch.issuer, found.value.issuer) }
  const exchange = await exchangeCode(context, {
    fhirBaseUrl: launch.fhirBaseUrl,
    metadata: found.value,
    callbackUrl: new URL(getCallbackUrl(context) + callback.search),
    state: callback.state,
    nonce: launch.nonce,
    codeVerifier: launch.codeVerifier,
  })
  if (exchange.kind === 'bad-callback') return exchange
  if (exchange.kind === 'refused' && launch.framedLaunch !== undefined && needsPage(exchange.error))
    return { kind: 'needs-window', parameters: toParameters(launch, launch.framedLaunch) }
  if (exchange.kind !== 'granted') return { kind: 'no-tokens', problem: exchange }
  return startSession(context, launch, exchange, callback)
}

function toParameters({ fhirBaseUrl }: PendingLaunch, launch: string): LaunchParameters {
  return launch === '' ? {} : { iss: fhirBaseUrl, launch }
}

function hasOtherIssuer(expected: string, issuer: string): OAuthProblem {
  const check = `smart-configuration issuer is now ${issuer}, expected ${expected}`
  return { kind: 'unacceptable', code: 'ISSUER_CHANGED', check }
}

async function startSession(
  context: AppContext,
  { fhirBaseUrl, issuer }: PendingLaunch,
  { grant, identity }: Exchange & { readonly kind: 'granted' },
  { held, requestId }: Callback,
): Promise<FinishedLaunch> {
  const { patientId } = grant
  if (patientId === undefined) {
    await revokeTokens(context, { fhirBaseUrl, issuer }, grant.tokens)
    return { kind: 'no-patient' }
  }
  const opening = { fhirBaseUrl, issuer, grant, patientId, identity, held }
  const session = await storeSession(context, opening, requestId).catch(async error => {
    await revokeTokens(context, { fhirBaseUrl, issuer }, grant.tokens)
    throw error
  })
  for (const oldest of session.ended) await revokeSession(context, oldest)
  return { kind: 'opened', ...session }
}

function storeSession(context: AppContext, opening: NewSession, requestId: string): Promise<OpenedSession> {
  return context.store.db.transaction().execute(async trx => {
    const session = await openSession(trx, context, opening)
    for (const oldest of session.ended) await auditSession(context, oldest, TOO_MANY_SESSIONS, trx)
    await auditSession(context, session.opened, { kind: 'session-open', status: 302, requestId }, trx)
    return session
  })
}

const TOO_MANY_SESSIONS = {
  kind: 'session-end',
  status: 302,
  reason: `The browser opened more than ${SESSIONS_PER_BROWSER} sessions`,
} as const

type Query = Readonly<Record<string, unknown>>

/** `/launch` and `/callback`. There is no HEAD route, because both change state. */
export function addLaunchRoutes(app: FastifyInstance, context: AppContext): void {
  app.get<{ Querystring: Query }>('/launch', { exposeHeadRoute: false }, async (request, reply) => {
    const long = findLongParameter(request.query)
    if (long) return sendRefusal(context, reply, long)
    const frame = isInFrame(context, request) ? 'silent' : undefined
    const tested = frame && testCookies(context, request, reply)
    if (tested) return tested
    const begun = await beginLaunch(context, request.query, request.ip, frame)
    if (begun.kind !== 'begun') return sendRefusal(context, reply, begun)
    await setLaunchCookie(context, request, reply, begun.ticket)
    return reply.redirect(begun.url)
  })

  app.get<{ Querystring: Query }>('/callback', { exposeHeadRoute: false }, async (request, reply) => {
    const long = findLongParameter(request.query)
    if (long) return sendRefusal(context, reply, long)
    const { state } = request.query
    if (typeof state !== 'string')
      return sendRefusal(context, reply, {
        kind: 'unknown-state',
        check: 'parameter state is missing or repeated',
      })
    const launch = planLaunchCookie(context, state)
    const held = readSessionCookies(context, request)
    const finished = await finishLaunch(context, {
      search: request.url.slice(request.url.indexOf('?')),
      state,
      launchCookie: request.cookies[launch.name] ?? '',
      held,
      requestId: request.id,
    })
    if (finished.kind === 'unknown-state')
      return (await isWaitingInFrame(context, state))
        ? reply.sendPage(renderReturnPage(context))
        : sendRefusal(context, reply, finished)
    reply.clearCookie(launch.name, launch.attributes)
    if (finished.kind === 'needs-window') return askForWindow(context, request, reply, finished.parameters)
    if (finished.kind !== 'opened') return sendRefusal(context, reply, finished)
    return redirectToSession(context, reply, finished)
  })
}

async function setLaunchCookie(
  context: AppContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { cookie, cookieValue }: LaunchTicket,
): Promise<void> {
  for (const { name, attributes } of await makeRoom(context, request.cookies))
    reply.clearCookie(name, attributes)
  reply.setCookie(cookie.name, cookieValue, cookie.attributes)
}

/** Begins the launch again. Its authorization request is for a window; its cookie stays in the frame. */
async function askForWindow(
  context: AppContext,
  request: FastifyRequest,
  reply: FastifyReply,
  parameters: LaunchParameters,
): Promise<FastifyReply> {
  const begun = await beginLaunch(context, parameters, request.ip, 'window')
  if (begun.kind !== 'begun') return sendRefusal(context, reply, begun)
  await setLaunchCookie(context, request, reply, begun.ticket)
  return reply.sendPage(renderFramePage(context, { parameters, authorizationUrl: begun.url }))
}

function redirectToSession(
  context: AppContext,
  reply: FastifyReply,
  { opened, cookie, closed }: OpenedSession,
): FastifyReply {
  for (const { sessionId } of closed) clearSessionCookie(context, reply, sessionId)
  const { name, attributes } = planSessionCookie(context, opened.sessionId)
  return reply.setCookie(name, cookie, attributes).redirect(getSessionPath(opened))
}

function sendRefusal(context: AppContext, reply: FastifyReply, refusal: LaunchRefusal): FastifyReply {
  const { status, ...words } = chooseRefusalTexts(refusal, context.settings)
  const check = describeRefusal(refusal, context.settings.app.issuers)
  reply.log.warn({ refusal: refusal.kind, code: words.code, check }, 'Launch refused')
  const page = renderErrorPage({
    ...words,
    reference: reply.request.id,
    now: context.clock(),
    actions: [linkPortal(context.settings, 'Go to patients')],
    bar: { kind: 'app' },
    site: 'Demo app',
    sampleData: isSampleData(context.settings),
  })
  return reply.sendPage(page, { status })
}
