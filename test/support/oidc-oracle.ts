import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Provider } from 'oidc-provider'
import { freePorts } from './free-ports.ts'
import { rsaPair } from './rsa-pair.ts'

export const CALLBACK = 'https://app.example/callback'
const RESOURCE = 'http://localhost:8080/fhir'

/** A client of the oracle. */
export interface OracleClient {
  readonly client_id: string
  readonly token_endpoint_auth_method: 'none' | 'client_secret_basic' | 'private_key_jwt'
  readonly client_secret?: string
  readonly jwks?: { readonly keys: readonly Record<string, unknown>[] }
  readonly grant_types: readonly string[]
}

/** A class that stores one model of `oidc-provider`. */
type Adapter = new (model: string) => object

/** `oidc-provider`, set to what we claim too: what it answers is what another careful server would answer. */
export interface Oracle {
  readonly issuer: string
  /** A code for a logged-in user, as the authorization endpoint leaves it. */
  code(clientId: string, challenge: string, scope: string): Promise<string>
  close(): Promise<void>
}

/** Stores in memory without an adapter. */
export async function startOracle(clients: readonly OracleClient[], adapter?: Adapter): Promise<Oracle> {
  const [port = 0] = await freePorts(1)
  const issuer = `http://localhost:${port}`
  const provider = new Provider(issuer, { ...configuration(clients), ...(adapter && { adapter }) })
  provider.on('server_error', () => undefined)
  const server = createServer(provider.callback())
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    issuer,
    code: (clientId, challenge, scope) => makeCode(provider, clientId, challenge, scope),
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A client, or what it holds. */
interface Owned {
  readonly clientId: string
}

function configuration(clients: readonly OracleClient[]): ConstructorParameters<typeof Provider>[1] {
  const { privateKey } = rsaPair()
  const key = { ...privateKey.export({ format: 'jwk' }), kid: 'oracle', use: 'sig', alg: 'RS256' }
  return {
    jwks: { keys: [key] },
    clients: clients.map(client => ({
      ...client,
      redirect_uris: client.grant_types.includes('authorization_code') ? [CALLBACK] : [],
      response_types: client.grant_types.includes('authorization_code') ? ['code'] : [],
      scope: 'openid offline_access patient/*.rs system/*.rs',
    })),
    clientDefaults: { id_token_signed_response_alg: 'RS256' },
    scopes: ['openid', 'offline_access', 'patient/*.rs', 'system/*.rs'],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    enabledJWA: { clientAuthSigningAlgValues: ['RS384', 'ES384'] },
    cookies: { keys: [randomUUID()] },
    ttl: {
      AccessToken: 300,
      ClientCredentials: 300,
      AuthorizationCode: 60,
      Grant: 3600,
      RefreshToken: 3600,
      IdToken: 300,
    },
    findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: {
        enabled: true,
        allowedPolicy: (_context: unknown, client: Owned, token: Owned) => token.clientId === client.clientId,
      },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => RESOURCE,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: 'openid offline_access patient/*.rs system/*.rs',
          accessTokenFormat: 'jwt',
          accessTokenTTL: 300,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  }
}

async function makeCode(
  provider: Provider,
  clientId: string,
  codeChallenge: string,
  scope: string,
): Promise<string> {
  const client = await provider.Client.find(clientId)
  const grant = new provider.Grant({ accountId: 'user', clientId })
  grant.addOIDCScope('openid offline_access')
  grant.addResourceScope(RESOURCE, scope)
  const code = new provider.AuthorizationCode({
    accountId: 'user',
    client,
    clientId,
    grantId: await grant.save(),
    redirectUri: CALLBACK,
    scope,
    resource: RESOURCE,
    codeChallenge,
    codeChallengeMethod: 'S256',
    gty: 'authorization_code',
    authTime: Math.floor(Date.now() / 1000),
  })
  return code.save()
}
