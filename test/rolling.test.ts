import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { startUpstream, type Upstream } from '../examples/upstream.ts'
import { type Balancer, startBalancer } from './support/balancer.ts'
import { eachDatabase } from './support/databases.ts'
import { freePorts } from './support/free-ports.ts'
import { HttpUser } from './support/http-user.ts'
import { checkOut, findLastRelease } from './support/release-code.ts'
import { newPlace, type Place, type Started, startProcess } from './support/started.ts'
import { IS_THOROUGH } from './support/thorough.ts'

const SCOPE =
  'launch openid fhirUser online_access patient/Patient.rs patient/Condition.rs patient/MedicationRequest.rs patient/Observation.crs'
const VERIFIER = randomBytes(32).toString('base64url')
const SERVERS = ['auth', 'fhir', 'app'] as const

const release = findLastRelease()
const skip = missing()

/** Said aloud, because nothing else shows that the upgrade was not tried. */
function missing(): string | false {
  if (!IS_THOROUGH) return 'only in a thorough run'
  if (release) return false
  process.stderr.write(
    'NOT TRIED: the history of this clone has no release to upgrade from (test/rolling.test.ts)\n',
  )
  return 'the history of this clone has no release'
}

/** Two instances of the three servers behind one load balancer for each. */
class Fleet {
  readonly #place: Place
  readonly #balancers: readonly Balancer[]
  readonly instances: { readonly started: Started; readonly ports: readonly number[] }[] = []

  constructor(place: Place, balancers: readonly Balancer[]) {
    this.#place = place
    this.#balancers = balancers
  }

  async start(main?: string): Promise<void> {
    const ports = await freePorts(3)
    const env = Object.fromEntries(
      SERVERS.map((name, index) => [`SMART_${name.toUpperCase()}_PORT`, String(ports[index])]),
    )
    const place = { ...this.#place, env: { ...this.#place.env, ...env } }
    const started = startProcess(['start'], place, main === undefined ? undefined : [process.execPath, main])
    this.instances.push({ started, ports })
    await started.printed(/is running/)
    await Promise.all(this.#balancers.map((balancer, index) => balancer.add(ports[index] ?? 0)))
  }

  /** As systemd and Kubernetes do: a signal, and nobody tells the balancer. */
  async stopOldest(): Promise<void> {
    const oldest = this.instances.shift()
    oldest?.started.child.kill('SIGTERM')
    assert.equal((await oldest?.started.ended())?.exitCode, 0)
    for (const [index, balancer] of this.#balancers.entries()) balancer.remove(oldest?.ports[index] ?? 0)
  }

  close(): void {
    for (const { started } of this.instances) started.child.kill('SIGKILL')
    for (const balancer of this.#balancers) balancer.close()
  }
}

/** One clinician with an app of the portal and an app with tokens of its own. */
class Load {
  readonly #place: Place
  readonly #user: HttpUser
  #token = ''
  #refresh = ''
  #session = ''
  readonly failures: string[] = []
  readonly counts: Record<string, number> = {}

  constructor(place: Place) {
    this.#place = place
    const user = { username: 'clinician', password: 'sallyport', name: '' }
    this.#user = new HttpUser({ settings: { issuerUrl: place.authUrl, appUrl: place.appUrl }, user })
  }

  async run(until: AbortSignal): Promise<void> {
    await this.#user.signIn()
    while (!until.aborted) {
      await this.#attempt('launch', () => this.#launch())
      await this.#attempt('summary', () => this.#user.api('summary', { 'x-session-id': this.#session }))
      await this.#attempt('tokens', () => this.#authorize())
      for (let count = 0; count < 3; count++) {
        await this.#attempt('read', () => this.#askFhir('Patient/patient-1'))
        await this.#attempt('write', () => this.#askFhir('Observation', OBSERVATION))
        await this.#attempt('refresh', () =>
          this.#exchange({ grant_type: 'refresh_token', refresh_token: this.#refresh }),
        )
      }
    }
  }

  async #attempt(name: string, send: () => Promise<Response>): Promise<void> {
    this.counts[name] = (this.counts[name] ?? 0) + 1
    try {
      const response = await send()
      if (response.status >= 400)
        this.failures.push(`${name}: ${response.status} ${await response.clone().text()}`)
      if (!response.bodyUsed) await response.arrayBuffer()
    } catch (error) {
      this.failures.push(`${name}: ${error}`)
    }
  }

  async #launch(): Promise<Response> {
    const page = await this.#user.launch('patient-1')
    this.#session = new URL(page.url).pathname.split('/').at(-1) ?? ''
    return page
  }

  async #authorize(): Promise<Response> {
    const { authUrl, appUrl, fhirUrl } = this.#place
    const launched = await this.#user.request(`${authUrl}/portal/launch`, {
      method: 'POST',
      body: new URLSearchParams({ patientId: 'patient-1' }),
    })
    const launch = new URL(launched.headers.get('location') ?? '').searchParams.get('launch') ?? ''
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: 'sallyport-app',
      redirect_uri: `${appUrl}/callback`,
      scope: SCOPE,
      state: 's'.repeat(32),
      aud: fhirUrl,
      launch,
      code_challenge_method: 'S256',
      code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
    })
    const answer = await this.#user.request(`${authUrl}/oauth2/authorize?${query}`)
    const code = new URL(answer.headers.get('location') ?? '').searchParams.get('code') ?? ''
    const redirect_uri = `${appUrl}/callback`
    return this.#exchange({ grant_type: 'authorization_code', code, redirect_uri, code_verifier: VERIFIER })
  }

  async #exchange(form: Readonly<Record<string, string>>): Promise<Response> {
    const body = new URLSearchParams({ client_id: 'sallyport-app', ...form })
    const response = await fetch(`${this.#place.authUrl}/oauth2/token`, { method: 'POST', body })
    if (!response.ok) return response
    const tokens: unknown = await response.json()
    const { access_token: token, refresh_token: refresh } = tokens as Record<string, string>
    this.#token = token ?? ''
    this.#refresh = refresh ?? this.#refresh
    return response
  }

  #askFhir(path: string, resource?: object): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#token}`, 'content-type': 'application/fhir+json' }
    const write = resource && { method: 'POST', body: JSON.stringify(resource) }
    return fetch(`${this.#place.fhirUrl}/${path}`, { headers, ...write })
  }
}

const OBSERVATION = {
  resourceType: 'Observation',
  status: 'final',
  code: { text: 'Weight' },
  subject: { reference: 'Patient/patient-1' },
}

eachDatabase((name, _open, create) => {
  if (name === 'SQLite') return
  describe('a fleet of two instances', () => {
    it(`is upgraded from ${release?.version ?? 'the last release'} without a failed request (UPGRADE-5)`, {
      skip,
    }, async () => {
      const [upstreamPort = 0] = await freePorts(1)
      const upstream: Upstream = await startUpstream(upstreamPort, 2)
      const place = await newPlace({
        SMART_DATABASE_URL: await create('empty'),
        SMART_FHIR_UPSTREAM_URL: upstream.url,
        SMART_SECRET: randomBytes(32).toString('base64'),
        SMART_APP_AUTH_METHOD: 'none',
        SMART_APP_SCOPE: SCOPE,
        SMART_DRAIN_DELAY_SECONDS: '1',
        SMART_WORKERS: '1',
      })
      const urls = [place.authUrl, place.fhirUrl, place.appUrl]
      const balancers = await Promise.all(urls.map(url => startBalancer(Number(new URL(url).port))))
      const fleet = new Fleet(place, balancers)
      const stop = new AbortController()
      try {
        assert(release)
        const old = checkOut(release, join(place.folder, 'old'))
        await fleet.start(old)
        await fleet.start(old)
        const loads = Array.from({ length: 3 }, () => new Load(place))
        const running = loads.map(load => load.run(stop.signal))
        for (const _ of [1, 2]) {
          await fleet.start()
          await fleet.stopOldest()
        }
        stop.abort()
        await Promise.all(running)
        assert.deepEqual(
          loads.flatMap(({ failures }) => failures),
          [],
        )
        for (const { counts } of loads)
          for (const [what, count] of Object.entries(counts)) assert(count > 2, `only ${count} of ${what}`)
      } finally {
        stop.abort()
        fleet.close()
        await upstream.close()
        place.remove()
      }
    })
  })
})
