import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createAuditor } from '../../src/audit/index.ts'
import { SigningClient } from '../../src/auth/testing/signing-client.ts'
import { stampRows } from '../../src/auth/testing/stamp.ts'
import { computeChallenge, TestAuthServer, VERIFIER } from '../../src/auth/testing/test-auth-server.ts'
import { createRandomToken, openStore, sha256 } from '../../src/store/index.ts'
import type { Served } from '../shared/contender.ts'
import { formatForm } from '../shared/load.ts'
import type { Form } from './grants.ts'

const SCOPE = 'launch openid fhirUser offline_access patient/*.rs'
const TOKEN_URL = new URL('http://localhost:9000/oauth2/token')
const REDIRECT_URI = 'http://localhost:8081/callback'

/** The auth server on SQLite, with the audit trail on. */
export async function startOwn(folder: string): Promise<Served> {
  const store = await openStore(`sqlite:${join(folder, 'auth.db')}`)
  const server = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
  const clients = { RS384: await addBackend(server, 'RS384'), ES384: await addBackend(server, 'ES384') }
  await server.app.listen({ port: 0, host: '127.0.0.1' })
  const makeForms = async (grant: string, count: number): Promise<readonly Form[]> => {
    if (grant === 'code') return (await createCodes(server, count)).map(makeCodeForm)
    if (grant === 'refresh') return Promise.all((await createCodes(server, count)).map(exchange))
    const client = clients[grant === 'client_credentials RS384' ? 'RS384' : 'ES384']
    return Array.from({ length: count }, () => makeBackendForm(client))
  }
  return {
    port: (server.app.server.address() as AddressInfo).port,
    makeRequests: async (grant, count) =>
      (await makeForms(grant, count)).map(form => formatForm(TOKEN_URL, form)),
  }

  async function exchange(code: string): Promise<Form> {
    const { refresh_token: token } = (await server.exchange(code)).json()
    return { grant_type: 'refresh_token', refresh_token: token, client_id: 'sallyport-app' }
  }
}

async function addBackend(server: TestAuthServer, alg: 'RS384' | 'ES384'): Promise<SigningClient> {
  const client = new SigningClient(`bench-${alg}`, server.time, alg)
  await server.addClient({
    client_id: client.id,
    auth_method: 'private_key_jwt',
    jwks: client.jwks,
    scope: 'system/*.rs',
  })
  return client
}

function makeBackendForm(client: SigningClient): Form {
  return { grant_type: 'client_credentials', scope: 'system/Patient.rs', ...client.makeProof() }
}

function makeCodeForm(code: string): Form {
  return {
    grant_type: 'authorization_code',
    code,
    client_id: 'sallyport-app',
    redirect_uri: REDIRECT_URI,
    code_verifier: VERIFIER,
  }
}

/** Authorization codes as the authorization endpoint stores them, each with its own grant. */
export async function createCodes(
  { store, time }: Pick<TestAuthServer, 'store' | 'time'>,
  count: number,
  { patient, redirectUri } = { patient: 'juniper', redirectUri: REDIRECT_URI },
): Promise<readonly string[]> {
  const codes = Array.from({ length: count }, createRandomToken)
  const { id } = await store.db.selectFrom('clinician').select('id').executeTakeFirstOrThrow()
  await store.db.transaction().execute(async trx => {
    for (const code of codes) {
      await trx
        .insertInto('grant')
        .values({
          id: sha256(code),
          client_id: 'sallyport-app',
          clinician_id: id,
          scope: SCOPE,
          login_id_hash: null,
          patient_id: patient,
          encounter_id: null,
          need_patient_banner: true,
          context: null,
          revoked_at: null,
          auth_time: time.now,
          created_at: time.now,
          last_used_at: time.now,
        })
        .execute()
      await trx
        .insertInto('authorization_code')
        .values({
          code_hash: sha256(code),
          grant_id: sha256(code),
          redirect_uri: redirectUri,
          code_challenge: computeChallenge(VERIFIER),
          nonce: 'n',
          used_at: null,
          expires_at: time.now + 60_000,
        })
        .execute()
    }
    await stampRows(trx)
  })
  return codes
}
