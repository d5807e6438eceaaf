import { createHash } from 'node:crypto'
import { hashSync } from 'bcrypt'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import type { Insertable, Selectable } from 'kysely'
import { rsaPair } from '../../../test/support/rsa-pair.ts'
import type { Auditor } from '../../audit/index.ts'
import type { Settings } from '../../config/index.ts'
import type { Resource } from '../../fhir/index.ts'
import { createRandomToken, createSealer, type Schema, type Store } from '../../store/index.ts'
import type { Logger } from '../../web/http/index.ts'
import { initialize } from '../initialize.ts'
import { storeOrigins } from '../oauth/clients/origins.ts'
import type { AuthContext } from '../oauth/context.ts'
import { keepFirstSigningKey } from '../oauth/keys/signing-key.ts'
import { type AuthServerOptions, createAuthServer } from '../server.ts'
import { type AccessRules, makeRules } from '../users/validity/rule.ts'
import { testSettings } from './settings.ts'
import { TestBrowser } from './test-browser.ts'
import { createTestFhirServer, makeEncounter, patient, type TestFhirServer } from './test-fhir-server.ts'

const RESOURCES: readonly Resource[] = [
  patient('juniper', 'Juniper', 'Alba'),
  patient('ashlar', 'Ashlar', 'Tobias'),
  makeEncounter('enc-1', 'juniper', 'in-progress'),
  makeEncounter('enc-2', 'juniper', 'finished'),
  makeEncounter('enc-9', 'ashlar', 'in-progress'),
]

export interface TestAuthServerOptions {
  readonly settings?: Partial<Settings>
  readonly resources?: readonly Resource[]
  readonly logger?: Logger
  readonly audit?: Auditor
  readonly fetch?: typeof fetch
  readonly userFilter?: AuthContext['userFilter']
  readonly controls?: AuthContext['controls']
  readonly explainRequest?: AuthContext['explainRequest']
  readonly hasSampleRecords?: boolean
  readonly administration?: AuthServerOptions['administration']
  /** The cost of a password hash; by default one that a test can wait for. */
  readonly passwordCost?: number
}

const { privateKey } = rsaPair()
const QUICK_COST = 4
const QUICK_HASH = hashSync('sallyport', QUICK_COST)

/** An auth server with a clock that tests set, a FHIR server and clients. */
export class TestAuthServer {
  readonly app: FastifyInstance
  readonly store: Store
  readonly settings: Settings
  readonly fhir: TestFhirServer
  /** The server's clock, in milliseconds. */
  readonly time: { now: number }
  /** Changes the sign-in providers while the server runs. */
  readonly changeLogin: (login: Settings['login']) => void

  private constructor(
    app: FastifyInstance,
    store: Store,
    settings: Settings,
    fhir: TestFhirServer,
    time: { now: number },
    changeLogin: TestAuthServer['changeLogin'],
  ) {
    this.changeLogin = changeLogin
    this.app = app
    this.time = time
    this.store = store
    this.settings = settings
    this.fhir = fhir
  }

  static async open(store: Store, options: TestAuthServerOptions = {}): Promise<TestAuthServer> {
    const { lab = testSettings.lab } = options.settings ?? {}
    const settings = { ...testSettings, developerTools: lab, ...options.settings }
    const fhir = createTestFhirServer(settings.fhirBaseUrl, options.resources ?? RESOURCES)
    const keySealer = createSealer('test secret')
    const time = { now: Date.UTC(2026, 10, 13, 14, 0, 0) }
    const clock = () => time.now
    await keepFirstSigningKey(store, keySealer, privateKey, time.now)
    await initialize({ settings, store, sealer: keySealer, clock, passwordCost: QUICK_COST })
    const listeners: TestAuthServer['changeLogin'][] = []
    const app = await createAuthServer({
      onLoginChange: apply => listeners.push(apply),
      settings,
      store,
      sealer: keySealer,
      clock,
      fetch: options.fetch ?? fhir.fetch,
      passwordCost: options.passwordCost ?? QUICK_COST,
      ...(options.logger ? { logger: options.logger } : {}),
      ...(options.audit ? { audit: options.audit } : {}),
      ...(options.controls ? { controls: options.controls } : {}),
      userFilter: options.userFilter,
      explainRequest: options.explainRequest,
      hasSampleRecords: options.hasSampleRecords ?? true,
      ...(options.administration && { administration: options.administration }),
    })
    const changeLogin = (login: Settings['login']) => {
      for (const apply of listeners) apply(login)
    }
    return new TestAuthServer(app, store, settings, fhir, time, changeLogin)
  }

  /** What decides about access, without changes of the providers. */
  get rules(): AccessRules {
    return makeRules(this.settings, () => this.settings.login)
  }

  openBrowser(): TestBrowser {
    return new TestBrowser(this.app)
  }

  async logIn(username?: string): Promise<TestBrowser> {
    const browser = this.openBrowser()
    await browser.login(username)
    return browser
  }

  async addUser(username: string, more: Partial<Insertable<Schema['clinician']>> = {}): Promise<void> {
    await this.store.db
      .insertInto('clinician')
      .values({
        username,
        password_hash: QUICK_HASH,
        display_name: `Dr. ${username}`,
        fhir_user_id: `practitioner-of-${username}`,
        ...more,
      })
      .execute()
  }

  /** The stored account of a user. */
  findUser(username: string): Promise<Selectable<Schema['clinician']>> {
    return this.store.db
      .selectFrom('clinician')
      .selectAll()
      .where('username', '=', username)
      .executeTakeFirstOrThrow()
  }

  async addClient(client: Partial<Insertable<Schema['client']>> & { client_id: string }): Promise<void> {
    await this.store.db
      .insertInto('client')
      .values({
        name: client.client_id,
        description: null,
        logo_url: null,
        auth_method: 'none',
        secret_hash: null,
        jwks: null,
        jwks_url: null,
        redirect_uris: JSON.stringify([`https://${client.client_id}.example/callback`]),
        launch_url: `https://${client.client_id}.example/launch`,
        scope: 'launch openid fhirUser offline_access patient/*.rs',
        first_party: true,
        created_at: this.time.now,
        ...client,
      })
      .execute()
    await storeOrigins(this.store.db, client.client_id)
  }

  /** Launches from the portal and returns the launch token. */
  async launch(browser: TestBrowser, form: Readonly<Record<string, string>> = {}): Promise<string> {
    const response = await browser.post('/portal/launch', { patientId: 'juniper', ...form })
    const token = new URL(response.headers.location ?? 'http://none').searchParams.get('launch')
    if (token === null) throw new Error(`Cannot launch: ${response.statusCode}`)
    return token
  }

  /** Makes the parameters of a valid authorization request with the given changes; `undefined` removes one. */
  makeParameters(different: Readonly<Record<string, string | undefined>> = {}): Record<string, string> {
    const all: Record<string, string | undefined> = {
      response_type: 'code',
      client_id: 'sallyport-app',
      redirect_uri: `${this.settings.appUrl}/callback`,
      scope: this.settings.app.scope,
      state: 'state-1',
      nonce: 'nonce-1',
      aud: this.settings.fhirBaseUrl,
      code_challenge: computeChallenge(VERIFIER),
      code_challenge_method: 'S256',
      ...different,
    }
    return Object.fromEntries(
      Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== undefined),
    )
  }

  authorize(
    browser: TestBrowser,
    different: Readonly<Record<string, string | undefined>> = {},
  ): Promise<LightMyRequestResponse> {
    return browser.get(`/oauth2/authorize?${new URLSearchParams(this.makeParameters(different))}`)
  }

  /** Launches, authorizes and returns the code. */
  async getCode(
    browser: TestBrowser,
    different: Readonly<Record<string, string | undefined>> = {},
  ): Promise<string> {
    const launch = await this.launch(browser, different.client_id ? { clientId: different.client_id } : {})
    const response = readRedirect(await this.authorize(browser, { launch, ...different }))
    if (response.code === undefined) throw new Error(`No code: ${JSON.stringify(response)}`)
    return response.code
  }

  requestToken(
    form: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<LightMyRequestResponse> {
    return new TestBrowser(this.app).post('/oauth2/token', form, headers)
  }

  exchange(
    code: string,
    different: Readonly<Record<string, string>> = {},
    headers: Readonly<Record<string, string>> = {},
  ): Promise<LightMyRequestResponse> {
    const form = {
      grant_type: 'authorization_code',
      code,
      client_id: 'sallyport-app',
      redirect_uri: `${this.settings.appUrl}/callback`,
      code_verifier: VERIFIER,
      ...different,
    }
    return this.requestToken(form, headers)
  }

  refresh(token: string, different: Readonly<Record<string, string>> = {}): Promise<LightMyRequestResponse> {
    return this.requestToken({
      grant_type: 'refresh_token',
      refresh_token: token,
      client_id: 'sallyport-app',
      ...different,
    })
  }
}

export const VERIFIER = 'verifier-that-is-43-characters-long-or-more'

export function computeChallenge(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}

/** Returns the parameters of the redirect to a client. */
export function readRedirect(response: LightMyRequestResponse): Record<string, string> {
  const location = response.headers.location
  if (location === undefined) throw new Error(`Not a redirect: ${response.statusCode}`)
  return Object.fromEntries(new URL(location, 'http://localhost:9000').searchParams)
}

/** Returns the claims of a token without verifying it. */
export function decodeClaims(token: unknown): Record<string, unknown> {
  return JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString())
}

/** A token of the right form that was never issued. */
export const unknownToken = createRandomToken()
