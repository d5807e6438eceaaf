import { after } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { html, renderPage } from '../../ui/index.ts'
import { createLogger, createServer, type ServerOptions } from '../index.ts'

export interface TestServer {
  readonly app: FastifyInstance
  readonly lines: () => readonly Record<string, unknown>[]
  readonly log: () => string
}

export const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

/** Creates servers with one route of each kind, and returns their logs. Closes them after the tests. */
export function useServers(): (options?: Partial<ServerOptions>) => Promise<TestServer> {
  const servers: FastifyInstance[] = []
  after(async () => {
    await Promise.all(servers.map(server => server.close()))
  })
  return async (options = {}) => {
    let log = ''
    const keep = (text: string): void => {
      log += text
    }
    const logger = createLogger({ level: 'debug', destination: { write: keep } })
    const app = await createServer({ name: 'auth', url: 'http://localhost:9000', logger, ...options })
    servers.push(app)
    addRoutes(app)
    const lines = () => log.split('\n').filter(line => line !== '')
    return { app, log: () => log, lines: () => lines().map(line => JSON.parse(line)) }
  }
}

function addRoutes(app: FastifyInstance): void {
  app.get('/page/:id', async (_request, reply) =>
    reply.sendPage(renderPage({ title: 'Hello', bar: { kind: 'portal' } }, html`<h1>Hello</h1>`)),
  )
  app.post('/form', async request => request.body)
  app.get('/oauth2/things', async () => ({ ok: true }))
  app.get('/full', async () => {
    throw Object.assign(new Error('database or disk is full'), { errcode: 13 })
  })
  app.get('/boom', async () => {
    throw new Error('Broken by access_token=abc')
  })
}
