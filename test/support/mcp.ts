import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { Value } from 'typebox/value'
import { createAuditor, createFhirAudit, findRecords, type KeptRecord } from '../../src/audit/index.ts'
import { fhirServer } from '../../src/backends/sqlite/index.ts'
import { DAY_MS } from '../../src/core/index.ts'
import { listGatewayOperations, type Resource } from '../../src/fhir/index.ts'
import type { WayIn } from '../../src/fhir-api/index.ts'
import { createInterceptor, type Interceptor } from '../../src/interceptor/index.ts'
import { authUrl, fhirBaseUrl, TestIssuer } from '../../src/interceptor/testing/test-issuer.ts'
import { createCallCounter, createMcp, TOOLS } from '../../src/mcp/index.ts'
import { createProposals } from '../../src/proposals/index.ts'
import type { EnforcementPolicy } from '../../src/smart/index.ts'
import { createSealer, type Store } from '../../src/store/index.ts'
import { openSqliteStore } from './sqlite-store.ts'

export const MCP_URL = `${fhirBaseUrl}/mcp`

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

export interface McpReply {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: {
    readonly result?: Readonly<Record<string, unknown>> & {
      readonly content?: readonly { readonly text: string }[]
      readonly structuredContent?: Readonly<Record<string, unknown>>
      readonly isError?: boolean
      readonly tools?: readonly { readonly name: string }[]
    }
    readonly error?: { readonly code: number; readonly message: string; readonly data?: object }
  }
}

/** A FHIR server with the MCP endpoint, and tokens for it. */
export interface McpServer {
  readonly app: FastifyInstance
  readonly store: Store
  /** Sends a message as it is. */
  send(message: unknown, claims: object | undefined, headers?: object): Promise<McpReply>
  /** Sends a request of MCP 2026-07-28. */
  request(method: string, params: object, claims: object, headers?: object): Promise<McpReply>
  /** Calls a tool, and returns its result, whose content conforms to the schema of the tool. */
  call(tool: string, given: object, claims: object): Promise<NonNullable<McpReply['body']['result']>>
  /** Sends a FHIR request to the FHIR base with the same claims. */
  fetch(url: string, claims: object): Promise<{ readonly status: number; readonly body: Resource }>
  /** The newest records of the audit trail, newest first. */
  listRecords(limit: number): Promise<readonly KeptRecord[]>
  close(): Promise<unknown>
}

export async function startMcp(
  resources: readonly Resource[],
  options: {
    readonly callsPerMinute?: number
    readonly policy?: Partial<EnforcementPolicy>
    /** Further ways in, by the interceptor. */
    readonly ways?: (interceptor: Interceptor) => readonly WayIn[]
  } = {},
): Promise<McpServer> {
  const issuer = new TestIssuer()
  const { fetch, clock } = issuer
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-mcp-'))
  const store = await openSqliteStore(`sqlite:${join(folder, 'trail.db')}`)
  const auditor = createAuditor({ store })
  for (const id of ['c-1', 'c-2'])
    await store.db
      .insertInto('clinician')
      .values({ id, username: id, password_hash: '', display_name: id, fhir_user_id: id })
      .execute()
  const interceptor = createInterceptor({
    authUrl,
    fhirBaseUrl,
    fetch,
    clock,
    contexts: ['patient', 'user', 'system'],
    operations: listGatewayOperations(),
    ...options.policy,
  })
  const app = await fhirServer({
    baseUrl: fhirBaseUrl,
    dataFile: ':memory:',
    guard: interceptor,
    audit: createFhirAudit({ auditor, store, fhirBaseUrl }),
    smartConfiguration: {},
    clock,
    ways: [
      createMcp({
        baseUrl: fhirBaseUrl,
        version: '1.2.3',
        guard: interceptor.forAudience(MCP_URL),
        metadataUrl: 'http://localhost:8080/.well-known/oauth-protected-resource/fhir/mcp',
        scopes: ['launch/patient', 'patient/Patient.rs'],
        acceptsOrigin: origin => origin === 'http://localhost:8080',
        calls: createCallCounter(options.callsPerMinute ?? 100_000),
        proposals: {
          store,
          proposals: createProposals(createSealer('secret')),
          lifetimeMs: 7 * DAY_MS,
          url: `${authUrl}/proposals`,
        },
      }),
      ...(options.ways?.(interceptor) ?? []),
    ],
  })
  const bearers = new Map<string, string>()
  const bearer = (claims: object) => {
    const key = JSON.stringify(claims)
    const made = bearers.get(key) ?? issuer.bearer({ ...claims })
    bearers.set(key, made)
    return made
  }
  const system = bearer({ scope: 'system/*.cruds', patient: undefined })
  for (const resource of resources) {
    const url = `/fhir/${resource.resourceType}/${resource.id}`
    const headers = { authorization: system, 'content-type': 'application/fhir+json' }
    const { statusCode, body } = await app.inject({
      method: 'PUT',
      url,
      headers,
      payload: JSON.stringify(resource),
    })
    assert.ok(statusCode < 300, body)
  }
  const send: McpServer['send'] = async (message, claims, headers = {}) => {
    const reply = await app.inject({
      method: 'POST',
      url: '/fhir/mcp',
      headers: {
        'content-type': 'application/json',
        ...(claims && { authorization: bearer({ aud: MCP_URL, ...claims }) }),
        ...headers,
      },
      payload: typeof message === 'string' ? message : JSON.stringify(message),
    })
    return { status: reply.statusCode, headers: reply.headers, body: reply.body === '' ? {} : reply.json() }
  }
  const request: McpServer['request'] = (method, params, claims, headers = {}) => {
    const { name, uri }: { name?: string; uri?: string } = params
    const named = name ?? uri
    return send({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } }, claims, {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(named !== undefined && { 'mcp-name': named }),
      ...headers,
    })
  }
  return {
    app,
    store,
    send,
    request,
    async call(name, given, claims) {
      const { status, body } = await request('tools/call', { name, arguments: given }, claims)
      assert.equal(status, 200, JSON.stringify(body))
      assert.ok(body.result, JSON.stringify(body))
      const { structuredContent, isError } = body.result
      const tool = TOOLS.find(it => it.name === name)
      assert.ok(tool)
      if (!isError) assert.deepEqual([...Value.Errors(tool.output, structuredContent)], [])
      return body.result
    },
    async fetch(url, claims) {
      const reply = await app.inject({
        method: 'GET',
        url: `/fhir${url}`,
        headers: { authorization: bearer(claims) },
      })
      return { status: reply.statusCode, body: reply.json() }
    },
    async listRecords(limit) {
      await auditor.flush()
      return findRecords(store, { limit })
    },
    async close() {
      await app.close()
      await store.close()
      rmSync(folder, { recursive: true })
    },
  }
}
