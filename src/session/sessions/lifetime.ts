import type { TokenGrant } from '../oauth/token-grant.ts'

const MAX_LEEWAY_MS = 10_000

/** When tokens are renewed, and until when they can be used or renewed. */
export interface TokenLifetime {
  readonly renewAt: number
  readonly renewableUntil: number | null
}

/**
 * Renewal starts a little before the end, so that a token does not expire on its way: a tenth of its life, at most
 * 10 s. A token without a stated life is used until the FHIR server refuses it.
 */
export function computeLifetime(grant: TokenGrant, now: number): TokenLifetime {
  const life = grant.expiresInSeconds === undefined ? undefined : grant.expiresInSeconds * 1000
  const renewAt = life === undefined ? LATEST : now + life - Math.min(life / 10, MAX_LEEWAY_MS)
  if (grant.tokens.refreshToken === undefined)
    return { renewAt: LATEST, renewableUntil: life === undefined ? null : instantOf(now + life) }
  const renewableFor = grant.refreshExpiresInSeconds
  return {
    renewAt: instantOf(renewAt),
    renewableUntil:
      renewableFor === undefined ? null : instantOf(now + Math.max(renewableFor * 1000, life ?? 0)),
  }
}

const LATEST = Number.MAX_SAFE_INTEGER

/** An auth server may state any number as a life; a database column holds whole numbers up to a limit. */
function instantOf(milliseconds: number): number {
  return Math.min(Math.floor(milliseconds), LATEST)
}
