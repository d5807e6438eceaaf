/** `examples/launch.mjs` as an app developer starts it, against the real servers; the clinician's browser is over HTTP. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { sallyport } from '../test/support/command-line.ts'
import { freePorts } from '../test/support/free-ports.ts'
import { HttpUser } from '../test/support/http-user.ts'
import { type Stack, startStack } from '../test/support/stack.ts'

describe('examples/launch.mjs', () => {
  let stack: Stack
  let app: ChildProcess
  let appUrl = ''
  let user: HttpUser
  before(async () => {
    const [started, [port = 0]] = await Promise.all([startStack(), freePorts(1)])
    stack = started
    appUrl = `http://localhost:${port}`
    user = new HttpUser(stack)
    app = spawn(process.execPath, [join(import.meta.dirname, 'launch.mjs')], {
      env: { PORT: String(port), ISS: stack.settings.fhirBaseUrl },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await Promise.all([app.stdout && once(app.stdout, 'data'), register(), user.signIn()])
  })
  after(async () => {
    app.kill()
    await Promise.all([once(app, 'close'), stack.close()])
  })

  async function run(...args: readonly string[]): Promise<string> {
    const { dataDir, fhirBaseUrl, issuerUrl } = stack.settings
    const env = { SMART_DATA_DIR: dataDir, SMART_FHIR_BASE_URL: fhirBaseUrl, SMART_ISSUER_URL: issuerUrl }
    const { exitCode, stdout, stderr } = await sallyport(args, { env })
    assert.deepEqual([exitCode, stderr], [0, ''])
    return stdout.trim()
  }

  async function register(): Promise<void> {
    const scope = 'launch launch/patient openid fhirUser patient/Patient.rs patient/Observation.rs'
    await run(
      'client',
      'add',
      '--id=my-app',
      '--public',
      '--name=My app',
      `--scope=${scope}`,
      `--redirect-uri=${appUrl}/callback`,
      `--launch-url=${appUrl}/launch`,
    )
  }

  /** Sends the form of a page as the browser would: what is hidden and what is ticked, and what is given. */
  async function submit(page: Response, action: string, given: Record<string, string>): Promise<Response> {
    const [, form = ''] = (await page.text()).split(`method="post" action="${action}"`)
    const inputs = form.matchAll(/<input type="(?:hidden|checkbox)" name="(\w+)" value="([^"]*)"( checked)?/g)
    const fields = [...inputs].map(([, name = '', value = '']) => [name, value])
    const body = new URLSearchParams([...fields, ...Object.entries(given)])
    return user.open(`${stack.settings.issuerUrl}${action}`, { method: 'POST', body })
  }

  const fromPortal = (patientId: string) =>
    user.open(`${stack.settings.issuerUrl}/portal/launch`, {
      method: 'POST',
      body: new URLSearchParams({ patientId, clientId: 'my-app' }),
    })

  it('launches from the portal and reads the patient that was picked there', async () => {
    const shown = await submit(await fromPortal('patient-2'), '/oauth2/consent', { decision: 'allow' })
    assert.equal(shown.status, 200)
    const [who, may, ...observations] = (await shown.text()).split('\n')
    assert.match(who ?? '', /^\S+, .+ \(\d{4}-\d\d-\d\d\)$/)
    assert.match(may ?? '', /^Scopes: .*patient\/Patient\.rs/)
    assert.equal(observations.length, 5)
    for (const line of observations) assert.match(line, /^\d{4}-\d\d-\d\d \S.* [\d.]+ \S+$/)
    assert.match(observations.join('\n'), / Blood pressure \d+ mmHg, \d+ mmHg$/m)
  })

  it('launches by a link of the command line, once (CLI-7)', async () => {
    const link = await run('launch', '--client', 'my-app', '--patient', 'patient-4')
    const shown = await submit(await user.open(link), '/oauth2/consent', { decision: 'allow' })
    assert.match(await shown.text(), /^\S+, .+\nScopes: launch /)
    assert.match(await (await user.open(link)).text(), /already used/)
  })

  it('launches by itself, and the clinician picks the patient on the way', async () => {
    const picker = await user.open(`${appUrl}/launch`)
    const consent = await submit(picker, '/oauth2/pick', { patientId: 'patient-3' })
    const shown = await submit(consent, '/oauth2/consent', { decision: 'allow' })
    assert.match(await shown.text(), /^\S+, .+\nScopes: /)
  })

  it('says that the clinician did not allow it', async () => {
    const shown = await submit(await fromPortal('patient-2'), '/oauth2/consent', { decision: 'deny' })
    assert.deepEqual([shown.status, (await shown.text()).split(':')[0]], [403, 'access_denied'])
  })

  it('takes no launch of an unknown server, and no answer to a launch of another browser', async () => {
    assert.equal((await fetch(`${appUrl}/launch?iss=http://evil.example/fhir&launch=x`)).status, 403)
    const begun = await fetch(`${appUrl}/launch`, { redirect: 'manual' })
    const state = new URL(begun.headers.get('location') ?? '').searchParams.get('state')
    const stolen = `${appUrl}/callback?code=x&state=${state}&iss=${stack.settings.issuerUrl}`
    assert.equal((await fetch(stolen)).status, 400)
    assert.equal((await fetch(stolen, { headers: { cookie: `state=${state}` } })).status, 400)
  })
})
