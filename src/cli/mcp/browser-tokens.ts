import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Configuration } from 'openid-client'
import { getResourceMetadataUrl, isLoopbackHost } from '../../config/index.ts'
import { readText, toRecord } from '../../core/index.ts'
import type { TokenSource } from './bridge.ts'
import { createTokens } from './tokens.ts'

export interface BrowserTokenOptions {
  /** The endpoint of assistants. */
  readonly url: string
  readonly clientId: string
  readonly scope: string
  /** The patient whom the person must have chosen. */
  readonly patientId: string | undefined
  /** Shows the person a link, and opens it if it can. */
  readonly openLink: (link: string) => Promise<void>
}

/** How long the person may take. */
const SIGN_IN_MS = 10 * 60_000

const METADATA_MS = 10_000

/** Tokens that a person allows in the browser: an authorization request with a redirect to loopback (RFC 8252, 7.3). */
export function createBrowserTokens(options: BrowserTokenOptions): TokenSource {
  let scope = options.scope
  let configuration: Promise<Configuration> | undefined
  let refreshToken: string | undefined
  return createTokens({
    canExtend: true,
    async obtain(more, signal) {
      const oidc = await import('openid-client')
      configuration ??= discover(options)
      const config = await configuration.catch((error: unknown) => {
        configuration = undefined
        throw error
      })
      const resource = { resource: options.url }
      if (more === '' && refreshToken !== undefined) {
        const refreshed = await oidc.refreshTokenGrant(config, refreshToken, resource).catch(() => undefined)
        refreshToken = refreshed?.refresh_token
        if (refreshed) return refreshed.access_token
      }
      scope = [...new Set([...scope.split(' '), ...more.split(' ')])].filter(it => it !== '').join(' ')
      const tokens = await authorize(config, { ...options, scope }, signal)
      if (options.patientId !== undefined && tokens.patient !== options.patientId)
        throw new Error('another patient was chosen than the one that --patient names')
      refreshToken = tokens.refresh_token
      return tokens.access_token
    },
  })
}

/** Finds the auth server of the endpoint (RFC 9728), and its metadata. */
async function discover({ url, clientId }: BrowserTokenOptions): Promise<Configuration> {
  const oidc = await import('openid-client')
  const signal = AbortSignal.timeout(METADATA_MS)
  const response = await fetch(getResourceMetadataUrl(url), { signal, redirect: 'error' })
  const metadata: unknown = await response.json().catch(() => undefined)
  const { resource, authorization_servers: servers } = toRecord(metadata)
  const issuer = Array.isArray(servers) ? readText(servers[0]) : undefined
  if (resource !== url || issuer === undefined)
    throw new Error(`${new URL(url).host} does not describe an endpoint of assistants at this URL`)
  const server = new URL(issuer)
  const isPlain = server.protocol === 'http:' && isLoopbackHost(server.hostname)
  return oidc.discovery(server, clientId, undefined, oidc.None(), {
    execute: isPlain ? [oidc.allowInsecureRequests] : [],
  })
}

async function authorize(
  config: Configuration,
  { url, scope, openLink }: BrowserTokenOptions,
  signal: AbortSignal,
) {
  const oidc = await import('openid-client')
  const state = oidc.randomState()
  const verifier = oidc.randomPKCECodeVerifier()
  const callback = await listenForCallback(state, AbortSignal.any([signal, AbortSignal.timeout(SIGN_IN_MS)]))
  try {
    const link = oidc.buildAuthorizationUrl(config, {
      redirect_uri: callback.url,
      scope,
      state,
      resource: url,
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    await openLink(link.href)
    const checks = { pkceCodeVerifier: verifier, expectedState: state }
    return await oidc.authorizationCodeGrant(config, await callback.called, checks, { resource: url })
  } finally {
    callback.close()
  }
}

interface Callback {
  readonly url: string
  readonly called: Promise<URL>
  close(): void
}

async function listenForCallback(state: string, signal: AbortSignal): Promise<Callback> {
  const { promise, resolve, reject } = Promise.withResolvers<URL>()
  // It may end before anybody waits.
  promise.catch(() => {})
  signal.addEventListener('abort', () => reject(signal.reason))
  const server = createServer((request, response) => {
    const called = URL.parse(request.url ?? '/', callback)
    if (called?.pathname !== '/callback' || called.searchParams.get('state') !== state)
      return sendPage(response, 404, 'There is nothing here.')
    sendPage(response, 200, 'You can close this page. The assistant goes on.')
    resolve(called)
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const callback = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`
  return {
    url: callback,
    called: promise,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

function sendPage(response: ServerResponse, status: number, text: string): void {
  response
    .writeHead(status, { 'content-type': 'text/html; charset=utf-8', connection: 'close' })
    .end(`<!doctype html><html lang="en"><title>Sallyport</title><p>${text}</p></html>\n`)
}
