import { createServer as createDoor, type Server } from 'node:net'
import type { FastifyInstance } from 'fastify'

const DOORS = 'doors'

/** Further addresses of a server: their connections are handed to the first, so that closing treats all alike. */
export function prepareDoors(app: FastifyInstance): void {
  app.decorate(DOORS, [] satisfies Server[])
  app.addHook('preClose', async () => {
    for (const door of app.getDecorator<Server[]>(DOORS)) door.close()
  })
}

const NOT_ON_THIS_MACHINE: ReadonlySet<unknown> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT'])

/**
 * Listens on every host at the same port, and returns the port (useful for port 0). A host whose address family this machine does
 * not have (`::1` in many containers) is skipped as long as another one is bound.
 */
export async function listen(app: FastifyInstance, port: number, hosts: readonly string[]): Promise<number> {
  const [first = '127.0.0.1', ...rest] = hosts
  await app.listen({ port, host: first })
  const bound = portOf(app)
  for (const host of rest) await openDoor(app, bound, host)
  return bound
}

function portOf(app: FastifyInstance): number {
  const address = app.server.address()
  if (address === null || typeof address === 'string') throw new Error('Cannot tell the port: not listening')
  return address.port
}

async function openDoor(app: FastifyInstance, port: number, host: string): Promise<void> {
  const door = createDoor(socket => app.server.emit('connection', socket))
  const opened = Promise.withResolvers<void>()
  door.once('error', opened.reject)
  door.listen({ port, host, ipv6Only: host.includes(':') }, opened.resolve)
  try {
    await opened.promise
  } catch (error) {
    if (NOT_ON_THIS_MACHINE.has((error as NodeJS.ErrnoException).code)) return
    throw error
  }
  app.getDecorator<Server[]>(DOORS).push(door)
}
