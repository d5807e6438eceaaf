import type { Sealer } from '../../store/index.ts'
import type { TokenGrant } from '../oauth/token-grant.ts'

export interface Tokens {
  readonly accessToken: string
  readonly refreshToken?: string
}

const sealedFor = (idHash: string) =>
  ({ table: 'app_session', column: 'tokens_sealed', row: idHash }) as const

export function sealTokens(sealer: Sealer, idHash: string, tokens: Tokens): string {
  return sealer.seal(JSON.stringify(tokens), sealedFor(idHash))
}

/**
 * Undefined if they were sealed with another `SMART_SECRET` or for another session, or were changed: the session is
 * over.
 */
export function openTokens(
  sealer: Sealer,
  { idHash, tokensSealed }: { readonly idHash: string; readonly tokensSealed: string },
): Tokens | undefined {
  const text = sealer.tryOpen(tokensSealed, sealedFor(idHash))
  return text === undefined ? undefined : (JSON.parse(text) as Tokens)
}

const MAX_LEEWAY_MS = 10_000

interface TokenLifetime {
  readonly renewAt: number
  readonly renewableUntil: number | null
}

/**
 * Renewal starts a tenth of the lifetime, at most 10 s, before the end, so that a token does not expire in transit.
 * A token without a stated lifetime is used until the FHIR server rejects it.
 */
export function computeLifetime(grant: TokenGrant, now: number): TokenLifetime {
  const life = grant.expiresInSeconds === undefined ? undefined : grant.expiresInSeconds * 1000
  const renewAt = life === undefined ? LATEST : now + life - Math.min(life / 10, MAX_LEEWAY_MS)
  if (grant.tokens.refreshToken === undefined)
    return { renewAt: LATEST, renewableUntil: life === undefined ? null : clampInstant(now + life) }
  const renewableFor = grant.refreshExpiresInSeconds
  return {
    renewAt: clampInstant(renewAt),
    renewableUntil:
      renewableFor === undefined ? null : clampInstant(now + Math.max(renewableFor * 1000, life ?? 0)),
  }
}

const LATEST = Number.MAX_SAFE_INTEGER

/** An auth server may state any lifetime; a database column holds integers up to a limit. */
function clampInstant(milliseconds: number): number {
  return Math.min(Math.floor(milliseconds), LATEST)
}
