import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { Agent, get, request } from 'node:http'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { HttpUser } from './support/http-user.ts'
import { newPlace, type Place, type Started, startProcess } from './support/started.ts'
import { IS_THOROUGH } from './support/thorough.ts'

const CLOSE = { connection: 'close' }
const SCOPE =
  'launch openid fhirUser online_access patient/Patient.rs patient/Condition.rs patient/MedicationRequest.rs patient/Observation.crs'

/** A clinician whose every request opens a connection, which the supervisor assigns to the next worker. */
class RoamingUser extends HttpUser {
  override request(url: string, init: RequestInit = {}): Promise<Response> {
    return super.request(url, { ...init, headers: { ...init.headers, ...CLOSE } })
  }
}

describe('SMART_WORKERS=2', () => {
  let place: Place
  let started: Started
  let user: RoamingUser

  before(async () => {
    place = await newPlace({
      SMART_WORKERS: '2',
      SMART_LOG_LEVEL: 'info',
      SMART_APP_AUTH_METHOD: 'none',
      SMART_APP_SCOPE: SCOPE,
    })
    started = startProcess(['start'], place)
    await started.printed(/is running/)
    user = new RoamingUser({
      settings: { issuerUrl: place.authUrl, appUrl: place.appUrl },
      user: { username: 'clinician', password: 'sallyport', name: 'Dr. Robin Ahmadi' },
    })
    await user.signIn()
  })
  after(() => {
    started.child.kill('SIGKILL')
    place.remove()
  })

  const logLines = () =>
    started
      .stdout()
      .split('\n')
      .filter(line => line.startsWith('{'))
      .map((line): Record<string, unknown> => JSON.parse(line))
  const listWorkersOf = (server: string) =>
    [
      ...new Set(logLines().flatMap(line => (line.server === server && line.path ? [line.worker] : []))),
    ].sort()
  const findPid = (worker: number) =>
    Number(logLines().findLast(line => line.worker === worker && line.msg === 'Worker started')?.pid)

  async function exchange(form: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    const body = new URLSearchParams({ client_id: 'sallyport-app', ...form })
    const response = await fetch(`${place.authUrl}/oauth2/token`, { method: 'POST', body, headers: CLOSE })
    assert.equal(response.status, 200, await response.clone().text())
    return (await response.json()) as Record<string, string>
  }

  async function findPatient(): Promise<string> {
    const portal = await (await user.open(`${place.authUrl}/portal`)).text()
    return /data-patient-id="([^"]+)"/.exec(portal)?.[1] ?? ''
  }

  /** Launches the app from the portal and exchanges the code, in place of the app. */
  async function launch(): Promise<Record<string, string>> {
    const verifier = randomBytes(32).toString('base64url')
    const redirectUri = `${place.appUrl}/callback`
    const launched = await user.request(`${place.authUrl}/portal/launch`, {
      method: 'POST',
      body: new URLSearchParams({ patientId: await findPatient() }),
    })
    const launchUrl = new URL(launched.headers.get('location') ?? '')
    const authorize = new URL(`${place.authUrl}/oauth2/authorize`)
    authorize.search = new URLSearchParams({
      response_type: 'code',
      client_id: 'sallyport-app',
      redirect_uri: redirectUri,
      scope: SCOPE,
      state: 's'.repeat(32),
      nonce: 'n',
      aud: place.fhirUrl,
      launch: launchUrl.searchParams.get('launch') ?? '',
      code_challenge_method: 'S256',
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    }).toString()
    const answer = await user.request(authorize.href)
    const code = new URL(answer.headers.get('location') ?? '').searchParams.get('code') ?? ''
    return exchange({
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    })
  }

  const readFhir = (path: string, token = '') =>
    fetch(`${place.fhirUrl}/${path}`, { headers: { ...CLOSE, authorization: `Bearer ${token}` } })

  it('does the work of a start once, and names the worker in log lines (START-8)', () => {
    assert.equal(started.stdout().match(/Creating 2 sample patients/g)?.length, 1)
    assert.equal(started.stdout().match(/is running/g)?.length, 1)
    assert.match(started.stdout(), /Workers +2\n/)
    assert.deepEqual(listWorkersOf('auth'), [1, 2])
  })

  it('serves a launch, tokens, their refresh and their revocation by different workers (START-9)', async () => {
    const first = await launch()
    const patient = `Patient/${first.patient}`
    for (let count = 0; count < 2; count++)
      assert.equal((await readFhir(patient, first.access_token)).status, 200)
    const form = { grant_type: 'refresh_token', refresh_token: first.refresh_token ?? '' }
    // Every worker returns the same successor to a client that repeats the request.
    const [second, again] = [await exchange(form), await exchange(form)]
    assert.equal(second.refresh_token, again.refresh_token)
    assert.equal((await readFhir(patient, second.access_token)).status, 200)
    const revoked = await fetch(`${place.authUrl}/oauth2/revoke`, {
      method: 'POST',
      headers: CLOSE,
      body: new URLSearchParams({ client_id: 'sallyport-app', token: second.refresh_token ?? '' }),
    })
    assert.equal(revoked.status, 200)
    const end = performance.now() + 10_000
    let refused = 0
    while (refused < 4 && performance.now() < end) {
      refused = (await readFhir(patient, second.access_token)).status === 401 ? refused + 1 : 0
      if (refused === 0) await pause(200)
    }
    assert.equal(refused, 4)
    for (const server of ['auth', 'fhir']) assert.deepEqual(listWorkersOf(server), [1, 2])
  })

  it('serves a session, its renewal and its logout by different workers (START-9)', async () => {
    assert.match(await (await user.launch(await findPatient())).text(), /Patient/)
    const statuses = async (path: string) => [(await user.api(path)).status, (await user.api(path)).status]
    assert.deepEqual(await statuses('summary'), [200, 200])
    const database = new DatabaseSync(join(place.folder, 'data', 'sallyport.db'), { timeout: 5000 })
    database.exec('update app_session set renew_at = 0')
    assert.deepEqual(await statuses('summary'), [200, 200])
    assert.equal(database.prepare('select token_version from app_session').get()?.token_version, 2)
    database.close()
    await user.open(`${place.appUrl}/logout`, { method: 'POST' })
    assert.deepEqual(await statuses('session'), [401, 401])
    assert.deepEqual(listWorkersOf('app'), [1, 2])
  })

  async function countRequests(url: string, labels: RegExp): Promise<number> {
    const text = await (await fetch(new URL('/metrics', url), { headers: CLOSE })).text()
    const line = text
      .split('\n')
      .find(it => it.startsWith('sallyport_http_requests_total') && labels.test(it))
    return Number(line?.split(' ')[1] ?? 0)
  }

  it('reports the metrics of all workers (START-10)', async () => {
    const count = () => countRequests(place.appUrl, /"\/healthz"/)
    const before = await count()
    for (let sent = 0; sent < 6; sent++) await fetch(`${place.appUrl}/healthz`, { headers: CLOSE })
    assert.deepEqual([await count(), await count()], [before + 6, before + 6])
  })

  it('reports that it is not ready while a worker does not respond (START-10)', async () => {
    process.kill(findPid(2), 'SIGSTOP')
    const ask = () => fetch(`${place.appUrl}/readyz`, { headers: CLOSE })
    // The supervisor may assign one connection to the stopped worker, but no second one.
    const [one, two] = [ask(), ask()]
    const response = await Promise.race([one, two])
    const body = await response.json()
    process.kill(findPid(2), 'SIGCONT')
    await Promise.all([one, two])
    assert.equal(response.status, 503)
    const reason = 'no response within 1200 ms'
    assert.deepEqual(body, {
      status: 'not ready',
      checks: [
        { name: 'database', ok: true },
        { name: 'worker 2', ok: false, reason },
      ],
    })
    assert.equal((await ask()).status, 200)
  })

  // It takes ten seconds.
  if (IS_THOROUGH)
    it('replaces a worker that is silent for ten seconds (START-8)', async () => {
      const pid = findPid(2)
      process.kill(pid, 'SIGSTOP')
      while (findPid(2) === pid) await pause(100)
      assert.ok(logLines().some(line => line.msg === 'Worker does not respond; it is replaced'))
      assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
    })

  it('applies new sign-in providers in every worker at SIGHUP, and no invalid ones (SETTING-11)', async () => {
    const file = join(place.folder, 'sallyport.yaml')
    const provider = 'id: staff, name: Hospital account, issuer: "http://localhost:1", client-id: sallyport'
    const isOffered = async () => {
      const pages = [1, 2].map(() => fetch(`${place.authUrl}/login`, { headers: CLOSE }))
      return Promise.all(pages.map(async page => (await (await page).text()).includes('Hospital account')))
    }
    writeFileSync(file, `smart.login.providers: [{${provider}}]`)
    started.child.kill('SIGHUP')
    await started.printed(/Settings reloaded/)
    assert.deepEqual(await isOffered(), [true, true])
    const listed = startProcess(['audit', '--kind', 'admin'], place)
    await listed.ended()
    assert.match(listed.stdout(), /settings reload SIGHUP/)
    writeFileSync(file, 'smart.login.providers: [{id: staff}]')
    started.child.kill('SIGHUP')
    await started.printed(/Cannot reload the settings/)
    assert.deepEqual(await isOffered(), [true, true])
  })

  it('loses no acknowledged write if a worker is killed under load, and replaces it (START-8)', async () => {
    const { access_token: token = '', patient } = await launch()
    const body = JSON.stringify({
      resourceType: 'Observation',
      status: 'final',
      code: { text: 'Weight' },
      subject: { reference: `Patient/${patient}` },
    })
    const stored: string[] = []
    const pid = findPid(1)
    let isOver = false
    const create = async () => {
      while (!isOver) {
        const response = await fetch(`${place.fhirUrl}/Observation`, {
          method: 'POST',
          body,
          headers: { ...CLOSE, authorization: `Bearer ${token}`, 'content-type': 'application/fhir+json' },
        }).catch(() => undefined)
        if (response?.status === 201) stored.push(((await response.json()) as { id: string }).id)
      }
    }
    const load = [create(), create(), create(), create()]
    while (stored.length < 10) await pause(10)
    const countedBefore = await countRequests(place.fhirUrl, /"POST".*"201"/)
    process.kill(pid, 'SIGKILL')
    while (findPid(1) === pid) await pause(20)
    const afterRestart = stored.length + 10
    while (stored.length < afterRestart) await pause(10)
    isOver = true
    await Promise.all(load)
    const bundle = await readFhir(`Observation?code:text=Weight&_count=1000`, token)
    const { entry } = (await bundle.json()) as { entry: { resource: { id: string } }[] }
    const found = new Set(entry.map(({ resource }) => resource.id))
    assert.deepEqual(
      stored.filter(id => !found.has(id)),
      [],
    )
    assert.ok(logLines().some(line => line.worker === 1 && line.msg === 'Worker ended; it is restarted'))
    assert.ok((await countRequests(place.fhirUrl, /"POST".*"201"/)) >= countedBefore + 10)
  })

  it('finishes running requests at SIGTERM, resets no kept connection, and exits with 0 (START-8)', async () => {
    const running = request(`${place.authUrl}/login`, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': 37,
        expect: '100-continue',
      },
    })
    running.flushHeaders()
    await once(running, 'continue')
    const answered = once(running, 'response')
    const agent = new Agent({ keepAlive: true })
    const ended = Promise.all([1, 2, 3, 4].map(() => requestUntilRefused(`${place.appUrl}/healthz`, agent)))
    await pause(100)
    started.child.kill('SIGTERM')
    await started.printed(/Stopping/)
    running.end('username=clinician&password=sallyport')
    const [response] = await answered
    assert.equal(response.resume().statusCode, 302)
    assert.deepEqual(new Set(await ended), new Set(['ECONNREFUSED']))
    assert.deepEqual(await started.ended(), { exitCode: 0, signal: null })
    assert.equal(started.stderr(), '')
  })
})

/**
 * Sends requests on kept connections, one after the other, until one fails. A new connection that waits to be accepted is
 * reset when the server stops listening, which is a refusal, too.
 */
async function requestUntilRefused(url: string, agent: Agent): Promise<string | undefined> {
  for (;;) {
    const sent = get(url, { agent })
    try {
      const [response] = await once(sent, 'response')
      response.resume()
      await once(response, 'end')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      return code === 'ECONNRESET' && !sent.reusedSocket ? 'ECONNREFUSED' : code
    }
  }
}
