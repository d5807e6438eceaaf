import {
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  randomNonce,
  randomPKCECodeVerifier,
  type ServerMetadata,
} from 'openid-client'
import type { AppContext } from '../context.ts'
import { createOAuthClient } from '../oauth/client.ts'
import { keepLaunch, type LaunchTicket } from './pending-launch.ts'
import type { LaunchRefusal } from './refusal.ts'

export type BegunLaunch =
  | { readonly kind: 'begun'; readonly url: string; readonly ticket: LaunchTicket }
  | LaunchRefusal

/**
 * `GET /launch?iss=…&launch=…` (SMART EHR launch). Without both parameters it is a standalone launch: the auth
 * server of the configured issuer asks the user for the patient.
 */
export async function beginLaunch(
  context: AppContext,
  query: Readonly<Record<string, unknown>>,
  address: string,
  frame?: Frame,
): Promise<BegunLaunch> {
  const { iss, launch } = query
  const [ownIssuer] = context.settings.app.issuers
  if (iss === undefined && launch === undefined && ownIssuer !== undefined)
    return begin(context, { iss: ownIssuer, address, frame })
  if (typeof iss !== 'string' || iss === '') return { kind: 'bad-parameter', name: 'iss' }
  if (typeof launch !== 'string' || launch === '') return { kind: 'bad-parameter', name: 'launch' }
  return begin(context, { iss, launch, address, frame })
}

/** In a frame, the auth server must show no page (`silent`), or shows its pages in a window (`window`). */
type Frame = 'silent' | 'window'

interface Origin {
  readonly iss: string
  readonly address: string
  readonly frame: Frame | undefined
  readonly launch?: string
}

async function begin(context: AppContext, { iss, launch, address, frame }: Origin): Promise<BegunLaunch> {
  const fhirBaseUrl = findAcceptedBase(context.settings.app.issuers, iss)
  if (fhirBaseUrl === undefined) return { kind: 'unknown-issuer', iss }
  const found = await context.discovery.find(fhirBaseUrl)
  if (!found.ok) return { kind: 'no-discovery', failure: found.failure }
  return redirectToAuthServer(context, found.value, {
    ...{ iss, address, frame, fhirBaseUrl },
    ...(launch === undefined ? {} : { launch }),
  })
}

async function redirectToAuthServer(
  context: AppContext,
  metadata: ServerMetadata,
  { iss, launch, address, frame, fhirBaseUrl }: Origin & { readonly fhirBaseUrl: string },
): Promise<BegunLaunch> {
  const codeVerifier = randomPKCECodeVerifier()
  const nonce = randomNonce()
  const { issuer } = metadata
  const framedLaunch = frame && (launch ?? '')
  const pending = { issuer, fhirBaseUrl, nonce, codeVerifier, framedLaunch }
  const ticket = await keepLaunch(context, pending, address)
  if (!ticket) return { kind: 'too-many-launches' }
  const url = buildAuthorizationUrl(await createOAuthClient(context, fhirBaseUrl, metadata), {
    redirect_uri: getCallbackUrl(context),
    scope:
      launch === undefined ? makeStandaloneScope(context.settings.app.scope) : context.settings.app.scope,
    state: ticket.state,
    nonce,
    // Sent back unchanged: the auth server compares it with the `iss` that it sent.
    aud: iss,
    ...(launch === undefined ? {} : { launch }),
    ...(frame === 'silent' && { prompt: 'none' }),
    code_challenge: await calculatePKCECodeChallenge(codeVerifier),
    code_challenge_method: 'S256',
  })
  return { kind: 'begun', url: url.href, ticket }
}

function makeStandaloneScope(scope: string): string {
  const rest = scope.split(' ').filter(one => one !== '' && one !== 'launch' && one !== 'launch/patient')
  return ['launch/patient', ...rest].join(' ')
}

export function getCallbackUrl({ settings }: AppContext): string {
  return `${settings.appUrl}/callback`
}

/**
 * The configured FHIR base that an `iss` names, with or without a trailing slash. Undefined for any other `iss`, which gets
 * no request (APP-2).
 */
function findAcceptedBase(issuers: readonly string[], iss: string): string | undefined {
  const base = withoutSlash(iss)
  return issuers.map(withoutSlash).find(issuer => issuer === base)
}

function withoutSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url
}
