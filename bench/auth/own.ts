import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SigningClient } from '../../src/auth/testing/signing-client.ts'
import { computeChallenge, TestAuthServer, VERIFIER } from '../../src/auth/testing/test-auth-server.ts'
import { createRandomToken, openStore, sha256 } from '../../src/store/index.ts'
import type { Costs } from './signatures.ts'
import { CALLS, ROUNDS, timeRounds } from './time.ts'

const SCOPE = 'launch openid fhirUser offline_access patient/*.rs'
const REDIRECT_URI = 'http://localhost:8081/callback'

/** The auth server on SQLite, called without a socket. */
export async function measureOwn(): Promise<Costs> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'))
  const store = await openStore(`sqlite:${join(folder, 'auth.db')}`)
  const server = await TestAuthServer.open(store)
  const code = await measureExchanges(server)
  const refresh = await measureRefreshes(server)
  const rs384 = await measureBackEnds(server, 'RS384')
  const es384 = await measureBackEnds(server, 'ES384')
  await server.app.close()
  await store.close()
  rmSync(folder, { recursive: true, force: true })
  return { code, refresh, 'back end RS384': rs384, 'back end ES384': es384 }
}

async function measureExchanges(server: TestAuthServer): Promise<number> {
  const codes = await createCodes(server, (ROUNDS + 1) * CALLS)
  return timeRounds(ROUNDS, CALLS, async () => {
    for (const code of codes.splice(0, CALLS)) expect200(await server.exchange(code))
  })
}

async function measureRefreshes(server: TestAuthServer): Promise<number> {
  const [code = ''] = await createCodes(server, 1)
  let { refresh_token: token } = (await server.exchange(code)).json()
  return timeRounds(ROUNDS, CALLS, async () => {
    for (let call = 0; call < CALLS; call++) {
      const response = await server.refresh(token)
      expect200(response)
      token = response.json().refresh_token
    }
  })
}

async function measureBackEnds(server: TestAuthServer, alg: 'RS384' | 'ES384'): Promise<number> {
  const client = new SigningClient(`bench-${alg}`, server.time, alg)
  await server.addClient({
    client_id: client.id,
    auth_method: 'private_key_jwt',
    jwks: client.jwks,
    scope: 'system/*.rs',
  })
  const forms = Array.from({ length: ROUNDS * CALLS }, () => ({
    ...{ grant_type: 'client_credentials', scope: 'system/Patient.rs' },
    ...client.makeProof(),
  }))
  return timeRounds(ROUNDS, CALLS, async () => {
    for (const form of forms.splice(0, CALLS)) expect200(await server.requestToken(form))
  })
}

/** Authorization codes as the authorization endpoint stores them, each with its own grant. */
async function createCodes({ store, time }: TestAuthServer, count: number): Promise<string[]> {
  const codes = Array.from({ length: count }, createRandomToken)
  const { id } = await store.db.selectFrom('clinician').select('id').executeTakeFirstOrThrow()
  await store.db.transaction().execute(async trx => {
    for (const code of codes) {
      await trx
        .insertInto('grant')
        .values({
          ...{ id: sha256(code), client_id: 'sallyport-app', clinician_id: id, scope: SCOPE },
          ...{ login_id_hash: null, patient_id: 'juniper', encounter_id: null, need_patient_banner: true },
          ...{ context: null, revoked_at: null },
          ...{ auth_time: time.now, created_at: time.now, last_used_at: time.now },
        })
        .execute()
      await trx
        .insertInto('authorization_code')
        .values({
          ...{ code_hash: sha256(code), grant_id: sha256(code), redirect_uri: REDIRECT_URI },
          ...{ code_challenge: computeChallenge(VERIFIER), nonce: 'n', used_at: null },
          expires_at: time.now + 60_000,
        })
        .execute()
    }
  })
  return codes
}

export function expect200({ statusCode, body }: { statusCode: number; body: string }): void {
  if (statusCode !== 200) throw new Error(`Cannot bench: ${statusCode} ${body}`)
}
