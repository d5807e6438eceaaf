/** Data and apps: import, a launch from the portal, a standalone launch with consent, and the trail of it all. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { readForm } from '../../src/auth/testing/read-form.ts'
import { HttpUser } from '../support/http-user.ts'
import { newPlace, type Place, runProgram, type Started, startProcess } from '../support/started.ts'

const REDIRECT = 'http://localhost:3000/callback'
const SCOPE = 'launch/patient patient/Patient.rs'

let place: Place
let servers: Started
let user: HttpUser
before(async () => {
  place = await newPlace({ SMART_WORKERS: '2' })
})
after(() => {
  servers?.child.kill('SIGKILL')
  place?.remove()
})

async function succeed(...args: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runProgram(args, place)
  assert.equal(exitCode, 0, stderr + stdout)
  return stdout
}

/** From the start at the app to its tokens. */
async function authorize(patientId: string): Promise<Readonly<Record<string, string>>> {
  const verifier = randomBytes(32).toString('base64url')
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: 'charts',
    redirect_uri: REDIRECT,
    scope: SCOPE,
    state: 's'.repeat(32),
    aud: place.fhirUrl,
    code_challenge_method: 'S256',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
  })
  const picker = await user.open(`${place.authUrl}/oauth2/authorize?${query}`)
  const picked = readForm(await picker.text())
  picked.set('patientId', patientId)
  const consent = await user.open(`${place.authUrl}/oauth2/pick`, { method: 'POST', body: picked })
  const page = await consent.text()
  assert.match(page, /Allow Charts/)
  const chosen = readForm(page)
  chosen.set('decision', 'allow')
  const answer = await user.request(`${place.authUrl}/oauth2/consent`, { method: 'POST', body: chosen })
  const code = new URL(answer.headers.get('location') ?? '').searchParams.get('code') ?? ''
  const tokens = await fetch(`${place.authUrl}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: 'charts',
      code,
      redirect_uri: REDIRECT,
      code_verifier: verifier,
    }),
  })
  assert.equal(tokens.status, 200)
  return JSON.parse(await tokens.text())
}

describe('the apps of a new installation', () => {
  it('find the data that were imported before the first start', async () => {
    const patient = { resourceType: 'Patient', id: 'imported', name: [{ family: 'Import' }] }
    writeFileSync(join(place.folder, 'patients.ndjson'), `${JSON.stringify(patient)}\n`)
    assert.match(await succeed('data', 'import', 'patients.ndjson'), /created +1$/m)
    servers = startProcess(['start'], place)
    await servers.printed(/is running/)
    await succeed('data', 'reset', '--yes')
    await succeed('data', 'import', 'patients.ndjson')
  })

  it('are launched from the portal', async () => {
    const account = { username: 'clinician', password: 'sallyport', name: '' }
    user = new HttpUser({ settings: { issuerUrl: place.authUrl, appUrl: place.appUrl }, user: account })
    await user.signIn()
    const page = await user.launch('patient-1')
    assert.match(page.url, /\/s\//)
    assert.equal((await user.api('summary')).status, 200)
  })

  it('are launched on their own, for the patient whom the user chose and with the consent of the user', async () => {
    const app = [
      '--id',
      'charts',
      '--name',
      'Charts',
      '--public',
      '--redirect-uri',
      REDIRECT,
      '--scope',
      SCOPE,
    ]
    await succeed('client', 'add', ...app)
    const { access_token: token, patient } = await authorize('imported')
    assert.equal(patient, 'imported')
    const read = async (path: string) =>
      (await fetch(`${place.fhirUrl}/${path}`, { headers: { authorization: `Bearer ${token}` } })).status
    assert.deepEqual(
      [await read('Patient/imported'), await read('Patient/patient-1'), await read('Condition')],
      [200, 403, 403],
    )
  })

  it('leave a trail that is whole, and equal to its export', async () => {
    await succeed('clinician', 'set', '--username', 'clinician', '--admin')
    await user.signIn()
    const exported = await user.request(`${place.authUrl}/admin/audit/export.ndjson`)
    assert.equal(exported.status, 200)
    const text = await exported.text()
    assert.match(text, /"Patient\/imported"/)
    writeFileSync(join(place.folder, 'trail.ndjson'), text)
    await succeed('audit', 'check-file', 'trail.ndjson')
    servers.child.kill('SIGTERM')
    assert.equal((await servers.ended()).exitCode, 0)
    await succeed('audit', 'verify')
  })
})
