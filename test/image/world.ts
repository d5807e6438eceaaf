import { mkdirSync } from 'node:fs'
import {
  createServer as createHttpServer,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { fhirServer, openRepository } from '../../src/backends/sqlite/index.ts'
import { samplePatients } from '../../src/sample-patients/index.ts'
import { createLogger } from '../../src/web/http/index.ts'
import type { TestCertificate } from '../support/certificate.ts'
import { startPostgres } from '../support/postgres.ts'
import { INGRESS_CONTROLLER } from './machine.ts'

/** What a setup finds around it: PostgreSQL, the FHIR server of somebody else, and a proxy that terminates TLS. */

export interface Place {
  readonly host: string
  readonly port: number
}

export interface Forward {
  close(): void
}

/** A TCP proxy, as a Service or a published port is. */
export async function forward(from: Place, to: Place): Promise<Forward> {
  const server = createServer(incoming => {
    const outgoing = connect(to)
    for (const [socket, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      socket.pipe(other)
      socket.on('error', () => other.destroy())
    }
  })
  await listen(server, from)
  return { close: () => void server.close() }
}

function listen(server: Server, { host, port }: Place): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve)
  })
}

/** PostgreSQL, which listens there too. Returns the URL for its administrator. */
export async function startDatabase(place: Place): Promise<{ readonly url: string; close(): Promise<void> }> {
  const postgres = await startPostgres()
  const { hostname: host, port } = new URL(postgres.url)
  const published = await forward(place, { host, port: Number(port) })
  return {
    url: postgres.url,
    close() {
      published.close()
      return postgres.stop()
    },
  }
}

/** A patient whose care team includes the Practitioner of the documented commands. */
const OWN_PATIENT = [
  { resourceType: 'Practitioner', id: 'practitioner-7', name: [{ family: 'Byron', given: ['Ada'] }] },
  {
    resourceType: 'CareTeam',
    id: 'own',
    status: 'active',
    subject: { reference: 'Patient/patient-1' },
    participant: [{ member: { reference: 'Practitioner/practitioner-7' } }],
  },
]

/** A FHIR server without access control, at this URL. */
export async function startUpstreamAt(
  baseUrl: string,
  { host, port }: Place,
  folder: string,
): Promise<{ close(): Promise<void> }> {
  mkdirSync(folder, { recursive: true })
  const dataFile = join(folder, 'fhir.db')
  const repository = openRepository({ file: dataFile, baseUrl })
  repository.load(samplePatients({ count: 2, now: Date.now() }))
  repository.load(OWN_PATIENT)
  repository.close()
  const logger = createLogger({ level: 'warn' })
  const app = await fhirServer({ baseUrl, dataFile, smartConfiguration: {}, logger })
  await app.listen({ host, port })
  return { close: () => app.close() }
}

interface Route {
  /** With its port, unless that is 443. */
  readonly host: string
  /** A prefix. */
  readonly path: string
  readonly backend: Place
}

/** The identity provider of the values: it answers what `check` asks. */
export async function startProvider(issuer: string, place: Place): Promise<{ close(): void }> {
  const { Provider } = await import('oidc-provider')
  const provider = new Provider(issuer, {})
  provider.proxy = true
  const server = createHttpServer(provider.callback())
  await listen(server, place)
  return {
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Terminates TLS for the public URLs, as an ingress controller does. */
export async function startIngress(
  { cert, key }: TestCertificate,
  place: Place,
  listRoutes: () => readonly Route[],
): Promise<{ close(): void }> {
  const server = createHttpsServer({ cert, key }, (incoming, outgoing) => {
    const { host = '' } = incoming.headers
    const path = incoming.url ?? '/'
    const [found] = listRoutes()
      .filter(route => route.host === host && startsWithPath(path, route.path))
      .toSorted((a, b) => b.path.length - a.path.length)
    if (!found) return void outgoing.writeHead(404).end('no route')
    pass(incoming, outgoing, found.backend)
  })
  await listen(server, place)
  return {
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

function startsWithPath(path: string, prefix: string): boolean {
  const folder = prefix.endsWith('/') ? prefix : `${prefix}/`
  return path.split('?')[0] === prefix || path.startsWith(folder)
}

function pass(incoming: IncomingMessage, outgoing: ServerResponse, { host, port }: Place): void {
  const { method, url: path, headers: received } = incoming
  const headers = {
    ...received,
    'x-forwarded-for': incoming.socket.remoteAddress ?? '',
    'x-forwarded-proto': 'https',
  }
  const sent = request({ host, port, method, path, headers, localAddress: INGRESS_CONTROLLER }, response => {
    outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders)
    response.pipe(outgoing)
  })
  sent.on('error', error => outgoing.writeHead(502).end(error.message))
  incoming.pipe(sent)
}

/** Whether a server answers so. */
export async function isOk(url: string): Promise<boolean> {
  try {
    const response = await fetch(url)
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}
