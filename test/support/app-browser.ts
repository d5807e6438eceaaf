import type { FastifyInstance, LightMyRequestResponse } from 'fastify'

/** A browser as far as the app server can tell: it keeps cookies and follows the launch. No socket on the app's side. */
export class AppBrowser {
  readonly #app: FastifyInstance
  readonly cookies = new Map<string, string>()
  /** The path of the session of the last launch: `/s/<sessionId>`. */
  page = '/'

  constructor(app: FastifyInstance) {
    this.#app = app
  }

  async get(url: string, headers: Readonly<Record<string, string>> = {}): Promise<LightMyRequestResponse> {
    return this.#keep(
      await this.#app.inject({ method: 'GET', url, headers, cookies: Object.fromEntries(this.cookies) }),
    )
  }

  async head(url: string): Promise<LightMyRequestResponse> {
    return this.#app.inject({ method: 'HEAD', url, cookies: Object.fromEntries(this.cookies) })
  }

  async post(url: string, headers: Readonly<Record<string, string>> = {}): Promise<LightMyRequestResponse> {
    return this.#keep(
      await this.#app.inject({ method: 'POST', url, headers, cookies: Object.fromEntries(this.cookies) }),
    )
  }

  /** `/launch`, as the portal sends the browser there. */
  begin(iss: string, launch = 'launch-token'): Promise<LightMyRequestResponse> {
    return this.get(`/launch?iss=${encodeURIComponent(iss)}&launch=${launch}`)
  }

  /** Path and query of the callback to which the auth server redirects. */
  async visitAuthServer(begun: LightMyRequestResponse): Promise<string> {
    const response = await fetch(String(begun.headers.location), { redirect: 'manual' })
    const back = new URL(response.headers.get('location') ?? '')
    return `${back.pathname}${back.search}`
  }

  /** The whole launch, up to the answer of the callback. */
  async launch(iss: string): Promise<LightMyRequestResponse> {
    const response = await this.get(await this.visitAuthServer(await this.begin(iss)))
    if (response.statusCode === 302) this.page = String(response.headers.location)
    return response
  }

  #keep(response: LightMyRequestResponse): LightMyRequestResponse {
    for (const { name, value, maxAge, expires } of response.cookies) {
      if (maxAge === 0 || (expires && expires.getTime() < Date.now())) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return response
  }
}
