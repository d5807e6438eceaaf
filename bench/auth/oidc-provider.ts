import { join } from 'node:path'
import { SigningClient } from '../../src/auth/testing/signing-client.ts'
import { computeChallenge, VERIFIER } from '../../src/auth/testing/test-auth-server.ts'
import { CALLBACK, type OracleClient, startOracle } from '../../test/support/oidc-oracle.ts'
import type { Served } from '../shared/contender.ts'
import { formatForm } from '../shared/load.ts'
import { realTime } from '../shared/stack.ts'
import type { Form } from './grants.ts'
import { createSqliteAdapter } from './sqlite-adapter.ts'

const SCOPE = 'openid offline_access patient/*.rs'
/** `oidc-provider` with its own storage in memory, or on SQLite in a folder. Nothing is audited. */
export async function startOidcProvider(folder?: string): Promise<Served> {
  const clients = {
    RS384: new SigningClient('rs', realTime, 'RS384'),
    ES384: new SigningClient('es', realTime, 'ES384'),
  }
  const adapter = folder === undefined ? undefined : createSqliteAdapter(join(folder, 'provider.db'))
  const list: readonly OracleClient[] = [
    {
      client_id: 'app',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
    },
    ...Object.values(clients).map(client => ({
      client_id: client.id,
      token_endpoint_auth_method: 'private_key_jwt' as const,
      jwks: { keys: [client.jwk] },
      grant_types: ['client_credentials'],
    })),
  ]
  const provider = await startOracle(list, adapter)
  const url = new URL(`${provider.issuer}/token`)
  const createCode = () => provider.code('app', computeChallenge(VERIFIER), SCOPE)
  const makeForm = async (grant: string): Promise<Form> => {
    if (grant === 'code') return makeCodeForm(await createCode())
    if (grant === 'refresh') return exchange(provider.issuer, await createCode())
    const client = clients[grant === 'client_credentials RS384' ? 'RS384' : 'ES384']
    const claims = { aud: provider.issuer, iat: Math.floor(Date.now() / 1000) }
    return { grant_type: 'client_credentials', scope: 'system/*.rs', ...client.makeProof(claims) }
  }
  return {
    port: Number(url.port),
    makeRequests: (grant, count) =>
      Promise.all(Array.from({ length: count }, async () => formatForm(url, await makeForm(grant)))),
  }
}

function makeCodeForm(code: string): Form {
  return {
    grant_type: 'authorization_code',
    code,
    client_id: 'app',
    redirect_uri: CALLBACK,
    code_verifier: VERIFIER,
  }
}

async function exchange(issuer: string, code: string): Promise<Form> {
  const body = new URLSearchParams(makeCodeForm(code))
  const response = await fetch(`${issuer}/token`, { method: 'POST', body })
  const { refresh_token: token } = (await response.json()) as { readonly refresh_token: string }
  return { grant_type: 'refresh_token', refresh_token: token, client_id: 'app' }
}
