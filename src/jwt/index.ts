/**
 * JSON Web Tokens (RFC 7515, 7517, 7519) for every module: sign, decode and verify, and read the public keys of a JWK
 * Set. It checks signatures and times: what `typ`, `iss`, `aud` and `exp` must be is up to the caller, because
 * it differs between access tokens, ID tokens and client assertions.
 */

import { constants, createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { promisify } from 'node:util'
import { isRecord } from '../core/index.ts'
import { runInThreadPool } from '../turns/index.ts'

interface SignatureScheme {
  readonly kty: 'RSA' | 'EC'
  readonly crv?: 'P-256' | 'P-384'
  readonly hash: 'sha256' | 'sha384'
  readonly padding?: number
  readonly saltLength?: number
  readonly dsaEncoding?: 'ieee-p1363'
}

// RFC 7518, 3.4: an ECDSA signature is the two numbers one after the other.
const ECDSA = { kty: 'EC', dsaEncoding: 'ieee-p1363' } as const

// RFC 7518, 3.5: the salt is as long as the hash.
const PSS = { kty: 'RSA', padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 } as const

/** The signature algorithms of RFC 7518, 3.1 that are supported. `none` and HMAC are never among them. */
const SIGNATURE_SCHEMES = {
  RS256: { kty: 'RSA', hash: 'sha256' },
  RS384: { kty: 'RSA', hash: 'sha384' },
  PS256: { ...PSS, hash: 'sha256' },
  ES256: { ...ECDSA, crv: 'P-256', hash: 'sha256' },
  ES384: { ...ECDSA, crv: 'P-384', hash: 'sha384' },
} as const satisfies Readonly<Record<string, SignatureScheme>>

export type Algorithm = keyof typeof SIGNATURE_SCHEMES

/** A public key of a JWK Set. */
export interface VerificationKey {
  readonly kid: string
  /** The algorithms of the signatures that the key may verify. */
  readonly algorithms: readonly Algorithm[]
  readonly publicKey: KeyObject
}

// RFC 7518, 3.3.
const MIN_RSA_KEY_BITS = 2_048

/** A larger key takes too long to verify a signature. */
export const MAX_RSA_KEY_BITS = 8_192

/** The time for a verification grows with the bits of the exponent. OpenSSL has this limit for keys of more than 3,072 bits. */
const MAX_RSA_EXPONENT = 2n ** 64n - 1n

type Jwk = Readonly<Record<string, unknown>>

/**
 * Reads the keys of a JWK Set (RFC 7517, 5) that have a `kid` and may verify signatures with one of the algorithms;
 * ignores all others. Undefined when the document is not a JWK Set.
 */
export function readKeySet(
  document: unknown,
  algorithms: readonly Algorithm[],
): readonly VerificationKey[] | undefined {
  if (typeof document !== 'object' || document === null || !('keys' in document)) return undefined
  const { keys } = document
  return Array.isArray(keys) ? keys.flatMap((jwk: unknown) => readKey(jwk, algorithms) ?? []) : undefined
}

function readKey(jwk: unknown, algorithms: readonly Algorithm[]): VerificationKey | undefined {
  if (!isJwk(jwk) || typeof jwk.kid !== 'string' || jwk.kid === '') return undefined
  const fitting = algorithms.filter(it => mayVerify(jwk, it))
  const publicKey = fitting.length === 0 ? undefined : importKey(jwk)
  return publicKey && { kid: jwk.kid, algorithms: fitting, publicKey }
}

// RFC 7517, 4.2 to 4.4.
function mayVerify({ kty, crv, use, alg, key_ops: operations }: Jwk, algorithm: Algorithm): boolean {
  const scheme = SIGNATURE_SCHEMES[algorithm]
  if (kty !== scheme.kty || ('crv' in scheme && crv !== scheme.crv)) return false
  if ((use ?? 'sig') !== 'sig' || (alg ?? algorithm) !== algorithm) return false
  return operations === undefined || (Array.isArray(operations) && operations.includes('verify'))
}

// A private key is never held here.
const PUBLIC_MEMBERS: ReadonlySet<string> = new Set(['kty', 'n', 'e', 'crv', 'x', 'y'])

function importKey(jwk: Jwk): KeyObject | undefined {
  try {
    const key = Object.fromEntries(Object.entries(jwk).filter(isPublicMember))
    const publicKey = createPublicKey({ key, format: 'jwk' })
    return hasUsableSize(publicKey) ? publicKey : undefined
  } catch {
    return undefined
  }
}

function hasUsableSize({ asymmetricKeyDetails = {} }: KeyObject): boolean {
  const { modulusLength: bits = MIN_RSA_KEY_BITS, publicExponent = 0n } = asymmetricKeyDetails
  return bits >= MIN_RSA_KEY_BITS && bits <= MAX_RSA_KEY_BITS && publicExponent <= MAX_RSA_EXPONENT
}

function isPublicMember(member: readonly [string, unknown]): member is [string, string] {
  return PUBLIC_MEMBERS.has(member[0]) && typeof member[1] === 'string'
}

function isJwk(value: unknown): value is Jwk {
  return typeof value === 'object' && value !== null
}

/** Computes the JWK thumbprint (RFC 7638). Pass only the required members of the key's type. */
export function computeThumbprint(members: Readonly<Record<string, string>>): string {
  const sorted = Object.fromEntries(Object.entries(members).sort())
  return createHash('sha256').update(JSON.stringify(sorted)).digest('base64url')
}

export type Claims = Readonly<Record<string, unknown>>

/** A decoded JWT. Do not trust anything in it before `verifySignature`. */
export interface Jwt {
  readonly header: Readonly<Record<string, unknown>>
  readonly claims: Claims
  /** The octets that are signed. */
  readonly input: Buffer
  readonly signature: Buffer
}

// RFC 7515, 7.1: three base64url parts.
const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Decodes a JWS in compact serialization whose header and claims are JSON objects; undefined for anything else. */
export function decodeJwt(token: string): Jwt | undefined {
  if (!COMPACT.test(token)) return undefined
  const [header = '', claims = '', signature = ''] = token.split('.')
  const decoded = { header: decodeObject(header), claims: decodeObject(claims) }
  if (!decoded.header || !decoded.claims) return undefined
  return {
    header: decoded.header,
    claims: decoded.claims,
    input: Buffer.from(token.slice(0, header.length + 1 + claims.length), 'latin1'),
    signature: Buffer.from(signature, 'base64url'),
  }
}

function decodeObject(part: string): Claims | undefined {
  try {
    const value: unknown = JSON.parse(utf8.decode(Buffer.from(part, 'base64url')))
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * How far the clocks of our servers, and of the clients of our auth server, may differ. It makes a token valid early, and
 * never keeps one valid after its `exp`. Identity providers have a larger one (`auth/base/limits.ts`).
 */
export const LEEWAY_SECONDS = 10

/** Whether a claim is a NumericDate (RFC 7519, 2). */
export function isNumericDate(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** Whether `nbf` or `iat` is in the future, or not a time. A claim that is not there is not. */
export function isToCome(time: unknown, nowMs: number): boolean {
  return time !== undefined && !(isNumericDate(time) && time * 1000 <= nowMs + LEEWAY_SECONDS * 1000)
}

// With a callback, `node:crypto` computes in a thread of libuv's pool.
const signWithCallback = promisify(sign)
const verifyWithCallback = promisify(verify)

/** Signs claims in another thread. `alg` must fit the key. */
export async function signJwt(
  header: { readonly alg: Algorithm; readonly typ: string; readonly kid: string },
  claims: Claims,
  privateKey: KeyObject,
): Promise<string> {
  const input = `${encodeObject(header)}.${encodeObject(claims)}`
  const { hash, ...scheme } = SIGNATURE_SCHEMES[header.alg]
  const signature = await runInThreadPool(() =>
    signWithCallback(hash, Buffer.from(input, 'latin1'), { key: privateKey, ...scheme }),
  )
  return `${input}.${signature.toString('base64url')}`
}

function encodeObject(value: Claims): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** Whether the key signed the token. The key decides which algorithms are possible, the token only chooses among them. */
export function verifySignature(jwt: Jwt, key: VerificationKey): boolean {
  const check = prepareCheck(jwt, key)
  return check !== undefined && verify(...check)
}

/** Verifies a signature in another thread: for keys that clients choose, which may be slow. */
export async function verifySignatureInThread(jwt: Jwt, key: VerificationKey): Promise<boolean> {
  const check = prepareCheck(jwt, key)
  return check !== undefined && (await runInThreadPool(() => verifyWithCallback(...check)))
}

function prepareCheck({ header, input, signature }: Jwt, { algorithms, publicKey }: VerificationKey) {
  const algorithm = algorithms.find(it => it === header.alg)
  if (algorithm === undefined) return undefined
  const { hash, ...scheme } = SIGNATURE_SCHEMES[algorithm]
  return [hash, input, { key: publicKey, ...scheme }, signature] as const
}
