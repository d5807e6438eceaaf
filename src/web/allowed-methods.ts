import type { FastifyInstance } from 'fastify'

/** Tells which methods an address has, for 405 with `Allow`: fastify itself answers 404. */
export function watchRoutes(app: FastifyInstance): (path: string) => readonly string[] {
  const methodsByPattern = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsByPattern.get(url) ?? new Set<string>()
    for (const name of [method].flat()) methods.add(name)
    methodsByPattern.set(url, methods)
  })
  return path => {
    const found = [...methodsByPattern].filter(([pattern]) => patternOf(pattern).test(path))
    return [...new Set(found.flatMap(([, methods]) => [...methods]))].sort()
  }
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
