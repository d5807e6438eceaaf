import { createHash, randomUUID } from 'node:crypto'
import formbody from '@fastify/formbody'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { exportJWK, type JWTPayload, SignJWT } from 'jose'
import { rsaPair } from './rsa-pair.ts'

type Fields = Record<string, unknown>

/** What the EHR does differently from a good one. All of it may be changed while it runs. */
export interface Script {
  /** Members of the token response, put over the good ones; `undefined` takes a member out. */
  token: Fields
  /** Claims of the id_token, put over the good ones. */
  claims: JWTPayload
  /** `other`: a key that is not in the key set; `none`: unsigned. */
  signature: 'good' | 'other' | 'none'
  /** The `kid` of the key set and of the id_token. */
  kid: string
  /** Parameters of the redirect back, put over the good ones. */
  callback: Record<string, string | undefined>
  /** Answers in place of the token endpoint. */
  tokenEndpoint: ((form: Fields, reply: FastifyReply) => unknown) | undefined
  /** Answers in place of a FHIR request whose token is good. */
  fhir: ((url: URL, reply: FastifyReply) => unknown) | undefined
  /** Fields of `.well-known/smart-configuration`, put over the good ones. */
  configuration: Fields
  /** Fields of `.well-known/openid-configuration`, put over the good ones. */
  openid: Fields
}

function goodScript(): Script {
  return {
    token: {},
    claims: {},
    signature: 'good',
    kid: 'one',
    callback: {},
    configuration: {},
    openid: {},
    tokenEndpoint: undefined,
    fhir: undefined,
  }
}

export interface SeenRequest {
  readonly path: string
  readonly authorization: string | undefined
}

/**
 * A small real EHR: an issuer (jose) and a FHIR server on one port. It keeps OAuth's rules (PKCE, codes and refresh
 * tokens once), so that faults of a client are found; and a test can make it misbehave.
 */
export interface ScriptedEhr {
  readonly issuer: string
  readonly fhirBaseUrl: string
  readonly script: Script
  readonly seen: SeenRequest[]
  /** Forms that the token endpoint received. */
  readonly tokenForms: Fields[]
  /** Tokens that were revoked. */
  readonly revoked: string[]
  /** The records of the FHIR server. */
  readonly records: Fields[]
  /** Every access and refresh token that was ever issued. */
  readonly issued: string[]
  /** It behaves again, and forgets what it has seen. */
  reset(): void
  /** Access tokens issued so far stop working. */
  expireAccessTokens(): void
  close(): Promise<void>
}

interface Code {
  readonly challenge: string
  readonly nonce: string | undefined
  readonly scope: string
  readonly redirectUri: string
}

function keysOf(which: 'good' | 'other'): ReturnType<typeof rsaPair> {
  return rsaPair(which === 'good' ? 0 : 1)
}

export async function startScriptedEhr(): Promise<ScriptedEhr> {
  const app = fastify({ forceCloseConnections: true })
  await app.register(formbody)
  const script: Script = goodScript()
  const [seen, tokenForms, revoked, records, issued]: [
    SeenRequest[],
    Fields[],
    string[],
    Fields[],
    string[],
  ] = [[], [], [], [], []]
  const codes = new Map<string, Code>()
  const refreshTokens = new Map<string, string>()
  const accessTokens = new Set<string>()
  let issuer = ''

  app.addHook('onRequest', async request => {
    seen.push({ path: request.url, authorization: request.headers.authorization })
  })

  app.get('/fhir/.well-known/smart-configuration', async () => ({
    issuer,
    jwks_uri: `${issuer}/jwks`,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    revocation_endpoint: `${issuer}/revoke`,
    capabilities: ['launch-ehr', 'permission-v2', 'sso-openid-connect'],
    authorization_response_iss_parameter_supported: true,
    ...script.configuration,
  }))

  app.get('/.well-known/openid-configuration', async () => ({
    issuer,
    userinfo_endpoint: `${issuer}/userinfo`,
    ...script.openid,
  }))

  app.get('/userinfo', async (request, reply) =>
    accessTokens.has(readBearer(request)) ? { sub: 'clinician-1' } : reply.code(401).send({}),
  )

  app.get('/jwks', async () => ({
    keys: [{ ...(await exportJWK(keysOf('good').publicKey)), kid: script.kid, alg: 'RS256', use: 'sig' }],
  }))

  app.get<{ Querystring: Record<string, string> }>('/authorize', async (request, reply) => {
    const { redirect_uri = '', code_challenge = '', nonce, scope = '', state } = request.query
    const code = randomUUID()
    codes.set(code, { challenge: code_challenge, nonce, scope, redirectUri: redirect_uri })
    const back = new URL(redirect_uri)
    for (const [name, value] of Object.entries({ code, state, iss: issuer, ...script.callback }))
      if (value !== undefined) back.searchParams.set(name, value)
    return reply.redirect(back.href)
  })

  app.post<{ Body: Record<string, string> }>('/token', async (request, reply) => {
    tokenForms.push(request.body)
    if (script.tokenEndpoint) return script.tokenEndpoint(request.body, reply)
    const granted =
      request.body.grant_type === 'refresh_token' ? takeRefresh(request.body) : takeCode(request.body)
    if (!granted) return reply.code(400).send({ error: 'invalid_grant' })
    return tokenResponse(granted)
  })

  function takeCode(form: Record<string, string>): { scope: string; nonce: string | undefined } | undefined {
    const code = codes.get(form.code ?? '')
    codes.delete(form.code ?? '')
    const challenge = createHash('sha256')
      .update(form.code_verifier ?? '')
      .digest('base64url')
    return code && code.challenge === challenge && code.redirectUri === form.redirect_uri ? code : undefined
  }

  function takeRefresh(form: Record<string, string>): { scope: string; nonce: undefined } | undefined {
    const scope = refreshTokens.get(form.refresh_token ?? '')
    refreshTokens.delete(form.refresh_token ?? '')
    return scope === undefined ? undefined : { scope, nonce: undefined }
  }

  async function tokenResponse({ scope, nonce }: { scope: string; nonce: string | undefined }) {
    const [access, refresh] = [`access-${randomUUID()}`, `refresh-${randomUUID()}`]
    accessTokens.add(access)
    const response: Fields = {
      access_token: access,
      token_type: 'Bearer',
      expires_in: 300,
      refresh_token: refresh,
      scope,
      patient: 'juniper',
      encounter: 'visit-1',
      need_patient_banner: true,
      ...(nonce === undefined ? {} : { id_token: await idToken(nonce) }),
      ...script.token,
    }
    issued.push(access, refresh)
    if (response.refresh_token === refresh) refreshTokens.set(refresh, String(response.scope ?? scope))
    return response
  }

  async function idToken(nonce: string): Promise<string> {
    const now = Math.floor(Date.now() / 1000)
    const claims: JWTPayload = {
      iss: issuer,
      aud: 'sallyport-app',
      sub: 'clinician-1',
      iat: now,
      exp: now + 300,
      nonce,
      fhirUser: `${issuer}/fhir/Practitioner/prac-1`,
      name: 'Dr. Robin Ahmadi',
      ...script.claims,
    }
    if (script.signature === 'none') {
      const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
      return `${part({ alg: 'none' })}.${part(claims)}.`
    }
    const { privateKey } = keysOf(script.signature)
    return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: script.kid }).sign(privateKey)
  }

  app.post<{ Body: Record<string, string> }>('/revoke', async (request, reply) => {
    const { token = '' } = request.body
    revoked.push(token)
    refreshTokens.delete(token)
    accessTokens.delete(token)
    return reply.code(200).send()
  })

  app.get('/fhir/*', async (request, reply) => {
    if (!accessTokens.has(readBearer(request)))
      return reply.code(401).send({ resourceType: 'OperationOutcome', issue: [] })
    const url = new URL(request.url, issuer)
    if (script.fhir) return script.fhir(url, reply)
    const [, , type, id] = url.pathname.split('/')
    const ofType = records.filter(({ resourceType }) => resourceType === type)
    if (id === undefined) return bundle(ofType)
    return (
      ofType.find(record => record.id === id) ??
      reply.code(404).send({ resourceType: 'OperationOutcome', issue: [] })
    )
  })

  issuer = await app.listen({ port: 0, host: '127.0.0.1' })
  return {
    issuer,
    fhirBaseUrl: `${issuer}/fhir`,
    script,
    seen,
    tokenForms,
    revoked,
    records,
    issued,
    reset: () => {
      Object.assign(script, goodScript())
      for (const list of [seen, tokenForms, revoked, records, issued]) list.length = 0
    },
    expireAccessTokens: () => accessTokens.clear(),
    close: () => closeNow(app),
  }
}

function readBearer({ headers }: FastifyRequest): string {
  return /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? ''
}

/** A searchset with these matches. */
export function bundle(resources: readonly Fields[], more: Fields = {}): Fields {
  return {
    resourceType: 'Bundle',
    type: 'searchset',
    total: resources.length,
    entry: resources.map(resource => ({ resource, search: { mode: 'match' } })),
    ...more,
  }
}

async function closeNow(app: FastifyInstance): Promise<void> {
  app.server.closeAllConnections()
  await app.close()
}
