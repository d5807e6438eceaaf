import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { SigningClient } from '../../src/auth/testing/signing-client.ts'
import { startUpstream } from '../../src/backends/upstream/testing/start-gateway.ts'
import type { Cost, Measurement } from './cost-probe.ts'
import { json, send } from './hostile-client.ts'
import { HttpUser } from './http-user.ts'
import { type OtherIssuer, startOtherIssuer } from './other-issuer.ts'
import { newPlace, type Place, PROCESS_ENV } from './started.ts'

const ROOT = resolve(import.meta.dirname, '../..')

const granular = (count: number, query: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => `patient/Observation.rs?${query(at)}`).join(' ')

/** Public clients with as many granular scopes as a client may have. */
export const APPS = {
  'by-category': {
    redirectUri: 'https://app.example/by-category',
    scope: `launch launch/patient openid offline_access ${granular(96, at => `category=c${at}`)}`,
  },
  'by-pair': {
    redirectUri: 'https://app.example/by-pair',
    scope: `launch launch/patient openid offline_access ${granular(25, at => `category=c${at}&code=d${at}`)}`,
  },
} as const

export type AppId = keyof typeof APPS

export interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** The client closes the connection after this time: the server in front of a slow upstream mostly waits. */
  readonly leavesAfterMs?: number
}

export interface Received {
  /** 0 if the client left before. */
  readonly status: number
  readonly location: string
  readonly text: string
}

export interface Measured extends Received {
  readonly cost: Cost
}

/** The servers of `sallyport start` in a separate process, which reports the cost of a request. */
export interface MeasuredServers extends Place {
  /** Sends one request and waits for its response. */
  measure(measurement: Measurement, url: string, sent?: Sent): Promise<Measured>
  /** The headers of a back end that may do everything. */
  readonly backEnd: { readonly authorization: string }
  /** A clinician who has signed in. */
  readonly user: HttpUser
  /** An issuer that the FHIR server trusts. */
  readonly otherIssuer: OtherIssuer
  /** The file of the FHIR data, and the base URL of the server that stores them. */
  readonly fhirFile: string
  readonly storedBaseUrl: string
  end(): Promise<void>
}

export async function startMeasuredServers(
  env: Readonly<Record<string, string>> = {},
): Promise<MeasuredServers> {
  const place = await newPlace(env)
  const otherIssuer = await startOtherIssuer(place.folder)
  const probe = join(ROOT, 'test/support/cost-probe.ts')
  const child = spawn(
    process.execPath,
    ['--expose-gc', '--import', probe, join(ROOT, 'src/cli/main.ts'), 'start'],
    {
      cwd: place.folder,
      env: {
        ...PROCESS_ENV,
        HOME: place.folder,
        ...place.env,
        SMART_TRUSTED_ISSUERS_FILE: otherIssuer.file,
      },
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    },
  )
  await waitUntilRunning(child)
  const user = new HttpUser({
    settings: { issuerUrl: place.authUrl, appUrl: place.appUrl },
    user: { username: 'clinician', password: 'sallyport', name: 'Dr. Robin Ahmadi' },
  })
  await user.signIn()
  const backEnd = await startBackEnd(place)
  return {
    ...place,
    user,
    otherIssuer,
    fhirFile: join(place.folder, 'data/fhir.db'),
    storedBaseUrl: place.fhirUrl,
    get backEnd() {
      return { authorization: backEnd.authorization }
    },
    measure: (measurement, url, sent) => measure(child, measurement, url, sent),
    async end() {
      backEnd.end()
      const ended = once(child, 'exit')
      child.kill()
      await ended
      otherIssuer.end()
      place.remove()
    },
  }
}

/** Starts servers with the gateway in the place of the embedded FHIR server. */
export async function startMeasuredGateway(
  env: Readonly<Record<string, string>> = {},
): Promise<MeasuredServers> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-upstream-'))
  const fhirFile = join(folder, 'fhir.db')
  const upstream = await startUpstream(fhirFile)
  const servers = await startMeasuredServers({ ...env, SMART_FHIR_UPSTREAM_URL: upstream.url })
  return {
    ...servers,
    fhirFile,
    storedBaseUrl: upstream.url,
    get backEnd() {
      return servers.backEnd
    },
    async end() {
      await servers.end()
      await upstream.end()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function waitUntilRunning(child: ChildProcess): Promise<void> {
  let printed = ''
  for await (const chunk of child.stdout?.setEncoding('utf8') ?? []) {
    printed += chunk
    if (/is running/.test(printed)) break
  }
}

async function measure(
  child: ChildProcess,
  measurement: Measurement,
  url: string,
  sent: Sent = {},
): Promise<Measured> {
  await ask(child, measurement)
  const received = await exchange(url, sent)
  return { ...received, cost: (await ask(child, 'end')) as Cost }
}

async function ask(child: ChildProcess, message: Measurement | 'end'): Promise<unknown> {
  const answered = once(child, 'message')
  child.send(message)
  return (await answered)[0]
}

/** Unlike `fetch`, this sends long URLs and bad paths as they are. */
function exchange(url: string, { method = 'GET', headers, body, leavesAfterMs }: Sent): Promise<Received> {
  const { promise, resolve: done, reject } = Promise.withResolvers<Received>()
  const { origin } = new URL(url)
  const sending = request(origin, { path: url.slice(origin.length), method, headers }, response => {
    const chunks: Buffer[] = []
    response.on('data', chunk => chunks.push(chunk))
    response.on('end', () =>
      done({
        status: response.statusCode ?? 0,
        location: response.headers.location ?? '',
        text: Buffer.concat(chunks).toString(),
      }),
    )
    response.on('error', reject)
  })
  const leave = () => {
    done({ status: 0, location: '', text: '' })
    sending.destroy()
  }
  const timer = leavesAfterMs === undefined ? undefined : setTimeout(leave, leavesAfterMs)
  sending.on('error', reject)
  sending.end(body)
  return promise.finally(() => clearTimeout(timer))
}

async function startBackEnd(place: Place): Promise<{ readonly authorization: string; end(): void }> {
  const { authUrl } = place
  const time = {
    get now() {
      return Date.now()
    },
  }
  const metadata = {
    token_endpoint_auth_method: 'private_key_jwt',
    grant_types: ['client_credentials'],
    scope: 'system/*.cruds',
    jwks: { keys: [new SigningClient('', time).jwk] },
  }
  const registered = await send(`${authUrl}/oauth2/register`, json(metadata))
  const client = new SigningClient(String(JSON.parse(registered.body).client_id), time)
  const requestToken = async () => {
    const form = {
      grant_type: 'client_credentials',
      scope: 'system/*.cruds',
      ...client.makeProof({ aud: `${authUrl}/oauth2/token` }),
    }
    const issued = await send(`${authUrl}/oauth2/token`, { method: 'POST', body: new URLSearchParams(form) })
    return `Bearer ${JSON.parse(issued.body).access_token}`
  }
  let authorization = await requestToken()
  // A token of a backend service lives 300 s, less than these tests on a busy machine.
  const timer = setInterval(async () => {
    authorization = await requestToken()
  }, 120_000).unref()
  return {
    get authorization() {
      return authorization
    },
    end: () => clearInterval(timer),
  }
}

/** The authorization request of an app for a patient, up to where the clinician is asked for consent. */
export async function askConsent(servers: MeasuredServers, appId: AppId, patientId: string): Promise<string> {
  const parameters = { ...(await authorization(servers, appId, patientId)), prompt: 'consent' }
  const sent = await servers.user.request(
    `${servers.authUrl}/oauth2/authorize?${new URLSearchParams(parameters)}`,
  )
  return new URL(sent.headers.get('location') ?? '', servers.authUrl).href
}

/** The headers of an app with a token for a patient, limited by each of its scopes. */
export async function limitedCaller(
  servers: MeasuredServers,
  appId: AppId,
  patientId: string,
): Promise<{ readonly authorization: string }> {
  const parameters = new URLSearchParams(await authorization(servers, appId, patientId))
  const sent = await servers.user.request(`${servers.authUrl}/oauth2/authorize?${parameters}`)
  const code = new URL(sent.headers.get('location') ?? '').searchParams.get('code') ?? ''
  const form = {
    grant_type: 'authorization_code',
    code,
    code_verifier: VERIFIER,
    client_id: appId,
    redirect_uri: APPS[appId].redirectUri,
  }
  const issued = await send(`${servers.authUrl}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  })
  return { authorization: `Bearer ${JSON.parse(issued.body).access_token}` }
}

const VERIFIER = 'a-verifier-of-43-characters-or-more-than-that'

async function authorization({ authUrl, fhirUrl, user }: MeasuredServers, appId: AppId, patientId: string) {
  const launched = await user.request(`${authUrl}/portal/launch`, {
    method: 'POST',
    body: new URLSearchParams({ patientId, clientId: appId }),
  })
  const launch = new URL(launched.headers.get('location') ?? '').searchParams.get('launch') ?? ''
  const { redirectUri, scope } = APPS[appId]
  return {
    client_id: appId,
    redirect_uri: redirectUri,
    scope,
    aud: fhirUrl,
    launch,
    response_type: 'code',
    state: 'x',
    code_challenge_method: 'S256',
    code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
  }
}
