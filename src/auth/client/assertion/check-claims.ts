import type { Claims as JwtClaims } from '../../../jwt/index.ts'

// SMART 2.2, asymmetric authentication: at most five minutes ahead. Clocks of two hosts differ by some seconds.
const LONGEST_SECONDS = 300
const LEEWAY_SECONDS = 10

/** What an assertion says of itself, once it may be said. */
export interface Claims {
  readonly jti: string
  /** In seconds. */
  readonly exp: number
}

/** Checks what needs no key (RFC 7523, 3): audience, times and id. A text says what is wrong. */
export function checkClaims(claims: JwtClaims, audiences: readonly string[], now: number): Claims | string {
  const { aud, exp, nbf, iat, jti } = claims
  const seconds = now / 1000
  if (!isForUs(aud, audiences)) return 'aud is not this server'
  if (!isTime(exp)) return 'exp is missing'
  if (exp <= seconds) return 'exp is in the past'
  if (exp > seconds + LONGEST_SECONDS + LEEWAY_SECONDS) return 'exp is more than five minutes ahead'
  if ([nbf, iat].some(time => time !== undefined && !(isTime(time) && time <= seconds + LEEWAY_SECONDS)))
    return 'nbf or iat is in the future'
  if (typeof jti !== 'string' || jti === '' || jti.length > 1024)
    return 'jti is missing or longer than 1024 characters'
  return { jti, exp }
}

// An assertion that is meant for others too could have been taken from them.
function isForUs(aud: unknown, audiences: readonly string[]): boolean {
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  return named.length > 0 && named.every(one => audiences.some(audience => audience === one))
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}
