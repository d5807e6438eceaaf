/**
 * `BENCH_UPSTREAM_URL=http://localhost:8888/fhir npm run bench -- upstream`: reads and searches through the gateway, without and
 * with the audit trail, beside the same requests sent to that server directly and through `@fastify/http-proxy`, which checks
 * nothing. The servers take turns, and the ratio of the rates is the median of the rounds, because other load on the machine
 * changes from round to round. Stores one patient with Observations on the server.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import httpProxy from '@fastify/http-proxy'
import { fastify } from 'fastify'
import { createAuditor, createFhirAudit } from '../src/audit/index.ts'
import { createGateway } from '../src/backends/upstream/index.ts'
import { createInterceptor } from '../src/interceptor/index.ts'
import { authUrl, TestIssuer } from '../src/interceptor/testing/test-issuer.ts'
import { openStore } from '../src/store/index.ts'
import { compare, compareRates } from './shared/compare.ts'
import { type Contender, type Served, serveContender, startContender } from './shared/contender.ts'
import { formatRequest } from './shared/load.ts'
import { reportServers } from './shared/report.ts'

/**
 * The rate of reads through the gateway, relative to that through a proxy that checks nothing. Compared with the upstream
 * itself, both have about 0.58 of its rate on two cores that they share with it and with the load generator.
 */
const GOALS: Readonly<Record<string, number>> = {
  'Sallyport, gateway': 0.9,
  'Sallyport, gateway, audited': 0.7,
}
const PROXY = '@fastify/http-proxy, no check'
const PATIENT = 'bench-upstream'
const OBSERVATIONS = 94
const PATHS: Readonly<Record<string, string>> = {
  read: `Patient/${PATIENT}`,
  'search of 20': `Observation?patient=Patient/${PATIENT}&_count=20`,
}
const { BENCH_UPSTREAM_URL: upstreamUrl = '' } = process.env
// Not the URL that the gateway listens on here: only the audience of the token has to match.
const baseUrl = 'http://gateway.test/fhir'
const [, , role] = process.argv

async function measure(): Promise<void> {
  await storeRecord()
  const file = import.meta.filename
  const measured = await compare(
    [
      await startContender('Sallyport, gateway', file, ['gateway']),
      await startContender('Sallyport, gateway, audited', file, ['audited']),
      await startContender(PROXY, file, ['http-proxy']),
      startUpstream(),
    ],
    { requests: { read: 1_500, 'search of 20': 100 }, connections: 16, warmRounds: 3, rounds: 7 },
  )
  await reportServers(
    'upstream',
    measured.map(it => {
      const least = it.request === 'read' ? GOALS[it.server] : undefined
      const proxy = measured.find(other => other.request === it.request && other.server === PROXY)
      return { ...it, goal: least && proxy ? { value: compareRates(it, proxy), least } : undefined }
    }),
  )
}

async function storeRecord(): Promise<void> {
  const entry = [
    {
      resourceType: 'Patient',
      id: PATIENT,
      name: [{ family: 'Bench', given: ['Una'] }],
      birthDate: '1970-01-01',
    },
    ...Array.from({ length: OBSERVATIONS }, (_, at) => ({
      resourceType: 'Observation',
      id: `${PATIENT}-${at}`,
      status: 'final',
      code: { text: 'Weight' },
      subject: { reference: `Patient/${PATIENT}` },
      valueQuantity: { value: 60 + at / 10, unit: 'kg' },
    })),
  ].map(resource => ({
    resource,
    request: { method: 'PUT', url: `${resource.resourceType}/${resource.id}` },
  }))
  const response = await fetch(upstreamUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/fhir+json' },
    body: JSON.stringify({ resourceType: 'Bundle', type: 'transaction', entry }),
  })
  if (!response.ok) throw new Error(`Cannot bench: ${upstreamUrl} answers ${await response.text()}`)
}

/** Searches as fresh as those of the gateway. */
function startUpstream(): Contender {
  const { port, host, pathname } = new URL(upstreamUrl)
  const headers = { host, 'cache-control': 'no-cache' }
  return {
    name: 'the upstream itself',
    port: Number(port),
    makeRequests: async (kind, count) =>
      Array.from({ length: count }, () => formatRequest(`GET ${pathname}/${PATHS[kind]}`, headers)),
    // It may be on another host.
    readUsage: () => ({ cpu: 0, main: 0 }),
    stop: () => {},
  }
}

async function serveGateway(isAudited: boolean): Promise<Served> {
  const issuer = new TestIssuer()
  const { fetch, clock } = issuer
  const guard = createInterceptor({
    authUrl,
    fhirBaseUrl: baseUrl,
    fetch,
    clock,
    contexts: ['patient', 'user'],
  })
  const audit = isAudited ? await createAudit() : undefined
  const app = await createGateway({ baseUrl, upstreamUrl, guard, smartConfiguration: {}, audit })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const token = issuer.token({ aud: baseUrl, scope: 'user/*.rs', fhirUser: 'Practitioner/1' })
  const headers = { host: 'gateway.test', authorization: `Bearer ${token}` }
  return {
    port,
    makeRequests: async (kind, count) =>
      Array.from({ length: count }, () => formatRequest(`GET /fhir/${PATHS[kind]}`, headers)),
  }
}

async function serveProxy(): Promise<Served> {
  const { origin, pathname, host } = new URL(upstreamUrl)
  const app = fastify()
  await app.register(httpProxy, { upstream: origin, prefix: pathname, rewritePrefix: pathname })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  return {
    port,
    makeRequests: async (kind, count) =>
      Array.from({ length: count }, () => formatRequest(`GET ${pathname}/${PATHS[kind]}`, { host })),
  }
}

async function createAudit() {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const store = await openStore(`sqlite:${join(folder, 'audit.db')}`)
  return createFhirAudit({ auditor: createAuditor({ store }), store, fhirBaseUrl: baseUrl })
}

if (role === undefined) await measure()
else if (role === 'http-proxy') serveContender(await serveProxy())
else serveContender(await serveGateway(role === 'audited'))
