import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer as createHttpServer, type Server } from 'node:http'
import { createServer } from 'node:https'
import { join } from 'node:path'
import {
  Client,
  type OAuthClientInformationMixed,
  type OAuthClientMetadata,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type OAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client'
import type { Page } from 'playwright-core'
import { makeCertificate } from './certificate.ts'

/** The metadata document and the redirect URI of an assistant, on loopback. */
export interface AgentSite {
  /** Its client id: the https URL of the document. */
  readonly documentUrl: string
  readonly metadata: OAuthClientMetadata
  /** How often its document was fetched. */
  countFetches(): number
  /** Where the person came back with a code. */
  returned(): Promise<URLSearchParams>
  close(): void
}

/** A certificate that a started program accepts with `NODE_EXTRA_CA_CERTS`. */
export function writeAgentCertificate(folder: string) {
  const certificate = makeCertificate()
  const file = join(folder, 'agent.pem')
  writeFileSync(file, certificate.cert)
  return { ...certificate, file }
}

/** Serves the document by https and the redirect URI by http, as an assistant on the person's computer does. */
export async function startAgentSite(certificate: {
  readonly cert: string
  readonly key: string
}): Promise<AgentSite> {
  const waiting: ((found: URLSearchParams) => void)[] = []
  const callback = createHttpServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1')
    response
      .setHeader('content-type', 'text/html')
      .end('<!doctype html><title>Scribe</title><h1>Connected</h1>')
    if (pathname === '/callback') waiting.pop()?.(searchParams)
  })
  const redirectUri = `http://127.0.0.1:${await listen(callback)}/callback`
  let fetched = 0
  const documents = createServer(certificate, (_request, response) => {
    fetched += 1
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ client_id: documentUrl, ...metadata }))
  })
  const metadata = {
    client_name: 'Scribe',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'none',
  }
  const documentUrl = `https://localhost:${await listen(documents)}/client.json`
  return {
    documentUrl,
    metadata,
    countFetches: () => fetched,
    returned: () => new Promise(resolve => waiting.push(resolve)),
    close() {
      for (const server of [callback, documents]) {
        server.closeAllConnections()
        server.close()
      }
    },
  }
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Cannot tell the port')
  return address.port
}

/** What the person does with the consent page. */
export type Consent = (page: Page) => Promise<void>

export const allow: Consent = page => page.getByRole('button', { name: 'Allow access' }).click()

interface AgentOptions {
  readonly site: AgentSite
  readonly url: string
  /** The person's browser. */
  readonly page: Page
  readonly era: 'legacy' | { readonly pin: string } | 'auto'
}

/** An assistant with the client of the MCP project, whose person has a browser. */
export class TestAgent implements OAuthClientProvider {
  readonly #options: AgentOptions
  #client: Client | undefined
  #transport: StreamableHTTPClientTransport | undefined
  #tokens: OAuthTokens | undefined
  #verifier = ''
  #information: OAuthClientInformationMixed | undefined
  #discovered: OAuthDiscoveryState | undefined
  #asked: URL | undefined
  /** The authorization requests so far. */
  readonly requests: URL[] = []

  constructor(options: AgentOptions) {
    this.#options = options
  }

  get redirectUrl() {
    return String(this.#options.site.metadata.redirect_uris[0])
  }
  get clientMetadataUrl() {
    return this.#options.site.documentUrl
  }
  get clientMetadata() {
    return this.#options.site.metadata
  }
  clientInformation() {
    return this.#information
  }
  saveClientInformation(information: OAuthClientInformationMixed) {
    this.#information = information
  }
  tokens() {
    return this.#tokens
  }
  saveTokens(tokens: OAuthTokens) {
    this.#tokens = tokens
  }
  redirectToAuthorization(url: URL) {
    this.#asked = url
    this.requests.push(url)
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier
  }
  codeVerifier() {
    return this.#verifier
  }
  discoveryState() {
    return this.#discovered
  }
  saveDiscoveryState(discovered: OAuthDiscoveryState) {
    this.#discovered = discovered
  }
  invalidateCredentials() {
    this.#tokens = undefined
  }

  get client(): Client {
    if (!this.#client) throw new Error('Not connected')
    return this.#client
  }

  /** Connects. The person is asked if there is no token. */
  async connect(consent: Consent): Promise<void> {
    await this.withConsent(consent, async () => {
      this.#client = new Client(
        { name: 'scribe', version: '1.0.0' },
        { versionNegotiation: { mode: this.#options.era } },
      )
      this.#transport = new StreamableHTTPClientTransport(new URL(this.#options.url), { authProvider: this })
      await this.#client.connect(this.#transport)
    })
  }

  /** Does something, and once more after the person was asked, if it needs the person. */
  async withConsent<T>(consent: Consent, perform: () => Promise<T>): Promise<T> {
    try {
      return await perform()
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || !this.#asked || !this.#transport) throw error
      const { page, site } = this.#options
      const returned = site.returned()
      await page.goto(this.#asked.href)
      await consent(page)
      await this.#transport.finishAuth(await returned)
      this.#asked = undefined
      return perform()
    }
  }

  async close(): Promise<void> {
    await this.#client?.close()
  }
}
