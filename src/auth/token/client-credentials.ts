import { randomBytes } from 'node:crypto'
import { parseScopes, type ResourceScope } from '../../smart/index.ts'
import type { Client } from '../client/client.ts'
import type { AuthContext, AuthSettings } from '../context.ts'
import { grantEach } from '../grant/grant-scope.ts'
import { allowedScopes, canonical, withLetters } from '../grant/narrow.ts'
import { checkAskedScope, checkGrantedScope } from '../grant/scope-refusals.ts'
import { signOwnJwt } from '../keys/own-jwt.ts'
import type { SigningKey } from '../keys/signing-key.ts'
import { Refusal } from '../refusal.ts'
import { clientTokens } from '../revoke/revocation.ts'
import type { TokenRequest } from './token-request.ts'
import type { TokenResponse } from './token-response.ts'

// SMART 2.2, backend services: five minutes at most.
const LONGEST_SECONDS = 300

/** Scopes of our own that a back end may have, beside `system/`: the launch API of an EHR. */
const EXTENSION_SCOPES: ReadonlySet<string> = new Set(['__launch-contexts.c'])

/** `grant_type=client_credentials` (SMART 2.2, backend services): for clients that sign, and no refresh token. */
export async function clientCredentials(
  context: Pick<AuthContext, 'settings' | 'clock'>,
  { key, client, form }: Pick<TokenRequest, 'key' | 'client' | 'form'>,
): Promise<TokenResponse | Refusal> {
  if (client.authMethod !== 'private_key_jwt')
    return new Refusal(
      'unauthorized_client',
      'Only a client that signs (private_key_jwt) may use client_credentials.',
    )
  const asked = form.get('scope')
  if (asked === undefined) return new Refusal('invalid_scope', 'The parameter scope is missing.')
  const tooLarge = checkAskedScope(asked)
  if (tooLarge) return tooLarge
  const scope = systemScope(asked, client.scope, context.settings.fhir)
  const notGranted = checkGrantedScope(scope)
  if (notGranted) return notGranted
  const lifetime = Math.min(context.settings.accessTokenTtlSeconds, LONGEST_SECONDS)
  return {
    access_token: backEndToken(context, key, { client, scope, lifetimeSeconds: lifetime }),
    token_type: 'Bearer',
    expires_in: lifetime,
    scope,
  }
}

/** What is granted of what was asked: `system/` scopes, as far as the client may have them and the server honours them. */
function systemScope(asked: string, allowed: string, fhir: AuthSettings['fhir']): string {
  const limits = allowedScopes(parseScopes(allowed))
  return grantEach(asked, scope => {
    if (scope.kind === 'plain')
      return EXTENSION_SCOPES.has(scope.text) && limits.covers(scope) ? [scope.text] : []
    if (scope.context !== 'system' || !fhir.scopeContexts.includes('system')) return []
    const known = canonical(scope)
    return known ? limits.narrow(known).flatMap(part => searchable(part, fhir.searchPermission)) : []
  })
}

// Contract 5.5: where `r` searches too, a lone `s` would buy nothing and is not granted.
function searchable(scope: ResourceScope, searchPermission: 'r' | 's'): readonly string[] {
  const kept =
    searchPermission === 's' || scope.permissions.has('r')
      ? scope
      : withLetters(scope, permission => permission !== 's')
  return kept ? [kept.text] : []
}

function backEndToken(
  { settings, clock }: Pick<AuthContext, 'settings' | 'clock'>,
  key: SigningKey,
  {
    client,
    scope,
    lifetimeSeconds,
  }: { readonly client: Client; readonly scope: string; readonly lifetimeSeconds: number },
): string {
  const issuedAt = Math.floor(clock() / 1000)
  return signOwnJwt(key, 'at+jwt', {
    iss: settings.issuerUrl,
    sub: client.id,
    aud: settings.fhirBaseUrl,
    client_id: client.id,
    scope,
    jti: `${clientTokens(client)}.${randomBytes(12).toString('base64url')}`,
    iat: issuedAt,
    exp: issuedAt + lifetimeSeconds,
  })
}
