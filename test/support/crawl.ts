import type { HttpUser } from './http-user.ts'

/** Pages of one kind that are opened: `/admin/audit/1`, `/admin/audit/2`. */
const OF_A_KIND = 5

/** Opens every page that links of these pages lead to, on the servers of these pages. Returns the HTML by URL. */
export async function crawl(user: HttpUser, starts: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const origins = new Set(starts.map(url => new URL(url).origin))
  const bodies = new Map<string, string>()
  const kinds = new Map<string, number>()
  const waiting = [...starts]
  for (let href = waiting.shift(); href !== undefined; href = waiting.shift()) {
    const { origin, pathname, search } = new URL(href)
    const url = origin + pathname + search
    const kind = origin + pathname.replace(/\/([\w-]{20,}|[\w-]*\d[\w-]*|hostile)(?=\/|$)/g, '/:id')
    const count = (kinds.get(kind) ?? 0) + 1
    if (!origins.has(origin) || bodies.has(url) || count > OF_A_KIND || /logout|export/.test(pathname))
      continue
    kinds.set(kind, count)
    const response = await user.request(url)
    const location = response.headers.get('location')
    if (location !== null) waiting.push(new URL(location, url).href)
    if (!response.headers.get('content-type')?.startsWith('text/html')) continue
    const body = await response.text()
    bodies.set(url, body)
    for (const [, link = ''] of body.matchAll(/<a\b[^>]*? href="([^"]*)"/g))
      waiting.push(new URL(link.replaceAll('&amp;', '&'), url).href)
  }
  return bodies
}
