import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

const PRESENT_AND_VERIFIED = 0x05
const HAS_CREDENTIAL = 0x40

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest()

/** CBOR (RFC 8949): the head of a value. */
function head(type: number, length: number): Buffer {
  const first = type << 5
  if (length < 24) return Buffer.of(first | length)
  return length < 256 ? Buffer.of(first | 24, length) : Buffer.of(first | 25, length >> 8, length & 255)
}
const text = (value: string) => Buffer.concat([head(3, value.length), Buffer.from(value)])
const bytes = (value: Buffer) => Buffer.concat([head(2, value.length), value])
const integer = (value: number) => (value < 0 ? head(1, -1 - value) : head(0, value))

interface Ceremony {
  readonly challenge: string
  readonly origin?: string
  readonly rpId?: string
  readonly flags?: number
}

/** An authenticator with one P-256 key, for tests without a browser. */
export class TestPasskey {
  readonly #id = randomBytes(16)
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  /** How often it signed. */
  count = 0

  get id(): string {
    return this.#id.toString('base64url')
  }

  /** The response to a request for a new passkey. */
  create(ceremony: Ceremony): string {
    const { x = '', y = '' } = this.#keys.publicKey.export({ format: 'jwk' })
    const cose = Buffer.concat([
      head(5, 5),
      ...[1, 2, 3, -7, -1, 1].map(integer),
      integer(-2),
      bytes(Buffer.from(x, 'base64url')),
      integer(-3),
      bytes(Buffer.from(y, 'base64url')),
    ])
    const credential = Buffer.concat([Buffer.alloc(16), Buffer.of(0, this.#id.length), this.#id, cose])
    const authData = Buffer.concat([this.#makeData(ceremony, HAS_CREDENTIAL), credential])
    const attestation = Buffer.concat([
      head(5, 3),
      text('fmt'),
      text('none'),
      text('attStmt'),
      head(5, 0),
      text('authData'),
      bytes(authData),
    ])
    return this.#respond({
      clientDataJSON: makeClientData('webauthn.create', ceremony),
      attestationObject: attestation.toString('base64url'),
    })
  }

  /** The response to a request for a passkey. */
  get(ceremony: Ceremony): string {
    this.count += 1
    const data = this.#makeData(ceremony, 0)
    const clientData = makeClientData('webauthn.get', ceremony)
    const signed = Buffer.concat([data, sha256(Buffer.from(clientData, 'base64url'))])
    return this.#respond({
      clientDataJSON: clientData,
      authenticatorData: data.toString('base64url'),
      signature: sign('sha256', signed, this.#keys.privateKey).toString('base64url'),
    })
  }

  #makeData({ rpId = 'localhost', flags = PRESENT_AND_VERIFIED }: Ceremony, more: number): Buffer {
    const count = Buffer.alloc(4)
    count.writeUInt32BE(this.count)
    return Buffer.concat([sha256(rpId), Buffer.of(flags | more), count])
  }

  #respond(response: object): string {
    return JSON.stringify({
      id: this.id,
      rawId: this.id,
      type: 'public-key',
      response,
      clientExtensionResults: {},
    })
  }
}

function makeClientData(type: string, { challenge, origin = 'http://localhost:9000' }: Ceremony): string {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false })).toString('base64url')
}

/** The challenge of a page. */
export function readChallenge(page: string): string {
  return /challenge&quot;:&quot;([\w-]+)/.exec(page)?.[1] ?? ''
}
