import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import type { HostOptions } from '../host/host-options.ts'
import { expressInterceptor, fastifyInterceptor } from '../index.ts'

/** Answers on Node's own objects, as freely as a framework lets it. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void

export interface RunningHost {
  readonly url: string
  close(): Promise<unknown>
}

const JSON_TYPES = ['application/fhir+json', 'application/json', 'application/json-patch+json']

/** Servers that answer whatever the test wants, guarded by nothing but the interceptor. */
export const leakyHosts: Readonly<
  Record<string, (options: HostOptions, handler: Handler) => Promise<RunningHost>>
> = {
  async express(options, handler) {
    const app = express()
    const interceptor = expressInterceptor(options)
    app.use('/fhir', express.json({ type: JSON_TYPES }), express.urlencoded(), interceptor)
    app.use('/fhir', handler)
    const server = createServer(app)
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const close = () => {
      interceptor.close()
      server.closeAllConnections()
      return new Promise(resolve => server.close(resolve))
    }
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
  },

  async fastify(options, handler) {
    const app = fastify({ forceCloseConnections: true })
    await app.register(fastifyInterceptor(options))
    for (const type of JSON_TYPES)
      app.addContentTypeParser(type, { parseAs: 'string' }, app.getDefaultJsonParser('error', 'error'))
    app.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string' },
      (_request, body, done) => done(null, body),
    )
    app.all('/fhir', (request, reply) => handler(request.raw, reply.hijack().raw))
    app.all('/fhir/*', (request, reply) => handler(request.raw, reply.hijack().raw))
    return { url: await app.listen({ port: 0, host: '127.0.0.1' }), close: () => app.close() }
  },
}
