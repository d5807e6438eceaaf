import {
  AuthorizationResponseError,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  calculatePKCECodeChallenge,
  fetchUserInfo,
  ResponseBodyError,
  randomNonce,
  randomPKCECodeVerifier,
} from 'openid-client'
import type { OidcProvider } from '../../../../config/index.ts'
import { findCode, isFailure } from '../../../../core/index.ts'
import type { Claims } from '../../../../jwt/index.ts'
import { CLOCK_TOLERANCE_SECONDS, RECENT_SECONDS } from '../../../base/limits.ts'
import { paths } from '../../../base/paths.ts'
import type { UsersContext } from '../../context.ts'
import { findClaim, listUsedClaims } from '../../providers/identity.ts'
import type { ProviderLogin } from '../../providers/provider-login.ts'
import { SignInRefusal } from '../../providers/refusal.ts'
import type { PendingSignIn } from './pending-sign-in.ts'

/** A sign-in that is ready to be stored. `buildUrl` makes the URL of the provider for its state. */
export interface PreparedSignIn {
  readonly pending: PendingSignIn
  buildUrl(state: string): Promise<string>
}

/** The requirements of an authorization request, whose id it has, or of this server. */
export interface WantedSignIn {
  readonly id?: string
  readonly request: {
    readonly prompts: readonly string[]
    /** Maximum age of the login, in seconds. */
    readonly maxAge?: number
    readonly acrValues?: readonly string[]
    readonly loginHint?: string
    readonly arrivedAt: number
  }
}

/** Requires that the user authenticates again. With `max_age`, the id_token must have `auth_time` (OIDC Core, 3.1.2.1). */
export function makeRecentRequest(now: number): WantedSignIn['request'] {
  return { prompts: ['login'], maxAge: RECENT_SECONDS, acrValues: [], arrivedAt: now }
}

/** Prepares the authorization request: code flow with PKCE, state and nonce. */
export async function prepareSignIn(
  context: UsersContext,
  provider: OidcProvider,
  wanted: WantedSignIn | undefined,
): Promise<PreparedSignIn | SignInRefusal> {
  const configuration = await context.providers.getClient(provider).reach()
  if (!configuration) return new SignInRefusal('unreachable')
  const wishes = readWishes(provider, wanted?.request)
  const pending = {
    issuer: provider.issuer,
    mustNameIssuer: context.providers.canBeMixedUp,
    nonce: randomNonce(),
    codeVerifier: randomPKCECodeVerifier(),
    redirectUri: chooseRedirectUri(context, provider, configuration),
    interaction: wanted?.id,
    maxAge: wishes.maxAge,
    notBefore: wishes.again ? wanted?.request.arrivedAt : undefined,
  }
  return { pending, buildUrl: state => buildUrl(configuration, provider, { ...pending, state }, wishes) }
}

/** An app may ask for more than the provider's settings, and never for less. */
function readWishes(provider: OidcProvider, request: WantedSignIn['request'] | undefined) {
  const ages = [provider.maxAge, request?.maxAge].filter(age => age !== undefined)
  const acrValues = provider.acrValues.length > 0 ? provider.acrValues : (request?.acrValues ?? [])
  const prompts = (request?.prompts ?? []).filter(prompt => prompt === 'login' || prompt === 'select_account')
  return {
    prompt: prompts.join(' '),
    again: prompts.includes('login'),
    maxAge: ages.length === 0 ? undefined : Math.min(...ages),
    acrValues: acrValues.join(' '),
    loginHint: request?.loginHint,
  }
}

/**
 * A provider that adds `iss` to its responses (RFC 9207), or is the only one, uses the common callback. Any other one
 * gets a callback of its own, so that its responses cannot be taken for those of another provider.
 */
function chooseRedirectUri(
  { settings, providers }: UsersContext,
  { id }: OidcProvider,
  configuration: Configuration,
): string {
  const hasIss = configuration.serverMetadata().authorization_response_iss_parameter_supported === true
  const callback = makeCommonCallback(settings)
  return hasIss || !providers.canBeMixedUp ? callback : `${callback}/${id}`
}

function makeCommonCallback({ issuerUrl }: UsersContext['settings']): string {
  return `${issuerUrl}${paths.loginCallback}`
}

async function buildUrl(
  configuration: Configuration,
  { scopes }: OidcProvider,
  { redirectUri, nonce, codeVerifier, state }: PendingSignIn & { readonly state: string },
  { prompt, maxAge, acrValues, loginHint }: ReturnType<typeof readWishes>,
): Promise<string> {
  return buildAuthorizationUrl(configuration, {
    redirect_uri: redirectUri,
    scope: scopes,
    state,
    nonce,
    code_challenge: await calculatePKCECodeChallenge(codeVerifier),
    code_challenge_method: 'S256',
    ...(prompt === '' ? {} : { prompt }),
    ...(maxAge === undefined ? {} : { max_age: String(maxAge) }),
    ...(acrValues === '' ? {} : { acr_values: acrValues }),
    ...(loginHint === undefined ? {} : { login_hint: loginHint }),
  }).href
}

/** A user whom the provider authenticated. */
export interface ProviderUser {
  readonly login: Omit<ProviderLogin, 'evidence'>
  readonly claims: Claims
}

/** Exchanges the code of a callback, and verifies the id_token. `url` is the URL of the callback. */
export async function finishSignIn(
  context: UsersContext,
  provider: OidcProvider,
  pending: PendingSignIn,
  { url, state }: { readonly url: URL; readonly state: string },
): Promise<ProviderUser | SignInRefusal> {
  const fault = findCallbackFault(context, pending, url)
  if (fault !== undefined) return new SignInRefusal('bad-callback', fault)
  const client = context.providers.getClient(provider)
  const configuration = await client.discover()
  if (!configuration) return new SignInRefusal('unreachable')
  try {
    const tokens = await authorizationCodeGrant(configuration, url, {
      expectedState: state,
      expectedNonce: pending.nonce,
      pkceCodeVerifier: pending.codeVerifier,
      idTokenExpected: true,
    })
    const { id_token: idToken = '', access_token: accessToken } = tokens
    const claims = await client.verify(idToken)
    if (isFailure(claims))
      return claims.reason === 'unreachable'
        ? new SignInRefusal('unreachable', 'The keys could not be fetched')
        : new SignInRefusal('bad-response', 'The signature of the id_token is invalid')
    const refused = checkAuthentication(provider, pending, claims, context.clock())
    if (refused) return refused
    const more = await fetchMissingClaims(provider, configuration, claims, accessToken)
    return { login: readLogin(provider, claims, idToken, context.clock()), claims: { ...more, ...claims } }
  } catch (error) {
    return toRefusal(error)
  }
}

/** Parameters of responses of other flows. */
const OTHER_FLOWS = ['id_token', 'token', 'access_token', 'response'] as const

/**
 * Why a callback URL, which any page can make, is not the response to this sign-in. The current metadata of the provider do
 * not decide whether `iss` may be absent: a hostile provider could change them during the sign-in.
 */
function findCallbackFault(
  { settings, providers }: UsersContext,
  { redirectUri, issuer, mustNameIssuer }: PendingSignIn,
  url: URL,
): string | undefined {
  const names = [...url.searchParams.keys()]
  const isCommon = redirectUri === makeCommonCallback(settings)
  const iss = url.searchParams.get('iss')
  if (`${url.origin}${url.pathname}` !== redirectUri)
    return 'The response came to the callback of another provider'
  if (new Set(names).size < names.length) return 'A parameter is repeated'
  if (OTHER_FLOWS.some(name => names.includes(name))) return 'The response is not one of the code flow'
  if (!names.includes('code') && !names.includes('error')) return 'The response has neither code nor error'
  if (iss === null && isCommon && (mustNameIssuer || providers.canBeMixedUp)) return 'The response has no iss'
  return iss === null || iss === issuer ? undefined : 'The iss of the response is that of another issuer'
}

/** `max_age` and `acr_values` of the settings and `prompt=login` are requirements: the provider must show that it met them. */
function checkAuthentication(
  { acrValues }: OidcProvider,
  { maxAge, notBefore }: PendingSignIn,
  { acr, auth_time: authTime }: Claims,
  now: number,
): SignInRefusal | undefined {
  const refuse = (detail: string) => new SignInRefusal('weak-authentication', detail)
  if (acrValues.length > 0 && !acrValues.some(value => value === acr))
    return refuse('The acr of the id_token is not one of acr-values')
  if (maxAge !== undefined && typeof authTime !== 'number') return refuse('The id_token has no auth_time')
  const earliest = Math.max(maxAge === undefined ? 0 : now - maxAge * 1000, notBefore ?? 0)
  return typeof authTime === 'number' && (authTime + CLOCK_TOLERANCE_SECONDS) * 1000 < earliest
    ? refuse('The auth_time of the id_token is too old')
    : undefined
}

/** OIDC Core, 5.4: claims of scopes come from the user info. So do groups that are too many for a token. */
async function fetchMissingClaims(
  provider: OidcProvider,
  configuration: Configuration,
  claims: Claims,
  accessToken: string,
): Promise<Claims> {
  const isMissing = listUsedClaims(provider).some(name => findClaim(claims, name) === undefined)
  if (!isMissing || configuration.serverMetadata().userinfo_endpoint === undefined) return {}
  return { ...(await fetchUserInfo(configuration, accessToken, String(claims.sub))) }
}

const MAX_CHARACTERS = 255
const MAX_METHODS = 20

function readLogin(
  provider: OidcProvider,
  { sub, sid, acr, amr, auth_time: authTime }: Claims,
  idToken: string,
  now: number,
): Omit<ProviderLogin, 'evidence'> {
  const methods = Array.isArray(amr) ? amr.flatMap(one => readShortText(one) ?? []).slice(0, MAX_METHODS) : []
  return {
    issuer: provider.issuer,
    subject: String(sub),
    idToken,
    sid: readShortText(sid),
    acr: readShortText(acr),
    amr: methods.length > 0 ? methods : undefined,
    authTime: typeof authTime === 'number' ? Math.min(authTime * 1000, now) : undefined,
  }
}

function readShortText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= MAX_CHARACTERS ? value : undefined
}

function toRefusal(error: unknown): SignInRefusal {
  if (error instanceof AuthorizationResponseError)
    return error.error === 'server_error' || error.error === 'temporarily_unavailable'
      ? new SignInRefusal('unreachable', `The provider answered ${error.error}`)
      : new SignInRefusal('denied', `The provider answered ${readErrorCode(error.error)}`)
  if (error instanceof ResponseBodyError && error.status < 500)
    return new SignInRefusal('bad-response', `The token endpoint answered ${readErrorCode(error.error)}`)
  if (isOutage(error)) return new SignInRefusal('unreachable')
  return new SignInRefusal('bad-response', findCheck(error))
}

/** RFC 6749, 4.1.2.1: the code has few characters. Anything else is not repeated. */
function readErrorCode(code: string): string {
  return /^[a-z_]{1,60}$/.test(code) ? code : 'an unknown error'
}

function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error.name === 'TimeoutError' || (error instanceof TypeError && error.message === 'fetch failed'))
    return true
  const { cause } = error
  return cause instanceof Response ? cause.status >= 500 : isOutage(cause)
}

/** The innermost error of the library names the check that failed. Errors inside it may quote the response. */
function findCheck(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const isCheck = findCode(error)?.startsWith('OAUTH_')
  const inner = error.cause instanceof Error ? findCheck(error.cause) : undefined
  return inner !== undefined && inner !== 'unknown' ? inner : isCheck ? error.message : 'unknown'
}
