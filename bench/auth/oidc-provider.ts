import { SigningClient } from '../../src/auth/testing/signing-client.ts'
import { computeChallenge, VERIFIER } from '../../src/auth/testing/test-auth-server.ts'
import { CALLBACK, type Oracle, startOracle } from '../../test/support/oidc-oracle.ts'
import type { Costs } from './signatures.ts'
import { timeRounds } from './time.ts'

// Its memory holds 1000 things.
const ROUNDS = 3
const CALLS = 100
const SCOPE = 'openid offline_access patient/*.rs'
const time = {
  get now() {
    return Date.now()
  },
}

/** `oidc-provider` with everything in memory, over a socket of this computer: a yardstick, not a race. */
export async function oidcProviderBench(): Promise<Partial<Costs>> {
  const [rs, es] = [new SigningClient('rs', time, 'RS384'), new SigningClient('es', time, 'ES384')]
  const oracle = await startOracle([
    {
      client_id: 'app',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
    },
    ...[rs, es].map(client => ({
      client_id: client.id,
      token_endpoint_auth_method: 'private_key_jwt' as const,
      jwks: { keys: [client.jwk] },
      grant_types: ['client_credentials'],
    })),
  ])
  const code = await exchanges(oracle)
  const refresh = await refreshes(oracle)
  const rs384 = await backEnds(oracle, rs)
  const es384 = await backEnds(oracle, es)
  await oracle.close()
  return { code, refresh, 'back end RS384': rs384, 'back end ES384': es384 }
}

async function ask(oracle: Oracle, form: Readonly<Record<string, string>>): Promise<Record<string, string>> {
  const response = await fetch(`${oracle.issuer}/token`, { method: 'POST', body: new URLSearchParams(form) })
  const body = (await response.json()) as Record<string, string>
  if (response.status !== 200) throw new Error(`Cannot bench oidc-provider: ${JSON.stringify(body)}`)
  return body
}

function codeForm(code: string) {
  return {
    grant_type: 'authorization_code',
    code,
    client_id: 'app',
    redirect_uri: CALLBACK,
    code_verifier: VERIFIER,
  }
}

async function exchanges(oracle: Oracle): Promise<number> {
  const codes: string[] = []
  for (let i = 0; i < ROUNDS * CALLS; i++)
    codes.push(await oracle.code('app', computeChallenge(VERIFIER), SCOPE))
  return timeRounds(ROUNDS, CALLS, async () => {
    for (const code of codes.splice(0, CALLS)) await ask(oracle, codeForm(code))
  })
}

async function refreshes(oracle: Oracle): Promise<number> {
  const code = await oracle.code('app', computeChallenge(VERIFIER), SCOPE)
  let { refresh_token: token = '' } = await ask(oracle, codeForm(code))
  return timeRounds(ROUNDS, CALLS, async () => {
    for (let call = 0; call < CALLS; call++) {
      const form = { grant_type: 'refresh_token', refresh_token: token, client_id: 'app' }
      token = (await ask(oracle, form)).refresh_token ?? ''
    }
  })
}

async function backEnds(oracle: Oracle, client: SigningClient): Promise<number> {
  const forms = Array.from({ length: ROUNDS * CALLS }, () => ({
    ...{ grant_type: 'client_credentials', scope: 'system/*.rs' },
    ...client.makeProof({ aud: oracle.issuer, iat: Math.floor(Date.now() / 1000) }),
  }))
  return timeRounds(ROUNDS, CALLS, async () => {
    for (const form of forms.splice(0, CALLS)) await ask(oracle, form)
  })
}
