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

/** The auth server on SQLite, asked without a socket. */
export async function ownBench(): Promise<Costs> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'))
  const store = await openStore(`sqlite:${join(folder, 'auth.db')}`)
  const house = await TestAuthServer.open(store)
  const code = await exchanges(house)
  const refresh = await refreshes(house)
  const rs384 = await backEnds(house, 'RS384')
  const es384 = await backEnds(house, 'ES384')
  await house.app.close()
  await store.close()
  rmSync(folder, { recursive: true, force: true })
  return { code, refresh, 'back end RS384': rs384, 'back end ES384': es384 }
}

async function exchanges(house: TestAuthServer): Promise<number> {
  const codes = await makeCodes(house, (ROUNDS + 1) * CALLS)
  return timeRounds(ROUNDS, CALLS, async () => {
    for (const code of codes.splice(0, CALLS)) expect200(await house.exchange(code))
  })
}

async function refreshes(house: TestAuthServer): Promise<number> {
  const [code = ''] = await makeCodes(house, 1)
  let { refresh_token: token } = (await house.exchange(code)).json()
  return timeRounds(ROUNDS, CALLS, async () => {
    for (let call = 0; call < CALLS; call++) {
      const response = await house.refresh(token)
      expect200(response)
      token = response.json().refresh_token
    }
  })
}

async function backEnds(house: TestAuthServer, alg: 'RS384' | 'ES384'): Promise<number> {
  const client = new SigningClient(`bench-${alg}`, house.time, alg)
  await house.addClient({
    client_id: client.id,
    auth_method: 'private_key_jwt',
    jwks: client.jwks,
    scope: 'system/*.rs',
  })
  const forms = Array.from({ length: ROUNDS * CALLS }, () => ({
    ...{ grant_type: 'client_credentials', scope: 'system/Patient.rs' },
    ...client.proof(),
  }))
  return timeRounds(ROUNDS, CALLS, async () => {
    for (const form of forms.splice(0, CALLS)) expect200(await house.token(form))
  })
}

/** Codes as the authorization endpoint leaves them, each with a grant of its own. */
async function makeCodes({ store, time }: TestAuthServer, count: number): Promise<string[]> {
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
