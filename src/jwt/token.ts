import { type KeyObject, sign, verify } from 'node:crypto'
import { promisify } from 'node:util'
import { type Algorithm, SIGNATURE_SCHEMES, type VerificationKey } from './key-set.ts'

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
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Claims {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

// With a callback, `node:crypto` computes in a thread of libuv's pool.
const signInThread = promisify(sign)
const verifyInThread = promisify(verify)

/** Signs claims in another thread. `alg` must fit the key. */
export async function signJwt(
  header: { readonly alg: Algorithm; readonly typ: string; readonly kid: string },
  claims: Claims,
  privateKey: KeyObject,
): Promise<string> {
  const input = `${encodeObject(header)}.${encodeObject(claims)}`
  const { hash, ...scheme } = SIGNATURE_SCHEMES[header.alg]
  const signature = await signInThread(hash, Buffer.from(input, 'latin1'), { key: privateKey, ...scheme })
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

/** The same in another thread: for keys that clients choose, which may be slow. */
export async function verifySignatureInThread(jwt: Jwt, key: VerificationKey): Promise<boolean> {
  const check = prepareCheck(jwt, key)
  return check !== undefined && (await verifyInThread(...check))
}

function prepareCheck({ header, input, signature }: Jwt, { algorithms, publicKey }: VerificationKey) {
  const algorithm = algorithms.find(it => it === header.alg)
  if (algorithm === undefined) return undefined
  const { hash, ...scheme } = SIGNATURE_SCHEMES[algorithm]
  return [hash, input, { key: publicKey, ...scheme }, signature] as const
}
