/**
 * `node bench/mcp.ts`: the tool `search` of the endpoint of assistants, and the same search by REST, with the same grants, access
 * control and audit. Exits 1 above a limit. Assistants of both versions of MCP take the same way.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAuditor, createFhirAudit } from '../src/audit/index.ts'
import { fhirServer, openRepository } from '../src/backends/sqlite/index.ts'
import { createInterceptor } from '../src/interceptor/index.ts'
import { authUrl, fhirBaseUrl, TestIssuer } from '../src/interceptor/testing/test-issuer.ts'
import { createCallCounter, createMcp } from '../src/mcp/index.ts'
import { createProposals } from '../src/proposals/index.ts'
import { samplePatients } from '../src/sample-patients/index.ts'
import { createSealer, openStore } from '../src/store/index.ts'
import { compare, compareCpu } from './shared/compare.ts'
import { type Served, serveContender, startContender } from './shared/contender.ts'
import { formatRequest } from './shared/load.ts'
import { reportServers } from './shared/report.ts'

const PATIENTS = 20
const MCP_URL = `${fhirBaseUrl}/mcp`
/** A tool call takes at most 1.3 times the CPU time that the search by REST takes. */
const LEAST = 0.77
const resources = [...samplePatients({ count: PATIENTS, now: Date.UTC(2026, 0, 1) })]
const ids = resources.filter(it => it.resourceType === 'Patient').map(it => it.id)

const WAYS = { rest: 'Sallyport, by REST', mcp: 'Sallyport, by MCP' } as const
type Way = keyof typeof WAYS

/** Of both ways, with the same parameters. */
const SEARCHES: Readonly<
  Record<string, { readonly type: string; readonly query: Readonly<Record<string, string>> }>
> = {
  'search, 20 Observations': { type: 'Observation', query: { category: 'laboratory', _sort: '-date' } },
  'search, 20 Conditions': { type: 'Condition', query: { 'clinical-status': 'active' } },
}

const [, , role] = process.argv
if (role === undefined) await measure()
else serveContender(await serve(role as Way))

async function measure(): Promise<void> {
  const { filename } = import.meta
  const contenders = [
    await startContender(WAYS.rest, filename, ['rest']),
    await startContender(WAYS.mcp, filename, ['mcp']),
  ]
  const requests = Object.fromEntries(Object.keys(SEARCHES).map(name => [name, 400]))
  const measured = await compare(contenders, { requests, connections: 16, warmRounds: 8, rounds: 31 })
  await reportServers(
    'assistants',
    measured.map(it => {
      const rest = measured.find(other => other.server === WAYS.rest && other.request === it.request)
      const goal = rest && it.server === WAYS.mcp && { goal: { value: compareCpu(it, rest), least: LEAST } }
      return { ...it, ...goal, request: `assistants: ${it.request}` }
    }),
  )
}

async function serve(way: Way): Promise<Served> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const dataFile = join(folder, 'fhir.db')
  const repository = openRepository({ file: dataFile, baseUrl: fhirBaseUrl })
  repository.load(resources)
  repository.close()
  const issuer = new TestIssuer()
  const { fetch, clock } = issuer
  const store = await openStore(`sqlite:${join(folder, 'audit.db')}`)
  const interceptor = createInterceptor({ authUrl, fhirBaseUrl, fetch, clock })
  const app = await fhirServer({
    baseUrl: fhirBaseUrl,
    dataFile,
    smartConfiguration: {},
    guard: interceptor,
    audit: createFhirAudit({ auditor: createAuditor({ store }), store, fhirBaseUrl }),
    ways: [
      createMcp({
        baseUrl: fhirBaseUrl,
        version: '1.0.0',
        guard: interceptor.forAudience(MCP_URL),
        metadataUrl: 'http://localhost:8080/.well-known/oauth-protected-resource/fhir/mcp',
        scopes: [],
        acceptsOrigin: () => false,
        calls: createCallCounter(1_000_000),
        proposals: {
          store,
          proposals: createProposals(createSealer('secret')),
          lifetimeMs: 0,
          url: `${authUrl}/proposals`,
        },
      }),
    ],
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const aud = way === 'mcp' ? MCP_URL : fhirBaseUrl
  const tokens = ids.map(patient => issuer.bearer({ scope: 'patient/*.rs', patient, aud }))
  return {
    port: (app.server.address() as AddressInfo).port,
    makeRequests: async (kind, count) =>
      Array.from({ length: count }, (_, at) => makeRequest(way, kind, tokens[at % tokens.length] ?? '')),
  }
}

function makeRequest(way: Way, kind: string, authorization: string): string {
  const { type, query } = SEARCHES[kind] ?? { type: '', query: {} }
  const headers = { host: 'localhost:8080', authorization }
  if (way === 'rest') {
    const search = new URLSearchParams({ ...query, _count: '20' })
    return formatRequest(`GET /fhir/${type}?${search}`, headers)
  }
  const params = { name: 'search', arguments: { type, parameters: query, count: 20 } }
  return formatRequest(
    'POST /fhir/mcp',
    { ...headers, 'content-type': 'application/json', 'mcp-protocol-version': '2025-11-25' },
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  )
}
