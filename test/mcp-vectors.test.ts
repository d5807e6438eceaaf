/** The endpoint of assistants is a second way in for requests, never a second decision: every vector, by REST and by MCP. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { Agent, request as ask, type IncomingMessage } from 'node:http'
import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, describe, it } from 'node:test'
import type { KeptRecord } from '../src/audit/index.ts'
import { isResourceType, type Resource } from '../src/fhir/index.ts'
import type { WayIn } from '../src/fhir-api/index.ts'
import type { Interceptor } from '../src/interceptor/index.ts'
import { fhirBaseUrl } from '../src/interceptor/testing/test-issuer.ts'
import { bearerOf, type TestCaller } from './support/guarded-fhir.ts'
import { type McpServer, startMcp } from './support/mcp.ts'

interface Vector {
  readonly id: string
  readonly request: { readonly method: string; readonly url: string; readonly body?: unknown }
  readonly scope: string | readonly string[]
  readonly context: { readonly patient?: string; readonly fhirUser?: string }
  readonly settings: {
    readonly searchLetter: 'r' | 's'
    readonly contexts: readonly ('patient' | 'user' | 'system')[]
  }
}

interface VectorFile {
  readonly resources?: readonly Resource[]
  readonly vectors?: readonly Vector[]
}

const FOLDER = resolve(import.meta.dirname, '../vectors')
const files = globSync('*.json', { cwd: FOLDER }).map(name => ({
  name,
  ...(JSON.parse(readFileSync(resolve(FOLDER, name), 'utf8')) as VectorFile),
}))

/** What a request came to. */
interface Outcome {
  /** Of the response. Undefined for a tool, whose result has none. */
  readonly status: number | undefined
  readonly shown: readonly string[] | undefined
  /** The decision, as the audit trail keeps it. */
  readonly decisions: readonly object[]
}

/** JSON-RPC 2.0, 5.1. */
const INVALID_PARAMS = -32602

/** A way in for the requests that no tool makes. */
const RAW_URL = `${fhirBaseUrl}/raw`
const openRaw = (interceptor: Interceptor): readonly WayIn[] => [
  {
    path: '/raw',
    guard: interceptor.forAudience(RAW_URL),
    serve(app, entrance) {
      app.removeAllContentTypeParsers()
      app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
      app.post('/', async (request, reply) => {
        const caller = await entrance.authenticate(request)
        if (!caller.allowed) return reply.code(caller.status).send()
        const inner = JSON.parse(String(request.body))
        const response = await entrance.perform(request, caller, { ...inner, tool: 'raw' })
        return reply.code(response.status).send(response.body)
      })
    },
  },
]

const agent = new Agent({ keepAlive: true })
after(() => agent.destroy())

/** Servers with the same data: one is asked by REST, the other by MCP. */
class Pair {
  readonly rest: McpServer
  readonly mcp: McpServer
  readonly #seen = new Map<McpServer, number>()

  readonly #port: number

  private constructor(rest: McpServer, mcp: McpServer, port: number) {
    this.rest = rest
    this.mcp = mcp
    this.#port = port
  }

  static async start({ settings }: Vector, resources: readonly Resource[]): Promise<Pair> {
    const policy = { searchPermission: settings.searchLetter, contexts: settings.contexts }
    const options = { policy, ways: openRaw }
    const rest = await startMcp(resources, options)
    const { port } = new URL(await rest.app.listen({ port: 0, host: '127.0.0.1' }))
    const pair = new Pair(rest, await startMcp(resources, options), Number(port))
    for (const server of [pair.rest, pair.mcp]) await pair.#takeDecisions(server)
    return pair
  }

  /** Over a socket, which does not normalize paths. */
  async askByRest({ request, ...vector }: Vector): Promise<Outcome> {
    const { method, url, body } = request
    const headers = { authorization: bearerOf(makeCaller(vector)), ...makeHeaders(request) }
    const payload = body === undefined ? undefined : JSON.stringify(body)
    const sent = ask({
      port: this.#port,
      host: '127.0.0.1',
      method,
      path: `/fhir${url}`,
      headers,
      agent,
    }).end(payload)
    const [reply] = (await once(sent, 'response')) as [IncomingMessage]
    const received = await text(reply)
    return {
      status: reply.statusCode,
      shown: listShown(received),
      decisions: await this.#takeDecisions(this.rest),
    }
  }

  async askByMcp({ request, ...vector }: Vector): Promise<Outcome> {
    const claims = makeCaller(vector)
    const call = toCall(request)
    if (!call) return this.#askRaw(request, claims)
    const { body } = await this.mcp.request('tools/call', call, claims)
    // The token can use no such tool.
    if (body.error?.code === INVALID_PARAMS) return this.#askRaw(request, claims)
    const content = body.result?.isError === true ? undefined : body.result?.structuredContent
    const { rows, resource } = (content ?? {}) as {
      rows?: readonly { readonly reference: string }[]
      resource?: Resource
    }
    const shown = resource ? listReferences([resource]) : rows?.map(row => hideNewId(row.reference)).sort()
    // The tool looks up the parameters of a type whose search fails.
    const decisions = (await this.#takeDecisions(this.mcp)).filter(it => it.decided_by !== 'public')
    return { status: undefined, shown, decisions }
  }

  async #askRaw(request: Vector['request'], caller: TestCaller): Promise<Outcome> {
    const { method, url, body } = request
    const claims = { ...caller, aud: RAW_URL }
    const reply = await this.mcp.app.inject({
      method: 'POST',
      url: '/fhir/raw',
      headers: { authorization: bearerOf(claims) },
      payload: JSON.stringify({ method, url, body, headers: makeHeaders(request) }),
    })
    return {
      status: reply.statusCode,
      shown: listShown(reply.body),
      decisions: await this.#takeDecisions(this.mcp),
    }
  }

  async #takeDecisions(server: McpServer): Promise<readonly Decided[]> {
    const records = (await server.listRecords(1_000)).filter(({ id }) => id > (this.#seen.get(server) ?? 0))
    this.#seen.set(server, records[0]?.id ?? this.#seen.get(server) ?? 0)
    // That the token cannot use a tool is no decision about a request.
    return records.filter(({ interaction }) => interaction !== 'call').map(describeDecision)
  }

  async close(): Promise<void> {
    await Promise.all([this.rest.close(), this.mcp.close()])
  }
}

function makeCaller({
  scope,
  context: { patient, fhirUser },
}: Pick<Vector, 'scope' | 'context'>): TestCaller {
  return {
    scope: scope as string,
    patient,
    ...(fhirUser !== undefined && { fhirUser }),
  }
}

function makeHeaders({ method, body }: Vector['request']): Readonly<Record<string, string>> {
  // Otherwise a Binary is its content.
  const accept = 'application/fhir+json'
  if (body === undefined) return { accept }
  const isJsonPatch = method === 'PATCH' && Array.isArray(body)
  return { accept, 'content-type': isJsonPatch ? 'application/json-patch+json' : 'application/fhir+json' }
}

function listShown(sent: string): readonly string[] | undefined {
  if (sent === '') return undefined
  const { resourceType, id, entry = [] } = JSON.parse(sent)
  if (resourceType === 'OperationOutcome') return undefined
  return resourceType === 'Bundle'
    ? listReferences(entry.map((it: { resource?: Resource }) => it.resource))
    : listReferences([{ resourceType, id }])
}

function listReferences(resources: readonly (Resource | undefined)[]): readonly string[] {
  return resources
    .filter(it => it !== undefined)
    .filter(it => it.resourceType !== 'OperationOutcome')
    .map(it => hideNewId(`${it.resourceType}/${it.id}`))
    .sort()
}

/** New ids are random. */
function hideNewId(reference: string): string {
  return reference.replace(/[0-9a-f]{8}-[0-9a-f-]{27}$/, 'new')
}

interface Decided {
  readonly decided_by: KeptRecord['decided_by']
  readonly [column: string]: unknown
}

function describeDecision(record: KeptRecord): Decided {
  const { allowed, status, decided_by, reason, interaction, resource_type, resource_id, patient_id } = record
  const id = hideNewId(resource_id ?? '')
  return { allowed, status, decided_by, reason, interaction, resource_type, id, patient_id }
}

/** Parameters that the tool `search` does not take. */
const NOT_OF_TOOL = /^_(format|summary|elements|count|pretty)$/

/** The call of a tool that makes the request, if there is one. */
function toCall({
  method,
  url,
}: Vector['request']): { readonly name: string; readonly arguments: object } | undefined {
  if (method !== 'GET') return undefined
  const [, reference, version] =
    /^\/([A-Z][A-Za-z]+\/[A-Za-z0-9.-]{1,64})(?:\/_history\/([A-Za-z0-9.-]{1,64}))?$/.exec(url) ?? []
  if (reference !== undefined && isResourceType(reference.split('/')[0] ?? ''))
    return { name: 'read', arguments: { reference, ...(version !== undefined && { version }) } }
  const [, type, query = ''] = /^\/([A-Z][A-Za-z]+)(?:\?([^#%+]*))?$/.exec(url) ?? []
  if (type === undefined || !isResourceType(type)) return undefined
  const pairs = [...new URLSearchParams(query)]
  if (pairs.some(([name]) => name === '' || NOT_OF_TOOL.test(name))) return undefined
  const parameters = Object.fromEntries(
    pairs.map(([name]) => [name, pairs.filter(([other]) => other === name).map(([, value]) => value)]),
  )
  return { name: 'search', arguments: { type, parameters } }
}

/** Requests that HTTP carries but the entrance of other ways in does not: methods, forms, what an HTTP server refuses. */
function canCompare({ request: { method, url, body }, scope, context }: Vector): boolean {
  return (
    /^(GET|POST)$/.test(method) &&
    typeof body !== 'string' &&
    /^[\x21-\x5b\x5d-\x7e]*$/.test(url) &&
    !/[\t\n]/.test(String(scope)) &&
    context.patient !== ''
  )
}

const byTool = { count: 0 }
for (const { name, resources = [], vectors = [] } of files)
  if (vectors.length > 0)
    describe(`the vectors of ${name} by MCP`, () => {
      const pairs = new Map<string, Promise<Pair>>()
      after(async () => {
        for (const pair of pairs.values()) await (await pair).close()
      })

      it('get the decisions and show the ids that they get and show by REST (MCP-5)', async () => {
        for (const vector of vectors.filter(canCompare)) {
          const key = JSON.stringify(vector.settings)
          const pair = await (pairs.get(key) ?? Pair.start(vector, resources))
          pairs.set(key, Promise.resolve(pair))
          const [rest, mcp] = [await pair.askByRest(vector), await pair.askByMcp(vector)]
          const { method, url } = vector.request
          const title = `${vector.id}: ${method} ${url} with ${vector.scope}`
          if (mcp.status === undefined) byTool.count += 1
          else assert.equal(mcp.status, rest.status, title)
          if (method === 'GET') assert.deepEqual(mcp.shown, rest.shown, title)
          assert.deepEqual(mcp.decisions, rest.decisions, title)
        }
      })
    })

describe('the vectors by MCP', () => {
  it('are mostly requests that a tool makes', () => {
    assert.ok(byTool.count > 200, String(byTool.count))
  })
})
