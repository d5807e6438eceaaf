import { constants } from 'node:crypto'

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
export const SIGNATURE_SCHEMES = {
  RS256: { kty: 'RSA', hash: 'sha256' },
  RS384: { kty: 'RSA', hash: 'sha384' },
  PS256: { ...PSS, hash: 'sha256' },
  ES256: { ...ECDSA, crv: 'P-256', hash: 'sha256' },
  ES384: { ...ECDSA, crv: 'P-384', hash: 'sha384' },
} as const satisfies Readonly<Record<string, SignatureScheme>>

export type Algorithm = keyof typeof SIGNATURE_SCHEMES
