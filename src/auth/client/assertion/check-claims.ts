import type { Claims as JwtClaims } from '../../../jwt/index.ts'

// SMART 2.2, asymmetric authentication: at most five minutes. Clocks may differ by some seconds.
const LONGEST_SECONDS = 300
const LEEWAY_SECONDS = 10

export interface AssertionClaims {
  readonly jti: string
  /** In seconds. */
  readonly exp: number
}

/** Checks audience, times and `jti` (RFC 7523, 3). A string says what is wrong. */
export function checkClaims(
  claims: JwtClaims,
  audiences: readonly string[],
  now: number,
): AssertionClaims | string {
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

// Another audience could replay an assertion that names several.
function isForUs(aud: unknown, audiences: readonly string[]): boolean {
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  return named.length > 0 && named.every(one => audiences.some(audience => audience === one))
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}
