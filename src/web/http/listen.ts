import { constants } from 'node:crypto'
import { createServer, Server } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { type SecureContextOptions, Server as TlsServer } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import { serveInTurn } from '../../turns/index.ts'

const LISTENERS = 'listeners'

/** Prepares listening on further hosts. Their connections go to the first listener, so that closing treats all alike. */
export function prepareListeners(app: FastifyInstance): void {
  app.decorate(LISTENERS, [] satisfies Server[])
  app.addHook('preClose', async () => {
    for (const listener of app.getDecorator<Server[]>(LISTENERS)) listener.close()
  })
}

/** Before fastify does anything: it answers a URL that it cannot parse before the first hook. */
export function serveConnectionsInTurn({ server, routing }: FastifyInstance): void {
  server
    .removeAllListeners('request')
    .on('request', (request, response) => serveInTurn(request, response, () => routing(request, response)))
    // Node would answer an unknown `Expect` itself, out of turn.
    .on('checkExpectation', (request, response) =>
      serveInTurn(request, response, () => void response.writeHead(417).end()),
    )
}

const NOT_ON_THIS_MACHINE: ReadonlySet<unknown> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT'])

/**
 * Listens on every host at the same port, and returns the port (useful for port 0). It skips a further host whose address
 * family this machine does not have (`::1` in many containers).
 */
export async function listen(app: FastifyInstance, port: number, hosts: readonly string[]): Promise<number> {
  const [first = '127.0.0.1', ...rest] = resolveHosts(hosts)
  await app.listen({ port, host: first })
  const bound = getPort(app)
  for (const host of rest) await bindHost(app, bound, host)
  return bound
}

/** For `localhost`, fastify would open a server for each address, and only one of them would be this one. */
function resolveHosts(hosts: readonly string[]): readonly string[] {
  return hosts.flatMap(host => (host === 'localhost' ? ['127.0.0.1', '::1'] : [host]))
}

/** Fails as `listen` would, if another program has the port. */
export async function checkPort(port: number, hosts: readonly string[]): Promise<void> {
  if (port === 0) return
  for (const host of resolveHosts(hosts)) {
    const probe = createServer()
    const opened = Promise.withResolvers<void>()
    probe.once('error', opened.reject)
    probe.listen({ port, host, ipv6Only: host.includes(':') }, opened.resolve)
    try {
      await opened.promise
      await new Promise(resolve => probe.close(resolve))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') throw error
    }
  }
}

function getPort(app: FastifyInstance): number {
  const address = app.server.address()
  if (address === null || typeof address === 'string')
    throw new Error('Cannot read the port: the server is not listening')
  return address.port
}

async function bindHost(app: FastifyInstance, port: number, host: string): Promise<void> {
  const listener = createServer(socket => app.server.emit('connection', socket))
  const opened = Promise.withResolvers<void>()
  listener.once('error', opened.reject)
  listener.listen({ port, host, ipv6Only: host.includes(':') }, opened.resolve)
  try {
    await opened.promise
  } catch (error) {
    if (NOT_ON_THIS_MACHINE.has((error as NodeJS.ErrnoException).code)) return
    throw error
  }
  app.getDecorator<Server[]>(LISTENERS).push(listener)
}

/** The AEAD suites with forward secrecy that BCP 195 (RFC 9325, 4.2) recommends; those of TLS 1.3 first. */
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
]

/** TLS as recommended by BCP 195 (RFC 9325): TLS 1.2 or later, AEAD suites only, no renegotiation. */
export const TLS_POLICY: SecureContextOptions = {
  minVersion: 'TLSv1.2',
  ciphers: CIPHERS.join(':'),
  honorCipherOrder: true,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
}

export interface Certificate {
  readonly cert: string | Buffer
  readonly key: string | Buffer
}

/** New connections use the certificate; those that are open keep the one before. */
export function replaceCertificate({ server }: FastifyInstance, certificate: Certificate): void {
  if (server instanceof TlsServer) server.setSecureContext({ ...TLS_POLICY, ...certificate })
}

const DRAINING = 'draining'

interface Draining {
  /** Start of the draining, on the monotonic clock. */
  since: number | undefined
}

/** How long a server that stops waits for its requests. */
export const STOP_MS = 8_000
const MIN_GRACE_MS = 100
const MAX_GRACE_MS = 1_000

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
    await pause(Math.min(Math.max(spent, MIN_GRACE_MS), MAX_GRACE_MS))
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
