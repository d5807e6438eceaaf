import type { Stack } from './stack.ts'

/** The servers that a user visits. */
export interface Visited extends Pick<Stack, 'user'> {
  readonly settings: Pick<Stack['settings'], 'issuerUrl' | 'appUrl'>
}

/** A user's browser without a screen: cookies, forms and redirects over real HTTP. */
export class HttpUser {
  readonly #stack: Visited
  readonly #cookies = new Map<string, string>()
  readonly #headers: Readonly<Record<string, string>>

  /** `cookie` is the `Cookie` header of a browser that it continues. `headers` are those of a proxy. */
  constructor(stack: Visited, cookie = '', headers: Readonly<Record<string, string>> = {}) {
    this.#stack = stack
    this.#headers = headers
    for (const pair of cookie.split('; ').filter(it => it !== '')) this.#keep(pair)
  }

  /** The `Cookie` header of the next request. */
  get cookie(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  /** One request, with the cookies; a redirect is not followed. */
  async request(url: string, init: RequestInit = {}): Promise<Response> {
    const { cookie } = this
    const headers = { ...this.#headers, ...init.headers, cookie }
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) this.#keep(line)
    return response
  }

  /** A request to the session API. */
  api(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return this.request(`${this.#stack.settings.appUrl}/api/${path}`, { headers })
  }

  /** Follows redirects to the last page. */
  async open(url: string, init: RequestInit = {}): Promise<Response> {
    let [at, response] = [url, await this.request(url, init)]
    for (let hops = 0; response.status >= 300 && response.status < 400 && hops < 10; hops++) {
      at = new URL(response.headers.get('location') ?? '', at).href
      response = await this.request(at)
    }
    return response
  }

  async signIn(): Promise<void> {
    const { settings, user } = this.#stack
    const { username, password } = user
    await this.open(`${settings.issuerUrl}/login`, form({ username, password }))
  }

  /** Launches the demo app for a patient, from the portal to the app's page. */
  async launch(patientId: string): Promise<Response> {
    return this.open(`${this.#stack.settings.issuerUrl}/portal/launch`, form({ patientId }))
  }

  #keep(line: string): void {
    const [pair = ''] = line.split(';')
    const at = pair.indexOf('=')
    const [name, value] = [pair.slice(0, at), pair.slice(at + 1)]
    if (value === '' || /max-age=0|expires=thu, 01 jan 1970/i.test(line)) this.#cookies.delete(name)
    else this.#cookies.set(name, value)
  }
}

function form(fields: Readonly<Record<string, string>>): RequestInit {
  return { method: 'POST', body: new URLSearchParams(fields) }
}
