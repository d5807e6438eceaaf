import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { signJwt } from '../../src/jwt/index.ts'

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
      return signJwt({ alg: 'ES256', typ: 'at+jwt', kid: 'other' }, { ...common, ...claims }, privateKey)
    },
    end() {
      server.closeAllConnections()
      server.close()
    },
  }
}
