import { createPublicKey, sign, verify } from 'node:crypto'
import type { PublicJwk, SigningKey } from './signing-key.ts'

/** What kind of token it is, so that one is never taken for another (RFC 9068, 4). */
export type TokenType = 'at+jwt' | 'JWT'

/** A token signed with RS256 (service.md 9). */
export function signJwt(key: SigningKey, typ: TokenType, claims: Readonly<Record<string, unknown>>): string {
  const content = `${encode({ alg: 'RS256', typ, kid: key.publicJwk.kid })}.${encode(claims)}`
  const signature = sign('RSA-SHA256', Buffer.from(content), key.privateKey)
  return `${content}.${signature.toString('base64url')}`
}

/** The claims of a token that one of our own keys signed, whether or not it has expired, or undefined. */
export function readOwnJwt(
  token: string,
  typ: TokenType,
  keys: readonly PublicJwk[],
): Readonly<Record<string, unknown>> | undefined {
  const [header = '', payload = '', signature = '', ...rest] = token.split('.')
  const { alg, typ: found, kid } = decode(header) ?? {}
  const key = keys.find(one => one.kid === kid)
  if (rest.length > 0 || alg !== 'RS256' || found !== typ || !key) return undefined
  const publicKey = createPublicKey({ key: { kty: key.kty, n: key.n, e: key.e }, format: 'jwk' })
  const signed = Buffer.from(`${header}.${payload}`)
  return verify('RSA-SHA256', signed, publicKey, Buffer.from(signature, 'base64url'))
    ? decode(payload)
    : undefined
}

function encode(value: Readonly<Record<string, unknown>>): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function decode(part: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString())
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
