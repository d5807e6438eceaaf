import type { FastifyInstance, LightMyRequestResponse } from 'fastify'

/** A client that keeps cookies, sends forms and follows redirects like a browser. */
export class TestBrowser {
  readonly #app: FastifyInstance
  readonly cookies = new Map<string, string>()

  constructor(app: FastifyInstance) {
    this.#app = app
  }

  get(url: string, headers: Readonly<Record<string, string>> = {}): Promise<LightMyRequestResponse> {
    return this.#send({ method: 'GET', url: toPath(url), headers })
  }

  post(
    url: string,
    form: Readonly<Record<string, string>> | string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<LightMyRequestResponse> {
    return this.#send({
      method: 'POST',
      url: toPath(url),
      payload: new URLSearchParams(form).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    })
  }

  /** Follows redirects until there is a page or a URL of another server. */
  async follow(response: LightMyRequestResponse, origin: string): Promise<LightMyRequestResponse> {
    const location = response.headers.location
    if (location === undefined || (!location.startsWith('/') && !location.startsWith(`${origin}/`)))
      return response
    return this.follow(await this.get(location), origin)
  }

  async login(username = 'clinician', password = 'sallyport'): Promise<LightMyRequestResponse> {
    return this.post('/login', { username, password })
  }

  async #send(request: {
    method: 'GET' | 'POST'
    url: string
    headers: Readonly<Record<string, string>>
    payload?: string
  }): Promise<LightMyRequestResponse> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await this.#app.inject({
      ...request,
      headers: { ...request.headers, ...(cookie === '' ? {} : { cookie }) },
    })
    for (const { name, value } of response.cookies) {
      if (value === '') this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return response
  }
}

function toPath(url: string): string {
  const { pathname, search } = new URL(url, 'http://localhost:9000')
  return pathname + search
}
