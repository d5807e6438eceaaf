import { type KeyObject, randomUUID, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Provider } from 'oidc-provider'
import { type Claims, decodeJwt } from '../../src/jwt/index.ts'
import { freePorts } from './free-ports.ts'
import { rsaPair } from './rsa-pair.ts'

/** The claims of a user, beside `sub`. */
export type HospitalUsers = Readonly<Record<string, Claims>>

/** Changes a token response of the provider before it is sent. */
export type Tamper = (idToken: string, sign: (claims: Claims, kid?: string) => string) => string

export interface HospitalOptions {
  readonly users: HospitalUsers
  readonly callbacks?: readonly string[]
  readonly loggedOut?: string
  /** The public keys of the client that authenticates by `private_key_jwt`. */
  readonly clientKeys?: readonly object[]
}

export const KEY_CLIENT_ID = 'sallyport-with-keys'
export const HOSPITAL_CLIENT = { id: 'sallyport', secret: 'a secret of the hospital' } as const

/** `oidc-provider` as the identity provider of a hospital, in this process. It signs the named user in without a page. */
export class Hospital {
  readonly issuer: string
  readonly logoutTokens: string[] = []
  /** Requests that it received, by path. */
  readonly requests: string[] = []
  users: HospitalUsers
  tamper: Tamper | undefined
  /** Replaces members of the discovery document. */
  metadata: Readonly<Record<string, unknown>> = {}
  /** The ids of the published keys. The first is the provider's own. */
  publishedKeys: readonly string[] = ['key-1']
  outage = false
  /** The user whom it signs in; empty: nobody. */
  user = ''
  #provider: Provider
  readonly #server = createServer((request, response) => this.#answer(request, response))

  private constructor(issuer: string, options: HospitalOptions) {
    this.issuer = issuer
    this.users = options.users
    this.#provider = new Provider(issuer, this.#configure(options))
    this.#provider.on('server_error', () => undefined)
  }

  static async start(options: HospitalOptions): Promise<Hospital> {
    const [port = 0] = await freePorts(1)
    const hospital = new Hospital(`http://localhost:${port}`, options)
    hospital.#server.listen(port, '127.0.0.1')
    await once(hospital.#server, 'listening')
    return hospital
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  /** Follows an authorization request as this user, and returns the URL of the callback. */
  async authorize(url: string, user: string, jar = new Map<string, string>()): Promise<string> {
    this.user = user
    return this.follow(url, jar)
  }

  /** Follows redirects within the provider, and returns the first URL outside of it. */
  async follow(url: string, jar: Map<string, string>, form?: URLSearchParams): Promise<string> {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie },
      ...(form && { method: 'POST', body: form }),
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      jar.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) return this.#followForm(await response.text(), jar, response.status)
    const next = new URL(location, url).href
    return next.startsWith(`${this.issuer}/`) ? this.follow(next, jar) : next
  }

  /** Submits the form of the provider's logout page. */
  #followForm(page: string, jar: Map<string, string>, status: number): Promise<string> {
    const action = /action="([^"]+)"/.exec(page)?.[1]
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(page)?.[1]
    if (action === undefined || xsrf === undefined)
      throw new Error(`No redirect: ${status} ${page.slice(0, 500)}`)
    return this.follow(new URL(action, this.issuer).href, jar, new URLSearchParams({ xsrf, logout: 'yes' }))
  }

  sign(claims: Claims, kid = 'key-1', typ = 'JWT'): string {
    return signRs256({ alg: 'RS256', typ, kid }, claims, keyPair(kid).privateKey)
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? ''
    this.requests.push(path.replace(/[?].*/, ''))
    if (this.outage) return void response.writeHead(503).end()
    if (path.startsWith('/jwks') && this.publishedKeys.join() !== 'key-1')
      return void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ keys: this.publishedKeys.map(publicJwk) }))
    if (path.startsWith('/interaction/')) return this.#signIn(request, response)
    const { tamper } = this
    if (path.startsWith('/token') && tamper)
      this.#rewrite(response, json => ({
        ...json,
        id_token: tamper(String(json.id_token), (claims, kid) => this.sign(claims, kid)),
      }))
    if (path.startsWith('/.well-known/')) this.#rewrite(response, json => ({ ...json, ...this.metadata }))
    this.#provider.callback()(request, response)
  }

  async #signIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { params } = await this.#provider.interactionDetails(request, response)
    const acr = String(params.acr_values ?? 'urn:pwd').split(' ')[0]
    const login = { accountId: this.user, acr, amr: ['pwd'], remember: true }
    await this.#provider.interactionFinished(
      request,
      response,
      this.user === '' ? { error: 'access_denied' } : { login },
    )
  }

  /** Changes the JSON of a response before it is sent. */
  #rewrite(response: ServerResponse, change: (json: Record<string, unknown>) => unknown): void {
    const end = response.end.bind(response)
    response.end = ((body: unknown) => {
      const changed = JSON.stringify(change(JSON.parse(String(body))))
      response.setHeader('content-length', Buffer.byteLength(changed))
      return end(changed)
    }) as typeof response.end
  }

  #configure({
    callbacks = ['http://localhost:9000/login/callback'],
    loggedOut,
    clientKeys,
  }: HospitalOptions) {
    return {
      jwks: { keys: [{ ...keyPair('key-1').privateKey.export({ format: 'jwk' }), ...KEY, kid: 'key-1' }] },
      clients: [
        {
          client_id: HOSPITAL_CLIENT.id,
          client_secret: HOSPITAL_CLIENT.secret,
          redirect_uris: callbacks,
          post_logout_redirect_uris: [loggedOut ?? 'http://localhost:9000/login/logged-out'],
          backchannel_logout_uri: 'http://localhost:9000/login/backchannel-logout',
          backchannel_logout_session_required: true,
        },
        ...(clientKeys
          ? [
              {
                client_id: KEY_CLIENT_ID,
                redirect_uris: callbacks,
                jwks: { keys: clientKeys },
                token_endpoint_auth_method: 'private_key_jwt',
              },
            ]
          : []),
      ],
      clientDefaults: { id_token_signed_response_alg: 'RS256' },
      pkce: { required: () => true },
      cookies: { keys: [randomUUID()] },
      claims: {
        openid: ['sub', 'amr', 'acr', 'auth_time'],
        profile: ['name', 'preferred_username', 'fhirUser', 'employee_number', 'groups'],
      },
      acrValues: ['urn:pwd', 'urn:mfa'],
      conformIdTokenClaims: false,
      findAccount: (_context: unknown, id: string) => ({
        accountId: id,
        claims: async () => ({ ...this.users[id], sub: id }),
      }),
      interactions: { url: (_context: unknown, { uid }: { readonly uid: string }) => `/interaction/${uid}` },
      // Every user has consented.
      loadExistingGrant: async (context: {
        readonly oidc: {
          readonly client: { readonly clientId: string }
          readonly session: { readonly accountId: string }
        }
      }) => {
        const { client, session } = context.oidc
        const grant = new this.#provider.Grant({ clientId: client.clientId, accountId: session.accountId })
        grant.addOIDCScope('openid profile')
        await grant.save()
        return grant
      },
      fetch: async (_url: unknown, { body }: { readonly body: unknown }) => {
        this.logoutTokens.push(new URLSearchParams(String(body)).get('logout_token') ?? '')
        return new Response(null, { status: 200 })
      },
      features: {
        devInteractions: { enabled: false },
        backchannelLogout: { enabled: true },
        rpInitiatedLogout: { enabled: true },
      },
      ttl: {
        AccessToken: 300,
        AuthorizationCode: 60,
        Grant: 3600,
        IdToken: 300,
        Interaction: 600,
        Session: 3600,
      },
    }
  }
}

const KEY = { use: 'sig', alg: 'RS256' } as const

/** `key-1` is the first pair, `key-2` the second. */
function keyPair(kid: string) {
  return rsaPair(kid === 'key-1' ? 1 : 2)
}

function publicJwk(kid: string) {
  return { ...keyPair(kid).publicKey.export({ format: 'jwk' }), ...KEY, kid }
}

/** Signs a token with any header. */
export function signRs256(header: object, claims: Claims, key: KeyObject): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const input = `${encode(header)}.${encode(claims)}`
  return `${input}.${sign('sha256', Buffer.from(input), key).toString('base64url')}`
}

/** Changes claims of a token, which the provider signs again. */
export function change(claims: Claims): Tamper {
  return (idToken, sign) => sign({ ...decodeJwt(idToken)?.claims, ...claims })
}
