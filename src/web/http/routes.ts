import type { FastifyInstance } from 'fastify'

const ROUTES = 'routes'

interface KnownRoute {
  readonly pattern: RegExp
  readonly methods: ReadonlySet<string>
}

/** Returns a function that lists the methods of a path, for 405 with `Allow`: fastify itself sends 404. */
export function watchRoutes(app: FastifyInstance): (path: string) => readonly string[] {
  const routes = new Map<string, KnownRoute>()
  app.addHook('onRoute', ({ url, method }) => {
    const { pattern, methods } = routes.get(url) ?? { pattern: compilePattern(url), methods: [] }
    routes.set(url, { pattern, methods: new Set([...methods, method].flat()) })
  })
  app.decorate(ROUTES, routes)
  return path => {
    const found = [...routes.values()].filter(({ pattern }) => pattern.test(path))
    return [...new Set(found.flatMap(({ methods }) => [...methods]))].sort()
  }
}

/** Lists the routes of a server for its reference page, without HEAD and OPTIONS. */
export function listRoutes(
  app: FastifyInstance,
): readonly { readonly method: string; readonly path: string }[] {
  return [...app.getDecorator<ReadonlyMap<string, KnownRoute>>(ROUTES)].flatMap(([path, { methods }]) =>
    [...methods]
      .filter(method => method !== 'HEAD' && method !== 'OPTIONS')
      .map(method => ({ method, path })),
  )
}

function compilePattern(route: string): RegExp {
  const source = route
    .split('/')
    .map(part => {
      if (part === '*') return '.*'
      return part.startsWith(':') ? '[^/]+' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    })
    .join('/')
  return new RegExp(`^${source}$`)
}
