import type { FastifyInstance, LightMyRequestResponse } from 'fastify'

/** A browser as far as the auth server sees one: it keeps cookies, sends forms, and follows what it is told to. */
export class TestBrowser {
  readonly #app: FastifyInstance
  readonly cookies = new Map<string, string>()

  constructor(app: FastifyInstance) {
    this.#app = app
  }

  get(address: string, headers: Readonly<Record<string, string>> = {}): Promise<LightMyRequestResponse> {
    return this.#send({ method: 'GET', url: pathOf(address), headers })
  }

  post(
    address: string,
    form: Readonly<Record<string, string>> | string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<LightMyRequestResponse> {
    return this.#send({
      method: 'POST',
      url: pathOf(address),
      payload: new URLSearchParams(form).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    })
  }

  /** Follows redirects on this server until there is a page or an address elsewhere. */
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

function pathOf(address: string): string {
  const { pathname, search } = new URL(address, 'http://localhost:9000')
  return pathname + search
}
