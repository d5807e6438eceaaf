export interface Page {
  readonly url: string
  readonly status: number
  readonly body: string
}

/** A client with cookies that follows redirects and submits forms, across servers of one host. */
export class Browser {
  readonly #cookies = new Map<string, string>()

  async open(url: string, form?: Readonly<Record<string, string>>): Promise<Page> {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const line of response.headers.getSetCookie()) this.#keep(line)
    const location = response.headers.get('location')
    if (location !== null) return this.open(new URL(location, url).href)
    return { url, status: response.status, body: await response.text() }
  }

  /** Submits the last form of a page, which has these fields beside its hidden ones. */
  async submit({ url, body }: Page, fields: Readonly<Record<string, string>> = {}): Promise<Page> {
    const markup = [...body.matchAll(/<form[\s\S]*?<\/form>/g)].at(-1)?.[0] ?? ''
    const action = new URL(decode(/action="([^"]*)"/.exec(markup)?.[1] ?? ''), url)
    const all = { ...readHidden(markup), ...fields }
    if (/method="post"/i.test(markup)) return this.open(action.href, all)
    action.search = String(new URLSearchParams(all))
    return this.open(action.href)
  }

  #keep(line: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    if (value === '' || /max-age=0/i.test(line)) this.#cookies.delete(name)
    else this.#cookies.set(name, value)
  }
}

function readHidden(markup: string): Record<string, string> {
  const inputs = [...markup.matchAll(/<input [^>]*type="hidden"[^>]*>/g)].map(([tag]) => tag)
  const read = (tag: string, name: string) => decode(new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1] ?? '')
  return Object.fromEntries(inputs.map(tag => [read(tag, 'name'), read(tag, 'value')]))
}

function decode(text: string): string {
  return text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&')
}
