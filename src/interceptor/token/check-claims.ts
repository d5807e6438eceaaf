import type { Algorithm, Jwt } from '../../jwt/index.ts'
import type { Refusal } from '../refusal.ts'

/** Whose tokens are honoured, and where. */
export interface Expected {
  readonly issuer: string
  /** The FHIR base, or whatever another issuer calls it. */
  readonly audiences: readonly string[]
  /** The `typ` of an access token; `at+jwt` unless told. */
  readonly types?: readonly string[] | undefined
  /** The algorithms that may sign its tokens. */
  readonly algorithms: readonly Algorithm[]
}

export type Fault = Extract<Refusal, { kind: 'bad-token' | 'expired-token' }>

// For clocks of two hosts that differ. It delays a start, and never an end.
const LEEWAY_SECONDS = 5

/** Contract 5.7: a token is more than a signature. Header and claims are checked first, since that costs nothing. */
export function checkClaims(jwt: Jwt, expected: Expected, now: number): Fault | undefined {
  return checkHeader(jwt.header, expected) ?? checkIssued(jwt.claims, expected) ?? checkTime(jwt.claims, now)
}

// RFC 9068, 2.1: otherwise an id_token, signed by the same key, would do.
const ACCESS_TOKEN: readonly string[] = ['at+jwt']

function checkHeader({ alg, typ, kid, crit }: Jwt['header'], expected: Expected): Fault | undefined {
  const { algorithms, types = ACCESS_TOKEN } = expected
  if (!algorithms.some(it => it === alg)) return bad(`alg is not ${algorithms.join(' or ')}`)
  const named = typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : ''
  if (!types.some(it => it.toLowerCase() === named)) return bad(`typ is not ${types.join(' or ')}`)
  if (typeof kid !== 'string' || kid === '') return bad('kid is missing')
  return crit === undefined ? undefined : bad('crit is not understood')
}

function checkIssued({ iss, aud }: Jwt['claims'], expected: Expected): Fault | undefined {
  if (iss !== expected.issuer) return bad('iss is another issuer')
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  return audiences.some(it => typeof it === 'string' && expected.audiences.includes(withoutSlash(it)))
    ? undefined
    : bad('aud is another server')
}

function checkTime({ exp, nbf }: Jwt['claims'], now: number): Fault | undefined {
  if (!isSeconds(exp)) return bad('exp is missing')
  if (nbf !== undefined && (!isSeconds(nbf) || nbf * 1000 > now + LEEWAY_SECONDS * 1000))
    return bad('nbf is to come')
  return exp * 1000 <= now ? { kind: 'expired-token' } : undefined
}

/** The base answers with and without a trailing slash (contract 2). */
export function withoutSlash(address: string): string {
  return address.endsWith('/') ? address.slice(0, -1) : address
}

function isSeconds(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** For a token that exceeds a limit; the response names the limit. */
export function tooLarge(why: string): Fault {
  return { kind: 'bad-token', why, told: true }
}

export function bad(why: string): Fault {
  return { kind: 'bad-token', why }
}
