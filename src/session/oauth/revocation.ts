import { tokenRevocation } from 'openid-client'
import type { AppContext } from '../context.ts'
import type { Session } from '../sessions/session.ts'
import { openTokens, type Tokens } from '../sessions/tokens.ts'
import { createOAuthClient } from './client.ts'

type Issued = Pick<Session, 'fhirBaseUrl' | 'issuer'>

/** Tells the auth server that a session is over. Never rejects. */
export async function revokeSession(context: AppContext, session: Session): Promise<void> {
  const tokens = openTokens(context.sealer, session)
  if (tokens) await revokeTokens(context, session, tokens)
}

/** Tells the auth server that the tokens are no longer needed (RFC 7009), where it takes such notice. Never rejects. */
export async function revokeTokens(context: AppContext, issued: Issued, tokens: Tokens): Promise<void> {
  try {
    const found = await context.discovery.find(issued.fhirBaseUrl)
    if (!found.ok || !found.value.revocation_endpoint || found.value.issuer !== issued.issuer) return
    const client = await createOAuthClient(context, issued.fhirBaseUrl, found.value)
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
