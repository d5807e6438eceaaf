/**
 * `node bench/gateway.ts`: requests through the gateway with full enforcement, without and with the audit trail, beside
 * `@fastify/http-proxy` and nginx (where it is installed), which check nothing. All are in front of the same upstream. Each of
 * many apps requests its own patient: the same response repeatedly, a response that is new each time, and a search. The
 * goals compare the CPU time of main threads, because other threads flush audit records and move them to the trail.
 */
import { spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import httpProxy from '@fastify/http-proxy'
import fastify, { type FastifyInstance } from 'fastify'
import { createAuditor, createFhirAudit } from '../src/audit/index.ts'
import { createGateway } from '../src/backends/upstream/index.ts'
import { createInterceptor } from '../src/interceptor/index.ts'
import { authUrl, TestIssuer } from '../src/interceptor/testing/test-issuer.ts'
import { samplePatients } from '../src/sample-patients/index.ts'
import type { EnforcementPolicy, Panel } from '../src/smart/index.ts'
import { openStore } from '../src/store/index.ts'
import { freePorts } from '../test/support/free-ports.ts'
import { compare, compareMain } from './shared/compare.ts'
import {
  type Contender,
  getVersion,
  readTreeUsage,
  type Served,
  serveContender,
  startContender,
} from './shared/contender.ts'
import { formatRequest } from './shared/load.ts'
import { reportServers } from './shared/report.ts'

const ENTRIES = 20
const SEARCH = `search, ${ENTRIES} entries`
const USER_READ = 'read by a user with access to all'
/** The care teams of the clinician, then the page. */
const PANEL = 120
const PANEL_SEARCH = `search, ${ENTRIES} entries, by a clinician with ${PANEL} patients`
/** Sallyport's requests per CPU second of the main thread, relative to those of `@fastify/http-proxy`. */
const GOALS: Readonly<Record<string, number>> = {
  read: 1,
  'read, new response': 0.8,
  [SEARCH]: 1 / 2.2,
  [PANEL_SEARCH]: 1 / 3.5,
}
const patients = [...samplePatients({ count: 60, now: Date.UTC(2026, 0, 1) })].filter(
  it => it.resourceType === 'Patient',
)
// Not the URL that the gateway listens on here: only the audience of the token has to match.
const baseUrl = 'http://gateway.test/fhir'
// As long as an access token.
const NO_TOKEN = 'x'.repeat(700)
const METADATA = JSON.stringify({ resourceType: 'CapabilityStatement', fhirVersion: '4.0.1', rest: [] })

const CLINICIAN = 'Practitioner/practitioner-2'
const OWN_TEAMS: Panel = {
  patients: new Set<string>(),
  organizations: [],
  careTeams: [],
  member: { type: 'Practitioner', id: 'practitioner-2' },
}

const [, , role, upstreamUrl = ''] = process.argv

async function measure(): Promise<void> {
  const file = import.meta.filename
  const upstream = await startContender('upstream', file, ['upstream'])
  const url = `http://127.0.0.1:${upstream.port}/fhir`
  const proxy = `@fastify/http-proxy ${getVersion('@fastify/http-proxy')}, no check`
  const measured = await compare(
    [
      await startContender('Sallyport, gateway', file, ['gateway', url]),
      await startContender('Sallyport, gateway, audited', file, ['audited', url]),
      await startContender(proxy, file, ['http-proxy', url]),
      ...(await startNginx(url)),
    ],
    {
      requests: {
        read: 3_200,
        'read, new response': 3_200,
        [SEARCH]: 1_600,
        [USER_READ]: 3_200,
        [PANEL_SEARCH]: 400,
      },
      connections: 64,
      warmRounds: 8,
      rounds: 15,
    },
  )
  await upstream.stop()
  const findProxy = (kind: string) => measured.find(it => it.request === kind && it.server === proxy)
  await reportServers(
    'peers',
    measured.map(it => {
      const least = it.server.startsWith('Sallyport') ? GOALS[it.request] : undefined
      const peer = findProxy(it.request)
      const goal = peer && least !== undefined ? { value: compareMain(it, peer), least } : undefined
      return { ...it, request: `gateway: ${it.request}`, goal }
    }),
  )
}

function serve(as: string): Promise<Served> {
  if (as === 'upstream') return serveUpstream()
  return as === 'http-proxy' ? serveProxy() : serveGateway(as === 'audited')
}

async function serveUpstream(): Promise<Served> {
  const bodies = new Map(patients.map(patient => [patient.id, JSON.stringify(patient)]))
  let version = 0
  const server = createServer(({ url = '' }, response) => {
    const id = /Patient(?:\/|%2F)([\w-]+)/.exec(url)?.[1] ?? ''
    const panel = answerPanelSearch(decodeURIComponent(url))
    const stored = bodies.get(id) ?? METADATA
    const changed = isNewEachTime(id) ? stored.replace('{', `{"meta":{"versionId":"${++version}"},`) : stored
    const body = panel ?? (url.includes('Condition') ? formatPage(makeConditions(id)) : changed)
    response
      .writeHead(200, {
        'content-type': 'application/fhir+json',
        etag: 'W/"1"',
        'content-length': Buffer.byteLength(body),
      })
      .end(body)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port, makeRequests: async () => [] }
}

/** Every second patient. */
function isNewEachTime(id?: string): boolean {
  return patients.findIndex(patient => patient.id === id) % 2 === 1
}

/** Undefined for any other request. The gateway also tries chains, with an id that nobody has. */
function answerPanelSearch(url: string): string | undefined {
  if (url.includes('CareTeam?participant=')) return TEAMS
  if (url.includes('_has:CareTeam:patient:_id=')) return formatPage(ofPanel)
  return /_has:|\.organization=/.test(url) ? formatPage([]) : undefined
}

const ofPanel = Array.from({ length: PANEL }, (_, at) => makeConditions(`panel-${at}`).slice(0, 1))
  .flat()
  .slice(0, ENTRIES + 1)
const TEAMS = formatPage(
  Array.from({ length: PANEL }, (_, at) => ({
    resourceType: 'CareTeam',
    id: `team-${at}`,
    status: 'active',
    subject: { reference: `Patient/panel-${at}` },
    participant: [{ member: { reference: CLINICIAN } }],
  })),
)

function makeConditions(patient: string) {
  return Array.from({ length: ENTRIES }, (_, at) => ({
    resourceType: 'Condition',
    id: `${patient}-${at}`,
    meta: { versionId: '1' },
    subject: { reference: `Patient/${patient}` },
    code: { text: 'Hypertension' },
  }))
}

function formatPage(resources: readonly { readonly resourceType: string; readonly id: string }[]): string {
  const entry = resources.map(resource => ({
    fullUrl: `http://upstream.test/fhir/${resource.resourceType}/${resource.id}`,
    search: { mode: 'match' },
    resource,
  }))
  // As HAPI, which gives each page an id and a time of its own.
  const meta = { lastUpdated: new Date().toISOString() }
  return JSON.stringify({
    resourceType: 'Bundle',
    id: randomUUID(),
    meta,
    type: 'searchset',
    total: resources.length,
    entry,
  })
}

async function serveProxy(): Promise<Served> {
  const app = fastify()
  const upstream = new URL(upstreamUrl).origin
  await app.register(httpProxy, { upstream, prefix: '/fhir', rewritePrefix: '/fhir' })
  return listen(app, [])
}

async function serveGateway(isAudited: boolean): Promise<Served> {
  const issuer = new TestIssuer()
  const { fetch, clock } = issuer
  const contexts = ['patient', 'user'] as const
  const guard = createInterceptor({ authUrl, fhirBaseUrl: baseUrl, fetch, clock, contexts, userFilter })
  const audit = isAudited ? await createAudit() : undefined
  const options = { profile: 'strict', smartConfiguration: {} } as const
  const app = await createGateway({ baseUrl, upstreamUrl, guard, audit, ...options })
  const scope = 'patient/Patient.rs patient/Condition.rs'
  const tokens = patients.map(({ id }) => issuer.token({ aud: baseUrl, scope, patient: id }))
  const user = { aud: baseUrl, scope: 'user/*.rs', fhirUser: 'Practitioner/practitioner-1' }
  const userTokens = patients.map(() => issuer.token(user))
  const panelTokens = patients.map(() => issuer.token({ ...user, fhirUser: CLINICIAN }))
  return listen(app, tokens, { [USER_READ]: userTokens, [PANEL_SEARCH]: panelTokens })
}

/** One clinician sees all patients, the other the patients of their care teams. */
const userFilter: NonNullable<EnforcementPolicy['userFilter']> = ({ id }, type) =>
  CLINICIAN.endsWith(id) && type === 'Condition' ? [{ panel: OWN_TEAMS }] : 'everything'

async function createAudit() {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const store = await openStore(`sqlite:${join(folder, 'audit.db')}`)
  return createFhirAudit({ auditor: createAuditor({ store }), store, fhirBaseUrl: baseUrl })
}

async function listen(
  app: FastifyInstance,
  tokens: readonly string[],
  ofKinds: Readonly<Record<string, readonly string[]>> = {},
): Promise<Served> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  return {
    port,
    makeRequests: async (kind, count) => makeRequests(kind, count, ofKinds[kind] ?? tokens),
  }
}

function makeRequests(kind: string, count: number, tokens: readonly string[]): string[] {
  const texts = patients
    .map(({ id }, at) => ({ id, authorization: `Bearer ${tokens[at] ?? NO_TOKEN}` }))
    .filter(({ id }) => isNewEachTime(id) === (kind === 'read, new response'))
    .map(({ id, authorization }) => {
      const paths: Readonly<Record<string, string>> = {
        [SEARCH]: `Condition?patient=Patient/${id}`,
        [PANEL_SEARCH]: `Condition?_count=${ENTRIES}`,
      }
      return formatRequest(`GET /fhir/${paths[kind] ?? `Patient/${id}`}`, {
        host: 'gateway.test',
        authorization,
      })
    })
  return Array.from({ length: count }, (_, at) => texts[at % texts.length] ?? '')
}

/** Folders that nginx creates, whether it needs them or not. */
const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']

async function startNginx(url: string): Promise<readonly Contender[]> {
  const { error, stderr } = spawnSync('nginx', ['-v'], { encoding: 'utf8' })
  if (error) {
    process.stdout.write('nginx is not installed here\n')
    return []
  }
  const folder = mkdtempSync(join(tmpdir(), 'nginx-bench-'))
  const [port = 0] = await freePorts(1)
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error; events {}
http { access_log off; keepalive_requests 1000000;
${TEMPORARY.map(name => `${name}_temp_path ${folder}/${name};`).join(' ')} 
upstream u { server ${new URL(url).host}; keepalive 64; keepalive_requests 1000000; }
server { listen 127.0.0.1:${port}; location / { proxy_pass http://u; proxy_http_version 1.1; proxy_set_header Connection ""; } } }`,
  )
  const child = spawn('nginx', ['-c', file, '-p', folder], { stdio: 'ignore' })
  await pause(300)
  return [
    {
      name: `nginx ${/\/([\d.]+)/.exec(stderr)?.[1]}, no check`,
      port,
      makeRequests: async (kind, count) => makeRequests(kind, count, []),
      readUsage: () => readTreeUsage(child.pid ?? 0),
      stop() {
        child.kill()
        rmSync(folder, { recursive: true, force: true })
      },
    },
  ]
}

if (role === undefined) await measure()
else serveContender(await serve(role))
