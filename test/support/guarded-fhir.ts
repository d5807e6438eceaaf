import assert from 'node:assert/strict'
import type { FastifyInstance } from 'fastify'
import { fhirServer } from '../../src/backends/sqlite/index.ts'
import { isFhirPathPatch, listGatewayOperations, type Resource } from '../../src/fhir/index.ts'
import { createInterceptor } from '../../src/interceptor/index.ts'
import { authUrl, fhirBaseUrl, TestIssuer } from '../../src/interceptor/testing/test-issuer.ts'
import type { EnforcementPolicy } from '../../src/smart/index.ts'
import type { OpenGuarded } from './guarded-servers.ts'

/** Claims of an access token; `headers` go into the request. */
export interface TestCaller {
  readonly scope: string
  readonly patient?: string | null | undefined
  readonly fhirUser?: string
  readonly user_patients?: readonly string[]
  readonly client_id?: string
  readonly sub?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface TestReply {
  readonly status: number
  readonly text: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: {
    readonly [name: string]: unknown
    readonly total?: number
    readonly link?: readonly { readonly relation: string; readonly url: string }[]
    readonly entry?: readonly {
      readonly resource?: { readonly resourceType?: string; readonly id?: string }
      readonly response?: { readonly status: string }
    }[]
  }
  /** The text of the first issue. */
  readonly why: string | undefined
}

export interface GuardedFhir {
  readonly app: FastifyInstance
  ask(line: string, asking: TestCaller, body?: unknown): Promise<TestReply>
  close(): Promise<void>
}

export const ADMIN: TestCaller = { scope: 'system/*.cruds', patient: null }
export const NOT_WITHIN = 'Not within the granted patient, user or filter.'

const auth = new TestIssuer()
const tokens = new Map<string, string>()

/** A token of the real shape, signed; signing is slow, and the same claims come often. */
export function bearerOf({ headers: _, ...claims }: TestCaller): string {
  const key = JSON.stringify(claims)
  const token = tokens.get(key) ?? auth.bearer({ patient: undefined, ...claims })
  tokens.set(key, token)
  return token
}

const embedded: OpenGuarded = (guard, baseUrl) =>
  fhirServer({ baseUrl, dataFile: ':memory:', guard, smartConfiguration: {} })

/** A FHIR server, by default the embedded one, with the real interceptor on these resources. */
export async function startGuardedFhir(
  resources: readonly Resource[],
  policy: Partial<Omit<EnforcementPolicy, 'fhirBaseUrl'>> = {},
  open: OpenGuarded = embedded,
): Promise<GuardedFhir> {
  const guard = createInterceptor({
    authUrl,
    fhirBaseUrl,
    fetch: auth.fetch,
    clock: auth.clock,
    contexts: ['patient', 'user', 'system'],
    operations: listGatewayOperations(),
    ...policy,
  })
  const app = await open(guard, fhirBaseUrl)
  const ask = async (line: string, asking: TestCaller, body?: unknown): Promise<TestReply> => {
    const [method = '', url = ''] = line.split(' ')
    const reply = await app.inject({
      method: method as 'GET',
      url: `/fhir${url}`,
      headers: { authorization: bearerOf(asking), ...contentType(method, body), ...asking.headers },
      ...(body !== undefined && { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const parsed = reply.body === '' ? {} : reply.json()
    return {
      status: reply.statusCode,
      text: reply.body,
      headers: reply.headers,
      body: parsed,
      why: parsed.issue?.[0]?.details?.text,
    }
  }
  for (const resource of resources) {
    const { status, text } = await ask(`PUT /${resource.resourceType}/${resource.id}`, ADMIN, resource)
    assert.ok(status === 201 || status === 200, text)
  }
  return { app, ask, close: () => app.close() }
}

function contentType(method: string, body: unknown): Readonly<Record<string, string>> {
  if (body === undefined) return {}
  if (typeof body === 'string') return { 'content-type': 'application/x-www-form-urlencoded' }
  return {
    'content-type':
      method === 'PATCH' && !isFhirPathPatch(body) ? 'application/json-patch+json' : 'application/fhir+json',
  }
}

/** Lists the references to the resources in a Bundle, sorted. */
export function shownIn({ body }: TestReply): readonly string[] {
  return (body.entry ?? []).map(({ resource }) => `${resource?.resourceType}/${resource?.id}`).sort()
}
