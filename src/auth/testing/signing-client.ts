import { generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'
import { rsaPair } from '../../../test/support/rsa-pair.ts'

const TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const TOKEN_ENDPOINT = 'http://localhost:9000/oauth2/token'

const rsa = rsaPair(1)
const ec = generateKeyPairSync('ec', { namedCurve: 'P-384' })

type Part = Readonly<Record<string, unknown>>

/** A client that authenticates by `private_key_jwt`: its key set, and valid or invalid assertions. */
export class SigningClient {
  readonly id: string
  readonly alg: 'RS384' | 'ES384'
  readonly time: { readonly now: number }
  readonly kid = 'key-1'

  constructor(id: string, time: { readonly now: number }, alg: 'RS384' | 'ES384' = 'ES384') {
    this.id = id
    this.time = time
    this.alg = alg
  }

  get privateKey(): KeyObject {
    return this.alg === 'RS384' ? rsa.privateKey : ec.privateKey
  }

  get jwk(): Record<string, unknown> {
    const { publicKey } = this.alg === 'RS384' ? rsa : ec
    return { ...publicKey.export({ format: 'jwk' }), kid: this.kid, use: 'sig', alg: this.alg }
  }

  get jwks(): string {
    return JSON.stringify({ keys: [this.jwk] })
  }

  signAssertion(claims: Part = {}, header: Part = {}, key = this.privateKey): string {
    const seconds = Math.floor(this.time.now / 1000)
    const body = {
      iss: this.id,
      sub: this.id,
      aud: TOKEN_ENDPOINT,
      exp: seconds + 300,
      jti: randomUUID(),
      ...claims,
    }
    const input = `${encode({ alg: this.alg, kid: this.kid, typ: 'JWT', ...header })}.${encode(body)}`
    const signature = sign('sha384', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
    return `${input}.${signature.toString('base64url')}`
  }

  /** Makes the form fields that authenticate the client. */
  makeProof(claims: Part = {}, header: Part = {}): Record<string, string> {
    return { client_assertion_type: TYPE, client_assertion: this.signAssertion(claims, header) }
  }
}

export function encode(part: Part): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}
