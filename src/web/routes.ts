import type { FastifyInstance } from 'fastify'

const ROUTES = 'routes'

type MethodsByPattern = ReadonlyMap<string, ReadonlySet<string>>

/** Returns a function that lists the methods of a path, for 405 with `Allow`: fastify itself sends 404. */
export function watchRoutes(app: FastifyInstance): (path: string) => readonly string[] {
  const methodsByPattern = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsByPattern.get(url) ?? new Set<string>()
    for (const name of [method].flat()) methods.add(name)
    methodsByPattern.set(url, methods)
  })
  app.decorate(ROUTES, methodsByPattern)
  return path => {
    const found = [...methodsByPattern].filter(([pattern]) => compilePattern(pattern).test(path))
    return [...new Set(found.flatMap(([, methods]) => [...methods]))].sort()
  }
}

/** Lists the routes of a server for its reference page, without HEAD and OPTIONS. */
export function listRoutes(
  app: FastifyInstance,
): readonly { readonly method: string; readonly path: string }[] {
  return [...app.getDecorator<MethodsByPattern>(ROUTES)].flatMap(([path, methods]) =>
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
