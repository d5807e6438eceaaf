/** `sallyport start` in processes of its own, and its requests. */
import { SigningClient } from '../../src/auth/testing/signing-client.ts'
import { VERIFIER } from '../../src/auth/testing/test-auth-server.ts'
import { openStore, type Store } from '../../src/store/index.ts'
import { newPlace, type Place, type Started, startProcess } from '../../test/support/started.ts'
import type { Form } from '../auth/grants.ts'
import { createCodes } from '../auth/own.ts'
import { formatForm, formatRequest } from './load.ts'

export interface Stack {
  readonly workers: number
  readonly place: Place
  readonly started: Started
  readonly store: Store
  readonly patient: string
}

interface StackOptions {
  readonly upstreamUrl?: string | undefined
  /** SQLite without one. */
  readonly databaseUrl?: string | undefined
}

export async function startStack(
  workers: number,
  { upstreamUrl, databaseUrl }: StackOptions = {},
): Promise<Stack> {
  const place = await newPlace({
    SMART_WORKERS: String(workers),
    SMART_APP_AUTH_METHOD: 'none',
    SMART_LOG_LEVEL: 'error',
    ...(upstreamUrl !== undefined && { SMART_FHIR_UPSTREAM_URL: upstreamUrl }),
    ...(databaseUrl !== undefined && { SMART_DATABASE_URL: databaseUrl }),
  })
  const started = startProcess(['start'], place)
  await started.printed(/is running/)
  const store = await openStore(databaseUrl ?? `sqlite:${place.env.SMART_DATA_DIR}/sallyport.db`)
  const patient = upstreamUrl === undefined ? 'patient-1' : 'p'
  return { workers, place, started, store, patient }
}

export async function stopStack({ started, store, place }: Stack): Promise<void> {
  await store.close()
  started.child.kill('SIGTERM')
  await started.ended()
  place.remove()
}

export interface Requests {
  readonly url: URL
  readonly texts: readonly string[]
}

/** Different tokens of reads. */
const TOKENS = 64

export async function makeReads(stack: Stack, count: number): Promise<Requests> {
  const url = new URL(stack.place.fhirUrl)
  const text = async (code: string) => {
    const { access_token: token } = await exchange(stack, codeForm(stack, code))
    const headers = { host: url.host, authorization: `Bearer ${token}` }
    return formatRequest(`GET ${url.pathname}/Patient/${stack.patient}`, headers)
  }
  const known = await Promise.all((await makeCodes(stack, TOKENS)).map(text))
  return { url, texts: Array.from({ length: count }, (_, at) => known[at % known.length] ?? '') }
}

export async function makeCodeRequests(stack: Stack, count: number): Promise<Requests> {
  return makePosts(
    stack,
    (await makeCodes(stack, count)).map(code => codeForm(stack, code)),
  )
}

export async function makeRefreshRequests(stack: Stack, count: number): Promise<Requests> {
  const forms = []
  for (const code of await makeCodes(stack, count)) {
    const { refresh_token: token = '' } = await exchange(stack, codeForm(stack, code))
    forms.push({ grant_type: 'refresh_token', refresh_token: token, client_id: 'sallyport-app' })
  }
  return makePosts(stack, forms)
}

/** The clock of signing clients. */
export const realTime = {
  get now() {
    return Date.now()
  },
}

const backends = new Map<Stack, Promise<SigningClient>>()

export async function makeBackendRequests(stack: Stack, count: number): Promise<Requests> {
  const made = backends.get(stack) ?? registerBackend(stack)
  backends.set(stack, made)
  const client = await made
  const aud = `${stack.place.authUrl}/oauth2/token`
  return makePosts(
    stack,
    Array.from({ length: count }, () => ({
      grant_type: 'client_credentials',
      scope: 'system/Patient.rs',
      ...client.makeProof({ aud, iss: client.id, sub: client.id }),
    })),
  )
}

async function registerBackend({ place }: Stack): Promise<SigningClient> {
  const { jwks } = new SigningClient('', realTime, 'RS384')
  const response = await fetch(`${place.authUrl}/oauth2/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'Bench',
      grant_types: ['client_credentials'],
      scope: 'system/*.rs',
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: JSON.parse(jwks),
    }),
  })
  const { client_id: id } = (await response.json()) as { client_id: string }
  return new SigningClient(id, realTime, 'RS384')
}

function makeCodes({ store, place, patient }: Stack, count: number): Promise<readonly string[]> {
  const redirectUri = `${place.appUrl}/callback`
  return createCodes({ store, time: realTime }, count, { patient, redirectUri })
}

function codeForm({ place }: Stack, code: string) {
  return {
    grant_type: 'authorization_code',
    code,
    client_id: 'sallyport-app',
    redirect_uri: `${place.appUrl}/callback`,
    code_verifier: VERIFIER,
  }
}

async function exchange({ place }: Stack, form: Form): Promise<Record<string, string>> {
  const body = new URLSearchParams(form)
  const response = await fetch(`${place.authUrl}/oauth2/token`, { method: 'POST', body })
  if (response.status !== 200) throw new Error(`Cannot bench: ${await response.text()}`)
  return (await response.json()) as Record<string, string>
}

function makePosts({ place }: Stack, forms: readonly Form[]): Requests {
  const url = new URL(`${place.authUrl}/oauth2/token`)
  return { url, texts: forms.map(form => formatForm(url, form)) }
}
