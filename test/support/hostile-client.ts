import { createHash } from 'node:crypto'
import { SigningClient } from '../../src/auth/testing/signing-client.ts'
import { HttpUser } from './http-user.ts'
import type { Stack } from './stack.ts'

export type Form = Readonly<Record<string, string>>

export const VERIFIER = 'verifier-of-the-victim-with-43-characters-or-more'
export const CALLBACK = 'https://victim.example/callback'
const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url')
export const CHALLENGE = challengeOf(VERIFIER)

/** The parts of a response that show whether an attack succeeded. */
export interface Answer {
  readonly status: number
  readonly error: string | undefined
  readonly location: string | undefined
  readonly code: string | undefined
  readonly body: string
  readonly headers: Headers
}

/**
 * A malicious client: it knows the protocol, has registered its own apps and a backend service, and a
 * clinician in front of its browser. Everything goes over HTTP.
 */
export class HostileClient {
  readonly stack: Stack
  readonly user: HttpUser
  /** Its back end, which signs. */
  readonly backEnd: SigningClient
  /** The ids of a victim's app, of its own app, and of one with a secret. */
  readonly apps: Readonly<Record<'victim' | 'own' | 'secret', string>>

  private constructor(stack: Stack, apps: HostileClient['apps'], backEnd: SigningClient) {
    this.stack = stack
    this.apps = apps
    this.backEnd = backEnd
    this.user = new HttpUser(stack)
  }

  static async register(stack: Stack): Promise<HostileClient> {
    const time = {
      get now() {
        return Date.now()
      },
    }
    const add = async (metadata: Record<string, unknown>) => {
      const { client_id: id } = JSON.parse(
        (await send(`${stack.settings.issuerUrl}/oauth2/register`, json(metadata))).body,
      )
      return String(id)
    }
    const app = (redirect: string, method = 'none') =>
      add({
        redirect_uris: [redirect],
        token_endpoint_auth_method: method,
        initiate_login_uri: `${new URL(redirect).origin}/launch`,
        scope: 'launch openid fhirUser offline_access patient/*.rs',
      })
    const apps = {
      victim: await app(CALLBACK),
      own: await app('https://evil.example/callback'),
      secret: await app('https://secret.example/callback', 'client_secret_basic'),
    }
    const backEnd = await add({
      token_endpoint_auth_method: 'private_key_jwt',
      grant_types: ['client_credentials'],
      scope: 'system/Patient.rs',
      jwks: { keys: [new SigningClient('', time).jwk] },
    })
    // What is tried here is not the consent page.
    await stack.store.db.updateTable('client').set({ first_party: true, approved: true }).execute()
    const client = new HostileClient(stack, apps, new SigningClient(backEnd, time))
    await client.user.signIn()
    return client
  }

  at(path: string): string {
    return this.stack.settings.issuerUrl + path
  }

  post(path: string, form: Form | string, headers: Form = {}): Promise<Answer> {
    return send(this.at(path), { method: 'POST', body: new URLSearchParams(form), headers })
  }

  /** The victim's authorization request, with what is different; the clinician is logged in. */
  async authorize(different: Readonly<Record<string, string | undefined>> = {}, extra = ''): Promise<Answer> {
    const all: Record<string, string | undefined> = {
      response_type: 'code',
      client_id: this.apps.victim,
      redirect_uri: CALLBACK,
      state: 'xyz',
      scope: 'openid offline_access',
      aud: this.stack.settings.fhirBaseUrl,
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
      ...different,
    }
    const given = Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== undefined)
    const url = `${this.at('/oauth2/authorize')}?${new URLSearchParams(given)}${extra}`
    return answerOf(await this.user.request(url))
  }

  async launch(clientId = this.apps.victim, more: Form = {}): Promise<string> {
    const body = new URLSearchParams({ patientId: 'patient-1', clientId, ...more })
    const { location = '' } = answer(
      await this.user.request(this.at('/portal/launch'), { method: 'POST', body }),
      '',
    )
    return new URL(location).searchParams.get('launch') ?? ''
  }

  async code(different: Readonly<Record<string, string | undefined>> = {}): Promise<string> {
    return (await this.authorize(different)).code ?? ''
  }

  exchange(code: string, different: Form = {}, headers: Form = {}): Promise<Answer> {
    const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: VERIFIER }
    return this.post('/oauth2/token', { ...form, client_id: this.apps.victim, ...different }, headers)
  }

  /** The victim's tokens, as a launch gives them. */
  async stolen(more: Form = {}): Promise<Record<'access_token' | 'id_token' | 'refresh_token', string>> {
    const scope = 'launch openid fhirUser offline_access patient/*.rs'
    const launch = await this.launch(this.apps.victim, more)
    const bought = await this.exchange(await this.code({ scope, launch }))
    return JSON.parse(bought.body)
  }

  /** A back end's token, with what is to be wrong with its assertion. */
  clientCredentials(
    claims: Record<string, unknown> = {},
    header: Record<string, unknown> = {},
    form: Form = {},
  ): Promise<Answer> {
    const proof = this.backEnd.makeProof({ aud: this.at('/oauth2/token'), ...claims }, header)
    return this.post('/oauth2/token', {
      grant_type: 'client_credentials',
      scope: 'system/Patient.rs',
      ...proof,
      ...form,
    })
  }
}

export async function send(url: string, init: RequestInit = {}): Promise<Answer> {
  return answerOf(await fetch(url, { redirect: 'manual', ...init }))
}

export function json(body: unknown): RequestInit {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

async function answerOf(response: Response): Promise<Answer> {
  return answer(response, await response.text())
}

function answer(response: Response, body: string): Answer {
  const location = response.headers.get('location') ?? undefined
  const query = URL.parse(location ?? '')?.searchParams
  return {
    status: response.status,
    headers: response.headers,
    location,
    body,
    error: query?.get('error') ?? errorIn(body),
    code: query?.get('code') ?? undefined,
  }
}

function errorIn(body: string): string | undefined {
  return body.startsWith('{') ? JSON.parse(body).error : undefined
}
