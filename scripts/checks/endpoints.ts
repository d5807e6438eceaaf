export interface Route {
  readonly method: string
  readonly path: string
}

/** Lines of docs/endpoints.md: `` | `GET`, `POST` | `/login` | … | `` in the section of a server. */
export function listDocumentedRoutes(section: string): readonly Route[] {
  return [...section.matchAll(/^\|\s*((?:`[A-Z]+`(?:, )?)+)\s*\|\s*`([^`]+)`/gm)].flatMap(
    ([, methods = '', path = '']) => [...methods.matchAll(/[A-Z]+/g)].map(([method]) => ({ method, path })),
  )
}

/** Lines of a generated reference of an API: `` `GET /api/session` ``. */
export function listApiRoutes(page: string): readonly Route[] {
  return [...page.matchAll(/^`([A-Z]+) (\/[^`]+)`$/gm)].map(([, method = '', path = '']) => ({
    method,
    path: path.replace(/\{(\w+)\}/g, ':$1'),
  }))
}

/** The part of a page under a heading of the second level. */
export function findSection(text: string, heading: string): string {
  const parts = text.split(/^## /m)
  return parts.find(part => part.startsWith(`${heading}\n`)) ?? ''
}

/** Routes that the page does not list, and listed ones that the server does not have. */
export function endpointFaults(
  page: string,
  server: string,
  listed: readonly Route[],
  served: readonly Route[],
): readonly string[] {
  const formatRoute = ({ method, path }: Route): string => `${method} ${path}`
  const inPage = new Set(listed.map(formatRoute))
  const inServer = new Set(served.map(formatRoute))
  return [
    ...[...inServer]
      .filter(name => !inPage.has(name))
      .map(name => `${page}: ${server} serves ${name}, not listed`),
    ...[...inPage]
      .filter(name => !inServer.has(name))
      .map(name => `${page}: ${server} does not serve ${name}`),
  ]
}
