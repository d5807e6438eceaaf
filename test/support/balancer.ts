import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

/** How often it asks its targets whether they are ready. */
const PROBE_MS = 100

/** A load balancer: it sends each request to the next target that said it is ready, and repeats none. */
export interface Balancer {
  /** Resolves when the target is ready. */
  add(port: number): Promise<void>
  remove(port: number): void
  close(): void
}

export async function startBalancer(port: number): Promise<Balancer> {
  const agent = new Agent({ keepAlive: true })
  const targets = new Map<number, { isReady: boolean }>()
  let turn = 0
  const server = createServer((incoming, outgoing) => {
    const ready = [...targets].filter(([, { isReady }]) => isReady).map(([target]) => target)
    const target = ready[turn++ % ready.length]
    if (target === undefined) return outgoing.writeHead(502).end('no target is ready')
    const { method, url: path, headers } = incoming
    const sent = request({ host: '127.0.0.1', port: target, method, path, headers, agent }, response => {
      outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders)
      response.pipe(outgoing)
    })
    sent.on('error', error => outgoing.writeHead(502).end(`target ${target}: ${error.message}`))
    incoming.pipe(sent)
  })
  server.listen(port, 'localhost')
  await once(server, 'listening')

  async function probe(target: number, state: { isReady: boolean }): Promise<void> {
    while (targets.get(target) === state) {
      state.isReady = await isReady(target)
      await pause(PROBE_MS)
    }
  }

  return {
    async add(target) {
      const state = { isReady: false }
      targets.set(target, state)
      void probe(target, state)
      while (!state.isReady) await pause(PROBE_MS)
    },
    remove: target => targets.delete(target),
    close() {
      targets.clear()
      agent.destroy()
      server.close()
      server.closeAllConnections()
    },
  }
}

async function isReady(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`)
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}
