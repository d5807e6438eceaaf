import { generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

/** An issuer that a FHIR server trusts beside its own auth server. */
export interface OtherIssuer {
  /** The file for `smart.fhir.trusted-issuers-file`. */
  readonly file: string
  /** A new access token for a FHIR base. */
  issue(audience: string, claims: Readonly<Record<string, unknown>>): string
  end(): void
}

/** Serves a key set on loopback. The file that names the issuer goes into the folder. */
export async function startOtherIssuer(folder: string): Promise<OtherIssuer> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keySet = JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'other' }] })
  const server = createServer((_, response) =>
    response.setHeader('content-type', 'application/json').end(keySet),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const file = join(folder, 'trusted-issuers.yaml')
  writeFileSync(file, JSON.stringify([{ issuer, 'jwks-url': `${issuer}/keys` }]))
  return {
    file,
    issue(aud, claims) {
      const iat = Math.floor(Date.now() / 1000)
      const common = { iss: issuer, aud, iat, exp: iat + 3_600, sub: 'user', jti: randomUUID() }
      const header = { alg: 'ES256', typ: 'at+jwt', kid: 'other' }
      const input = `${encode(header)}.${encode({ ...common, ...claims })}`
      const signature = sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })
      return `${input}.${signature.toString('base64url')}`
    },
    end() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function encode(part: Readonly<Record<string, unknown>>): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}
