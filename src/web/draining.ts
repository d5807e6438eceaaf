import { Server } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

const DRAINING = 'draining'

interface Draining {
  /** When it began, on the monotonic clock. */
  since: number | undefined
}

const STOP_MS = 8_000
const LONGEST_GRACE_MS = 1_000

/**
 * Prepares a server to be stopped without a failed request, also behind a proxy that was not told. First it accepts no
 * further connections: a proxy tries another instance then, with writes too. On those that a proxy has kept it serves on
 * for a moment, and closes each after its response; only what is unused then is closed at once. A request that is still
 * running `stopMs` after the draining began is cut.
 */
export function prepareDraining(app: FastifyInstance, stopMs = STOP_MS): void {
  app.decorate(DRAINING, { since: undefined } satisfies Draining)
  app.addHook('preClose', async () => {
    const { since } = stateOf(app)
    const spent = since === undefined ? 0 : performance.now() - since
    const cut = setTimeout(() => app.server.closeAllConnections(), Math.max(stopMs - spent, 0))
    cut.unref()
    app.server.once('close', () => clearTimeout(cut))
    if (since === undefined) return
    // Not that of `http`, which closes unused connections too: the proxy may be about to use one.
    Server.prototype.close.call(app.server)
    await pause(Math.min(spent, LONGEST_GRACE_MS))
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
