import type { FastifyInstance } from 'fastify'

const DRAINING = 'draining'

interface Draining {
  /** When it began, on the monotonic clock. */
  since: number | undefined
}

const STOP_MS = 8_000

/**
 * Prepares a server to be stopped. While it is draining it serves on, but every response closes its connection, so that
 * a proxy keeps none for later. A request that is still running `stopMs` after the draining began is cut.
 */
export function prepareDraining(app: FastifyInstance, stopMs = STOP_MS): void {
  app.decorate(DRAINING, { since: undefined } satisfies Draining)
  app.addHook('onRequest', (_request, reply, done) => {
    if (isDraining(app)) reply.header('connection', 'close')
    done()
  })
  app.addHook('preClose', async () => {
    const spent = performance.now() - (stateOf(app).since ?? performance.now())
    const cut = setTimeout(() => app.server.closeAllConnections(), Math.max(stopMs - spent, 0))
    cut.unref()
    app.server.once('close', () => clearTimeout(cut))
  })
}

/** Says from now on in `/readyz` that the server is about to stop, so that proxies send their requests elsewhere. */
export function startDraining(app: FastifyInstance): void {
  stateOf(app).since ??= performance.now()
}

export function isDraining(app: FastifyInstance): boolean {
  return stateOf(app).since !== undefined
}

function stateOf(app: FastifyInstance): Draining {
  return app.getDecorator<Draining>(DRAINING)
}
