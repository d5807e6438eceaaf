import { generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import type { TestAuthServer } from './test-auth-server.ts'

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })

/** Registers a back end that signs with ES384 (SMART 2.2, client-confidential-asymmetric). */
export async function addBackend(house: TestAuthServer, client_id: string, scope: string): Promise<void> {
  const key = { ...publicKey.export({ format: 'jwk' }), kid: 'key-1', alg: 'ES384', use: 'sig' }
  await house.addClient({
    client_id,
    scope,
    auth_method: 'private_key_jwt',
    jwks: JSON.stringify({ keys: [key] }),
    redirect_uris: '[]',
    launch_url: null,
  })
}

/** An access token of a back end for this scope. */
export async function requestBackendToken(
  house: TestAuthServer,
  client_id: string,
  scope: string,
): Promise<string> {
  const response = await house.token({
    grant_type: 'client_credentials',
    scope,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: assertionOf(client_id, `${house.settings.issuerUrl}/oauth2/token`, house.time.now),
  })
  if (response.statusCode !== 200) throw new Error(`No token: ${response.body}`)
  return response.json().access_token
}

function assertionOf(client: string, aud: string, now: number): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { iss: client, sub: client, aud, jti: randomUUID(), exp: Math.floor(now / 1000) + 240 }
  const content = `${part({ alg: 'ES384', typ: 'JWT', kid: 'key-1' })}.${part(claims)}`
  const signature = sign('sha384', Buffer.from(content), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${content}.${signature.toString('base64url')}`
}
