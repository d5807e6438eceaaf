import type { FastifyInstance } from 'fastify'

const ROUTES = 'routes'

type MethodsByPattern = ReadonlyMap<string, ReadonlySet<string>>

/** Tells which methods an address has, for 405 with `Allow`: fastify itself answers 404. */
export function watchRoutes(app: FastifyInstance): (path: string) => readonly string[] {
  const methodsByPattern = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsByPattern.get(url) ?? new Set<string>()
    for (const name of [method].flat()) methods.add(name)
    methodsByPattern.set(url, methods)
  })
  app.decorate(ROUTES, methodsByPattern)
  return path => {
    const found = [...methodsByPattern].filter(([pattern]) => patternOf(pattern).test(path))
    return [...new Set(found.flatMap(([, methods]) => [...methods]))].sort()
  }
}

/** Every address that a server has, for its reference page. HEAD and OPTIONS go without saying. */
export function listRoutes(
  app: FastifyInstance,
): readonly { readonly method: string; readonly path: string }[] {
  return [...app.getDecorator<MethodsByPattern>(ROUTES)].flatMap(([path, methods]) =>
    [...methods]
      .filter(method => method !== 'HEAD' && method !== 'OPTIONS')
      .map(method => ({ method, path })),
  )
}

function patternOf(route: string): RegExp {
  const source = route
    .split('/')
    .map(part => {
      if (part === '*') return '.*'
      return part.startsWith(':') ? '[^/]+' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    })
    .join('/')
  return new RegExp(`^${source}$`)
}
