import type { AuthContext } from '../context.ts'
import { buildContextMembers } from '../grant/context-members.ts'
import { type Grant, hasScope } from '../grant/grant.ts'
import type { SigningKey } from '../keys/signing-key.ts'
import type { ExtraContext } from '../launch/extra-context.ts'
import { signAccessToken } from './access-token.ts'
import { signIdToken } from './id-token.ts'

/** RFC 6749, 5.1; SMART 2.2, launch context. */
export interface TokenResponse extends ExtraContext {
  readonly access_token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly scope: string
  readonly refresh_token?: string
  /** Seconds until the tokens can no longer be refreshed, so that an app can end its session. */
  readonly refresh_token_expires_in?: number
  readonly id_token?: string
  readonly patient?: string
  readonly encounter?: string
  readonly need_patient_banner?: boolean
  readonly smart_style_url?: string
  /** An extension: the id of the launch in the audit trail. */
  readonly launch_id?: string
}

/** A grant that tokens are issued for. `scope` may be narrower than the grant's. */
export interface TokenGrant {
  readonly grant: Grant
  readonly scope: string
  readonly refreshToken: string | undefined
  readonly nonce: string | undefined
}

/** Builds the token response with the launch context. */
export function buildTokenResponse(
  context: Pick<AuthContext, 'settings' | 'clock'>,
  key: SigningKey,
  tokenGrant: TokenGrant,
): TokenResponse {
  const { grant, scope, refreshToken, nonce } = tokenGrant
  const now = context.clock()
  const ends = { now, lifetimeSeconds: computeLifetime(grant, now, context.settings.accessTokenTtlSeconds) }
  return {
    access_token: signAccessToken(context.settings, key, { grant, scope, ...ends }),
    token_type: 'Bearer',
    expires_in: ends.lifetimeSeconds,
    scope,
    ...(refreshToken === undefined
      ? {}
      : { refresh_token: refreshToken, ...computeRenewal(grant, ends.now) }),
    ...(hasScope(scope, 'openid')
      ? { id_token: signIdToken(context.settings, key, { grant, scope, nonce, ...ends }) }
      : {}),
    ...buildContextMembers(context.settings, grant),
    launch_id: grant.id,
  }
}

// A token must not outlive a grant that ends with the login.
function computeLifetime({ endsAt }: Grant, now: number, longestSeconds: number): number {
  return endsAt === undefined ? longestSeconds : Math.min(longestSeconds, Math.ceil((endsAt - now) / 1000))
}

/** `online_access` ends with the login; `offline_access` has no fixed end. */
function computeRenewal({ endsAt }: Grant, now: number): { refresh_token_expires_in?: number } {
  return endsAt === undefined
    ? {}
    : { refresh_token_expires_in: Math.max(0, Math.floor((endsAt - now) / 1000)) }
}
