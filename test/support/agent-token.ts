import { createHash, randomBytes } from 'node:crypto'
import { readForm } from '../../src/auth/testing/read-form.ts'
import { HttpUser } from './http-user.ts'
import type { Place } from './started.ts'

const REDIRECT = 'http://127.0.0.1/callback'

/** The access token of an assistant whose clinician picked a patient and allowed what is asked for, without a screen. */
export async function getAgentToken(
  { authUrl, fhirUrl, appUrl }: Pick<Place, 'authUrl' | 'fhirUrl' | 'appUrl'>,
  { client, scope, patient }: { readonly client: string; readonly scope: string; readonly patient: string },
): Promise<string> {
  const account = { username: 'clinician', password: 'sallyport', name: '' }
  const user = new HttpUser({ settings: { issuerUrl: authUrl, appUrl }, user: account })
  await user.signIn()
  const verifier = randomBytes(32).toString('base64url')
  const asked = { client_id: client, redirect_uri: REDIRECT, resource: `${fhirUrl}/mcp` }
  const query = new URLSearchParams({
    ...asked,
    response_type: 'code',
    scope,
    state: 's'.repeat(32),
    code_challenge_method: 'S256',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
  })
  const picked = readForm(await (await user.open(`${authUrl}/oauth2/authorize?${query}`)).text())
  picked.set('patientId', patient)
  const consent = await user.open(`${authUrl}/oauth2/pick`, { method: 'POST', body: picked })
  const chosen = readForm(await consent.text())
  chosen.set('decision', 'allow')
  const answer = await user.request(`${authUrl}/oauth2/consent`, { method: 'POST', body: chosen })
  const code = new URL(answer.headers.get('location') ?? '').searchParams.get('code') ?? ''
  const tokens = await fetch(`${authUrl}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({ ...asked, grant_type: 'authorization_code', code, code_verifier: verifier }),
  })
  if (tokens.status !== 200) throw new Error(await tokens.text())
  return JSON.parse(await tokens.text()).access_token
}
