import { Server } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

const DRAINING = 'draining'

interface Draining {
  /** Start of the draining, on the monotonic clock. */
  since: number | undefined
}

const STOP_MS = 8_000
const LONGEST_GRACE_MS = 1_000

/**
 * Prepares a server to stop without failing a request, even if the proxy in front of it does not know of the stop. First
 * the server accepts no new connections: a proxy then tries another instance, even for writes. For a moment it still
 * serves requests on the proxy's open connections, and closes each after its response. Then it closes the idle ones. A
 * request that still runs `stopMs` after the draining began is aborted.
 */
export function prepareDraining(app: FastifyInstance, stopMs = STOP_MS): void {
  app.decorate(DRAINING, { since: undefined } satisfies Draining)
  app.addHook('preClose', async () => {
    const { since } = getState(app)
    const spent = since === undefined ? 0 : performance.now() - since
    const cut = setTimeout(() => app.server.closeAllConnections(), Math.max(stopMs - spent, 0))
    cut.unref()
    app.server.once('close', () => clearTimeout(cut))
    if (since === undefined) return
    // `close` of `http` would close idle connections too, and the proxy may be about to use one.
    Server.prototype.close.call(app.server)
    await pause(Math.min(spent, LONGEST_GRACE_MS))
  })
}

/** Makes `/readyz` report that the server is about to stop, so that proxies send their requests elsewhere. */
export function startDraining(app: FastifyInstance): void {
  getState(app).since ??= performance.now()
}

export function isDraining(app: FastifyInstance): boolean {
  return getState(app).since !== undefined
}

function getState(app: FastifyInstance): Draining {
  return app.getDecorator<Draining>(DRAINING)
}
