import {
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  randomNonce,
  randomPKCECodeVerifier,
  type ServerMetadata,
} from 'openid-client'
import type { AppContext } from '../context.ts'
import { oauthClient } from '../oauth/client.ts'
import { acceptedBase } from './accepted-base.ts'
import { keepLaunch, type LaunchTicket } from './pending-launch.ts'
import type { LaunchRefusal } from './refusal.ts'

export type BegunLaunch =
  | { readonly kind: 'begun'; readonly url: string; readonly ticket: LaunchTicket }
  /** Opened without a launch: by a bookmark, or typed. */
  | { readonly kind: 'not-launched' }
  | LaunchRefusal

/** `GET /launch?iss=…&launch=…`: from here the browser goes to the auth server of `iss` (SMART EHR launch). */
export async function beginLaunch(
  context: AppContext,
  query: Readonly<Record<string, unknown>>,
): Promise<BegunLaunch> {
  const { iss, launch } = query
  if (iss === undefined && launch === undefined) return { kind: 'not-launched' }
  if (typeof iss !== 'string' || iss === '') return { kind: 'bad-parameter', name: 'iss' }
  if (typeof launch !== 'string' || launch === '') return { kind: 'bad-parameter', name: 'launch' }
  const fhirBaseUrl = acceptedBase(context.settings.app.issuers, iss)
  if (fhirBaseUrl === undefined) return { kind: 'unknown-issuer', iss }
  const found = await context.discovery.find(fhirBaseUrl)
  if (!found.ok) return { kind: 'no-discovery', failure: found.failure }
  return goToAuthServer(context, found.value, { iss, launch, fhirBaseUrl })
}

async function goToAuthServer(
  context: AppContext,
  metadata: ServerMetadata,
  { iss, launch, fhirBaseUrl }: Readonly<Record<'iss' | 'launch' | 'fhirBaseUrl', string>>,
): Promise<BegunLaunch> {
  const codeVerifier = randomPKCECodeVerifier()
  const nonce = randomNonce()
  const { issuer } = metadata
  const ticket = await keepLaunch(context, { issuer, fhirBaseUrl, nonce, codeVerifier })
  const url = buildAuthorizationUrl(await oauthClient(context, fhirBaseUrl, metadata), {
    redirect_uri: callbackUrl(context),
    scope: context.settings.app.scope,
    state: ticket.state,
    nonce,
    // As it was received: the auth server compares it with what it sent.
    aud: iss,
    launch,
    code_challenge: await calculatePKCECodeChallenge(codeVerifier),
    code_challenge_method: 'S256',
  })
  return { kind: 'begun', url: url.href, ticket }
}

export function callbackUrl({ settings }: AppContext): string {
  return `${settings.appUrl}/callback`
}
