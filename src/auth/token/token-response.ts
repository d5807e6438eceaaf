import type { AuthContext } from '../context.ts'
import { contextMembers } from '../grant/context-members.ts'
import { type Grant, hasScope } from '../grant/grant.ts'
import type { SigningKey } from '../keys/signing-key.ts'
import type { FurtherContext } from '../launch/further-context.ts'
import { accessToken } from './access-token.ts'
import { idToken } from './id-token.ts'

/** What the token endpoint answers with (RFC 6749, 5.1; SMART 2.2, launch context). */
export interface TokenResponse extends FurtherContext {
  readonly access_token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly scope: string
  readonly refresh_token?: string
  /** Until when the tokens can be renewed, where that is known: an app's session ends then (contract 4). */
  readonly refresh_token_expires_in?: number
  readonly id_token?: string
  readonly patient?: string
  readonly encounter?: string
  readonly need_patient_banner?: boolean
  readonly smart_style_url?: string
  /** Not of the standard: what the audit trail calls the launch, for the app's own. */
  readonly launch_id?: string
}

/** What was bought: a grant, perhaps with fewer scopes for this one access token. */
export interface Purchase {
  readonly grant: Grant
  readonly scope: string
  readonly refreshToken: string | undefined
  readonly nonce: string | undefined
}

/** The token customizer (service.md 1.5): the response carries patient and encounter beside the token. */
export function tokenResponse(
  context: Pick<AuthContext, 'settings' | 'clock'>,
  key: SigningKey,
  purchase: Purchase,
): TokenResponse {
  const { grant, scope, refreshToken, nonce } = purchase
  const now = context.clock()
  const ends = { now, lifetimeSeconds: lifetimeOf(grant, now, context.settings.accessTokenTtlSeconds) }
  return {
    access_token: accessToken(context.settings, key, { grant, scope, ...ends }),
    token_type: 'Bearer',
    expires_in: ends.lifetimeSeconds,
    scope,
    ...(refreshToken === undefined ? {} : { refresh_token: refreshToken, ...renewableFor(grant, ends.now) }),
    ...(hasScope(scope, 'openid')
      ? { id_token: idToken(context.settings, key, { grant, scope, nonce, ...ends }) }
      : {}),
    ...contextMembers(context.settings, grant),
    launch_id: grant.id,
  }
}

// What ends with the login ends with it, and not with a token that was bought a moment before.
function lifetimeOf({ endsAt }: Grant, now: number, longestSeconds: number): number {
  return endsAt === undefined ? longestSeconds : Math.min(longestSeconds, Math.ceil((endsAt - now) / 1000))
}

/** `online_access` lasts as long as the login; what is offline has no end while it is used. */
function renewableFor({ endsAt }: Grant, now: number): { refresh_token_expires_in?: number } {
  return endsAt === undefined
    ? {}
    : { refresh_token_expires_in: Math.max(0, Math.floor((endsAt - now) / 1000)) }
}
