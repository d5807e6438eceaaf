import { tokenRevocation } from 'openid-client'
import type { AppContext } from '../context.ts'
import { openTokens, type Tokens } from '../sessions/tokens.ts'
import { oauthClient } from './client.ts'

interface Revocable {
  readonly fhirBaseUrl: string
  readonly issuer: string
  readonly tokensSealed: string
}

/** Tells the auth server that the tokens are no longer needed (RFC 7009), where it takes such notice. Never rejects. */
export async function revokeTokens(context: AppContext, session: Revocable): Promise<void> {
  try {
    const found = await context.discovery.find(session.fhirBaseUrl)
    if (!found.ok || !found.value.revocation_endpoint || found.value.issuer !== session.issuer) return
    const tokens = openTokens(context.sealer, session.tokensSealed)
    if (!tokens) return
    const client = await oauthClient(context, session.fhirBaseUrl, found.value)
    for (const [hint, token] of revocationOrder(tokens))
      await tokenRevocation(client, token, { token_type_hint: hint })
  } catch (error) {
    context.log.warn({ err: error }, 'Cannot revoke session tokens')
  }
}

// The refresh token first: it is the one that outlives the session.
function revocationOrder({
  accessToken,
  refreshToken,
}: Tokens): readonly (readonly [hint: string, token: string])[] {
  return [
    ...(refreshToken === undefined ? [] : [['refresh_token', refreshToken] as const]),
    ['access_token', accessToken],
  ]
}
