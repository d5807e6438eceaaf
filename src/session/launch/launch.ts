import {
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  randomNonce,
  randomPKCECodeVerifier,
} from 'openid-client'
import { failApp } from '../../app-reasons/index.ts'
import { isFailure } from '../../core/index.ts'
import { PENDING_LAUNCHES_PER_NETWORK, SESSIONS_PER_BROWSER } from '../limits.ts'
import { createOAuthClient } from '../oauth/client.ts'
import type { AppContext } from '../oauth/context.ts'
import { exchangeCode, type ReceivedTokens, revokeSession, revokeTokens } from '../oauth/token-requests.ts'
import {
  auditSession,
  type NewSession,
  type OpenedSession,
  openSession,
  type SessionCookie,
} from '../sessions/session-store.ts'
import { type LaunchParameters, needsPage } from './frame.ts'
import { keepLaunch, type LaunchTicket, type PendingLaunch, takeLaunch } from './pending-launch.ts'
import type { LaunchRefusal } from './refusal.ts'

interface BegunLaunch {
  readonly url: string
  readonly ticket: LaunchTicket
}

/**
 * `GET /launch?iss=…&launch=…` (SMART EHR launch). Without both parameters it is a standalone launch: the auth
 * server of the configured issuer asks the user for the patient.
 */
export async function beginLaunch(
  context: AppContext,
  query: Readonly<Record<string, unknown>>,
  address: string,
  frame?: Frame,
): Promise<BegunLaunch | LaunchRefusal> {
  const { iss, launch } = query
  const [ownIssuer] = context.settings.app.issuers
  if (iss === undefined && launch === undefined && ownIssuer !== undefined)
    return begin(context, { iss: ownIssuer, address, frame })
  if (typeof iss !== 'string' || iss === '') return failApp('link-parameter-missing', { name: 'iss' })
  if (typeof launch !== 'string' || launch === '')
    return failApp('link-parameter-missing', { name: 'launch' })
  return begin(context, { iss, launch, address, frame })
}

/** Anybody can send this URL, so its query is left out. */
function formatUrl(text: string): string | undefined {
  const url = URL.parse(text)
  return url ? `${url.origin}${url.pathname}`.slice(0, MAX_URL_CHARACTERS) : undefined
}

const MAX_URL_CHARACTERS = 200

/** In a frame, the auth server must show no page (`silent`), or shows its pages in a window (`window`). */
type Frame = 'silent' | 'window'

interface Origin {
  readonly iss: string
  readonly address: string
  readonly frame: Frame | undefined
  readonly launch?: string
}

async function begin(
  context: AppContext,
  { iss, launch, address, frame }: Origin,
): Promise<BegunLaunch | LaunchRefusal> {
  const { issuers, scope } = context.settings.app
  const fhirBaseUrl = findAcceptedBase(issuers, iss)
  if (fhirBaseUrl === undefined)
    return failApp('issuer-not-accepted', {
      iss: formatUrl(iss) ?? 'is not a URL',
      expected: issuers.join(', '),
    })
  const metadata = await context.discovery.find(fhirBaseUrl)
  if (isFailure(metadata)) return metadata
  const codeVerifier = randomPKCECodeVerifier()
  const nonce = randomNonce()
  const { issuer } = metadata
  const framedLaunch = frame && (launch ?? '')
  const pending = { issuer, fhirBaseUrl, nonce, codeVerifier, framedLaunch }
  const ticket = await keepLaunch(context, pending, address)
  if (!ticket) return failApp('too-many-launches', { limit: PENDING_LAUNCHES_PER_NETWORK })
  const url = buildAuthorizationUrl(await createOAuthClient(context, fhirBaseUrl, metadata), {
    redirect_uri: getCallbackUrl(context),
    scope: launch === undefined ? makeStandaloneScope(scope) : scope,
    state: ticket.state,
    nonce,
    // Sent back unchanged: the auth server compares it with the `iss` that it sent.
    aud: iss,
    ...(launch === undefined ? {} : { launch }),
    ...(frame === 'silent' && { prompt: 'none' }),
    code_challenge: await calculatePKCECodeChallenge(codeVerifier),
    code_challenge_method: 'S256',
  })
  return { url: url.href, ticket }
}

function makeStandaloneScope(scope: string): string {
  const rest = scope.split(' ').filter(part => part !== '' && part !== 'launch' && part !== 'launch/patient')
  return ['launch/patient', ...rest].join(' ')
}

function getCallbackUrl({ settings }: AppContext): string {
  return `${settings.appUrl}/callback`
}

/**
 * The configured FHIR base that an `iss` names, with or without a trailing slash. Undefined for any other `iss`, which gets
 * no request (APP-2).
 */
function findAcceptedBase(issuers: readonly string[], iss: string): string | undefined {
  const base = removeTrailingSlash(iss)
  return issuers.map(removeTrailingSlash).find(issuer => issuer === base)
}

function removeTrailingSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url
}

interface Callback {
  readonly search: string
  readonly state: string
  readonly launchCookie: string
  readonly held: readonly SessionCookie[]
  readonly requestId: string
  /** Of the browser. */
  readonly address: string
}

type FinishedLaunch =
  | ({ readonly kind: 'opened' } & OpenedSession)
  /** The auth server must show a page, which is never shown in a frame. */
  | { readonly kind: 'needs-window'; readonly parameters: LaunchParameters }

/** The callback of a launch: exchanges the code and opens the session. */
export async function finishLaunch(
  context: AppContext,
  callback: Callback,
): Promise<FinishedLaunch | LaunchRefusal> {
  const launch = await takeLaunch(context, callback.state, callback.launchCookie)
  if (!launch) return failApp(callback.launchCookie === '' ? 'launch-cookie-missing' : 'state-unknown')
  const found = await context.discovery.find(launch.fhirBaseUrl)
  if (isFailure(found)) return found
  // The app sends the code only to the auth server that it started the launch with (RFC 9207, mix-up).
  if (found.issuer !== launch.issuer)
    return failApp('auth-server-changed', { issuer: found.issuer, expected: launch.issuer })
  const exchange = await exchangeCode(context, {
    fhirBaseUrl: launch.fhirBaseUrl,
    metadata: found,
    callbackUrl: new URL(getCallbackUrl(context) + callback.search),
    state: callback.state,
    nonce: launch.nonce,
    codeVerifier: launch.codeVerifier,
    requestId: callback.requestId,
  })
  if (!isFailure(exchange)) return startSession(context, launch, exchange, callback)
  if (
    exchange.reason === 'auth-server-refused' &&
    launch.framedLaunch !== undefined &&
    needsPage(exchange.error)
  )
    return { kind: 'needs-window', parameters: toParameters(launch, launch.framedLaunch) }
  return exchange
}

function toParameters({ fhirBaseUrl }: PendingLaunch, launch: string): LaunchParameters {
  return launch === '' ? {} : { iss: fhirBaseUrl, launch }
}

async function startSession(
  context: AppContext,
  { fhirBaseUrl, issuer }: PendingLaunch,
  { grant, identity }: ReceivedTokens,
  { held, requestId, address }: Callback,
): Promise<FinishedLaunch | LaunchRefusal> {
  const { patientId } = grant
  if (patientId === undefined) {
    await revokeTokens(context, { fhirBaseUrl, issuer }, grant.tokens)
    return failApp('no-patient-in-response')
  }
  const opening = { fhirBaseUrl, issuer, grant, patientId, identity, held }
  const session = await storeSession(context, opening, { requestId, address }).catch(async error => {
    await revokeTokens(context, { fhirBaseUrl, issuer }, grant.tokens)
    throw error
  })
  for (const oldest of session.ended) await revokeSession(context, oldest)
  return { kind: 'opened', ...session }
}

function storeSession(
  context: AppContext,
  opening: NewSession,
  asked: Pick<Callback, 'requestId' | 'address'>,
): Promise<OpenedSession> {
  return context.store.db.transaction().execute(async trx => {
    const session = await openSession(trx, context, opening)
    for (const oldest of session.ended)
      await auditSession(context, oldest, { ...TOO_MANY_SESSIONS, ...asked }, trx)
    await auditSession(context, session.opened, { kind: 'session-open', status: 302, ...asked }, trx)
    return session
  })
}

const TOO_MANY_SESSIONS = {
  kind: 'session-end',
  status: 302,
  reason: `The browser opened more than ${SESSIONS_PER_BROWSER} sessions`,
} as const
