import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import type { Resource } from '../../fhir/index.ts'
import { expressInterceptor, fastifyInterceptor } from '../index.ts'
import type { HostOptions } from '../interceptor.ts'
import { authUrl, fhirBaseUrl, TestIssuer } from './test-issuer.ts'

export const auth = new TestIssuer()

export const NOT_WITHIN = 'Not within the granted patient, user or filter.'

export function makeCondition(patient: string, more: object = {}): Resource {
  return { resourceType: 'Condition', subject: { reference: `Patient/${patient}` }, ...more }
}

export function makeBundle(...resources: object[]): object {
  return { resourceType: 'Bundle', type: 'searchset', entry: resources.map(resource => ({ resource })) }
}

interface HostAnswer {
  readonly status: number
  readonly text: string
  readonly headers: Headers
  /** The text of the first issue, where a refusal was answered. */
  readonly why: string
}

const OPTIONS: HostOptions = {
  authUrl,
  fhirBaseUrl,
  contexts: ['patient', 'user', 'system'],
  fetch: auth.fetch,
  clock: auth.clock,
}

/** A host that sends the response of the test and counts requests. Requests have tokens for patient 1. */
export class TestHost {
  requests = 0
  handler: HostHandler = (_request, response) => response.end()
  readonly store = new Map<string, Resource>()
  readonly #start: (typeof leakyHosts)[string]
  readonly #hosts: RunningHost[] = []

  constructor(start: (typeof leakyHosts)[string]) {
    this.#start = start
  }

  /** The host that provides stored content. */
  get running(): RunningHost {
    const [first] = this.#hosts
    if (!first) throw new Error('Cannot send request: the host has not started')
    return first
  }

  async start(): Promise<void> {
    await this.run({ stored: async (type, id) => this.store.get(`${type}/${id}`) })
  }

  async run(more: Partial<HostOptions> = {}): Promise<RunningHost> {
    const started = await this.#start({ ...OPTIONS, ...more }, (request, response) => {
      this.requests += 1
      this.handler(request, response)
    })
    this.#hosts.push(started)
    return started
  }

  async close(): Promise<void> {
    await Promise.all(this.#hosts.map(host => host.close()))
  }

  /** Makes the host send this response to every request. */
  respondWith(body: unknown, status = 200, headers: Record<string, string> = {}): void {
    this.handler = (_request, response) => {
      response.writeHead(status, { 'content-type': 'application/fhir+json', etag: 'W/"1"', ...headers })
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    }
  }

  async send(
    line: string,
    scope = 'patient/*.cruds',
    body?: unknown,
    on = this.running,
    more: object = {},
  ): Promise<HostAnswer> {
    const [method = '', url = ''] = line.split(' ')
    const type = typeof body === 'string' ? 'application/x-www-form-urlencoded' : 'application/fhir+json'
    const response = await fetch(`${on.url}/fhir${url}`, {
      method,
      headers: {
        authorization: auth.bearer({ scope, fhirUser: 'Practitioner/p1' }),
        ...(body !== undefined && { 'content-type': type }),
        ...more,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const outcome = text.startsWith('{"resourceType":"OperationOutcome"') ? JSON.parse(text) : undefined
    return {
      status: response.status,
      text,
      headers: response.headers,
      why: outcome?.issue[0].details?.text ?? '',
    }
  }
}

/** Answers on Node's own objects, as freely as a framework lets it. */
export type HostHandler = (request: IncomingMessage, response: ServerResponse) => void

interface RunningHost {
  readonly url: string
  close(): Promise<unknown>
}

const JSON_TYPES = ['application/fhir+json', 'application/json', 'application/json-patch+json']

/** Servers that answer whatever the test wants, guarded by nothing but the interceptor. */
export const leakyHosts: Readonly<
  Record<string, (options: HostOptions, handler: HostHandler) => Promise<RunningHost>>
> = {
  async express(options, handler) {
    const app = express()
    const interceptor = expressInterceptor(options)
    app.use(
      '/fhir',
      express.json({ type: JSON_TYPES }),
      express.urlencoded(),
      interceptor,
      interceptor.handleError,
    )
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
