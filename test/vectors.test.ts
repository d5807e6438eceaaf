import assert from 'node:assert/strict'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { request as ask, type IncomingMessage } from 'node:http'
import { resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fhirServer } from '../src/backends/sqlite/index.ts'
import type { Resource } from '../src/fhir/index.ts'
import { createInterceptor, explain, type Question } from '../src/interceptor/index.ts'
import { authUrl, encode, fhirBaseUrl, TestIssuer } from '../src/interceptor/testing/test-issuer.ts'
import type { EnforcementPolicy } from '../src/smart/index.ts'
import {
  bearerOf,
  type GuardedFhir,
  startGuardedFhir,
  type TestCaller,
  type TestReply,
} from './support/guarded-fhir.ts'
import { GUARDED_SERVERS } from './support/guarded-servers.ts'

const FOLDER = resolve(import.meta.dirname, '../vectors')

interface Vector {
  readonly id: string
  readonly why: string
  readonly attack?: number
  readonly request: Pick<Question, 'method' | 'url' | 'body'>
  readonly scope: string | readonly string[]
  readonly context: Pick<Question, 'patient' | 'fhirUser'>
  readonly settings: { readonly searchLetter: Question['searchPermission'] } & Pick<Question, 'contexts'>
  readonly expected: {
    readonly status: number
    readonly allowed?: boolean
    readonly text?: string
    readonly shown?: readonly string[]
    readonly total?: number
  }
}

function read<File>(name: string): File {
  return JSON.parse(readFileSync(resolve(FOLDER, name), 'utf8'))
}

const decisionFiles = globSync('*.json', { cwd: FOLDER }).filter(
  name => !['with-data.json', 'tokens.json', 'flows.json'].includes(name),
)
const decisions = decisionFiles.flatMap(name => read<{ vectors: readonly Vector[] }>(name).vectors)
const readPolicy = ({ settings: { searchLetter, contexts } }: Vector) => ({
  searchPermission: searchLetter,
  contexts,
})
const formatName = ({ id, why, request }: Vector) => `${id}: ${request.method} ${request.url}: ${why}`

describe('vectors in the decision core', () => {
  for (const name of decisionFiles)
    it(`agrees with ${name} (SCOPE-2, CLI-4)`, () => {
      for (const vector of read<{ vectors: readonly Vector[] }>(name).vectors) {
        const { request, scope, context, expected } = vector
        const result = explain({ ...request, scope, ...context, ...readPolicy(vector) }, fhirBaseUrl)
        const compared = Object.fromEntries(
          Object.keys(expected).map(key => [key, result[key as keyof typeof result]]),
        )
        assert.deepEqual(compared, expected, formatName(vector))
      }
    })
})

describe('vectors over HTTP', () => {
  const servers = new Map<string, Promise<GuardedFhir>>()
  const serverFor = (policy: Partial<EnforcementPolicy>) => {
    const key = JSON.stringify(policy)
    const server = servers.get(key) ?? startGuardedFhir([], policy)
    servers.set(key, server)
    return server
  }
  after(async () => {
    for (const server of servers.values()) await (await server).close()
  })

  it('refuses exactly what the core refuses for its scope, with the same status and text', async () => {
    for (const vector of decisions.filter(it => isForHttp(it) && !it.id.startsWith('paths-'))) {
      const { request, scope, context, expected } = vector
      const server = await serverFor(readPolicy(vector))
      const result = await server.ask(
        `${request.method} ${request.url}`,
        makeCaller(scope, context),
        request.body,
      )
      if (expected.allowed) {
        assert.doesNotMatch(result.text, /Insufficient scope/, formatName(vector))
        assert(result.status < 500 && result.status !== 401, `${formatName(vector)}: ${result.status}`)
      } else if (result.status === 200 && isBatch(request.body)) {
        assert.match(result.text, /"status":"40[03]/, formatName(vector))
      } else if (result.status !== 422 && !isUnmatched(result, request)) {
        // Invalid content is refused before the access check.
        // A patch of an absent resource is not read.
        const isPatch = request.method === 'PATCH' && result.status === 403
        assert(
          result.status === expected.status || isPatch,
          `${formatName(vector)}: ${result.status} ${result.text}`,
        )
        if (expected.text !== undefined && request.method !== 'HEAD')
          assert.equal(result.why, expected.text, formatName(vector))
      }
    }
  })
})

describe('vectors of paths over a socket, which does not normalize them', () => {
  let server: GuardedFhir
  let port: number
  before(async () => {
    server = await startGuardedFhir([])
    port = Number(new URL(await server.app.listen({ port: 0, host: '127.0.0.1' })).port)
  })
  after(() => server.close())

  for (const vector of read<{ vectors: readonly Vector[] }>('paths.json').vectors.filter(isForHttp))
    it(formatName(vector), async () => {
      const { request, scope, context, expected } = vector
      const { method, url } = request
      const headers = { authorization: bearerOf(makeCaller(scope, context)), connection: 'close' }
      const sent = ask({ port, host: '127.0.0.1', method, path: `/fhir${url}`, headers }).end()
      const [reply] = (await once(sent, 'response')) as [IncomingMessage]
      reply.resume()
      // A permitted request finds no data here.
      if (expected.allowed) assert([200, 403].includes(reply.statusCode ?? 0), String(reply.statusCode))
      else assert.equal(reply.statusCode, expected.status)
    })
})

// Only the core can test requests that Node's HTTP server rejects, and a Bundle with an unreadable entry.
function isForHttp({ request, context, scope }: Vector): boolean {
  const { method, url } = request
  const sendable = /^[A-Z]+$/.test(method) && method !== 'OPTIONS' && method !== 'TRACE' && method !== 'FOO'
  return (
    sendable && /^[\x21-\x5b\x5d-\x7e]*$/.test(url) && !/[\t\n]/.test(String(scope)) && context.patient !== ''
  )
}

/** A condition without a visible match counts as unmatched (docs/decisions/0021-refused-and-absent.md). */
function isUnmatched({ status }: TestReply, { method, url, body = '' }: Vector['request']): boolean {
  const conditional = method === 'PATCH' ? url.includes('?') : JSON.stringify(body).includes('Patient?')
  return status === 404 && conditional
}

function isBatch(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'type' in body && body.type === 'batch'
}

function makeCaller(scope: Vector['scope'], { patient, fhirUser }: Vector['context']): TestCaller {
  return {
    scope: scope as string,
    ...(patient !== undefined && { patient }),
    ...(fhirUser !== undefined && { fhirUser }),
  }
}

for (const [kind, open] of Object.entries(GUARDED_SERVERS))
  describe(`vectors with data over HTTP on ${kind}`, () => {
    const { resources, vectors } = read<{ resources: readonly Resource[]; vectors: readonly Vector[] }>(
      'with-data.json',
    )
    let server: GuardedFhir
    before(async () => {
      server = await startGuardedFhir(resources, {}, open)
    })
    after(() => server.close())

    for (const vector of vectors)
      it(formatName(vector), async () => {
        const { request, scope, context, expected } = vector
        const result = await server.ask(
          `${request.method} ${request.url}`,
          { ...makeCaller(scope, context), headers: { accept: 'application/fhir+json' } },
          request.body,
        )
        assert.equal(result.status, expected.status, result.text)
        if (expected.shown) assert.deepEqual(shown(result), expected.shown)
        if (expected.total !== undefined) assert.equal(result.body.total, expected.total)
        if (expected.text !== undefined) assert.equal(result.why, expected.text)
      })
  })

function shown({ body }: TestReply): readonly string[] {
  if (body.resourceType !== 'Bundle') return [`${body.resourceType}/${body.id}`]
  return (body.entry ?? []).map(({ resource }) => `${resource?.resourceType}/${resource?.id}`).sort()
}

interface TokenVector {
  readonly id: string
  readonly why: string
  readonly header: Readonly<Record<string, unknown>>
  readonly claims: Readonly<Record<string, unknown>>
  readonly expiresIn?: number
  readonly notBeforeIn?: number
  readonly tampered?: true
  readonly expected: { readonly status: number; readonly code?: string; readonly challenge?: string }
}

describe('vectors of tokens', () => {
  const { good, tokens } = read<{
    good: { claims: Record<string, unknown> }
    tokens: readonly TokenVector[]
  }>('tokens.json')
  const auth = new TestIssuer()
  const guard = createInterceptor({ authUrl, fhirBaseUrl, fetch: auth.fetch, clock: auth.clock })
  let app: Awaited<ReturnType<typeof fhirServer>>
  before(async () => {
    app = await fhirServer({ baseUrl: fhirBaseUrl, dataFile: ':memory:', guard, smartConfiguration: {} })
  })
  after(() => app.close())

  for (const { id, why, header, claims, expiresIn, notBeforeIn, tampered, expected } of tokens)
    it(`${id}: ${why}`, async () => {
      const seconds = auth.now / 1000
      const token = auth.token(
        {
          ...good.claims,
          ...leftOut(claims),
          ...(expiresIn !== undefined && { exp: seconds + expiresIn }),
          ...(notBeforeIn !== undefined && { nbf: seconds + notBeforeIn }),
        },
        leftOut(header),
      )
      const [head, , signature] = token.split('.')
      const sent = tampered ? `${head}.${encode({ ...good.claims, patient: 'bob' })}.${signature}` : token
      const reply = await app.inject({
        url: '/fhir/Condition?patient=ann',
        headers: { authorization: `Bearer ${sent}` },
      })
      assert.equal(reply.statusCode, expected.status, reply.body)
      if (expected.code !== undefined) assert.equal(reply.json().issue[0].code, expected.code)
      if (expected.challenge !== undefined)
        assert.equal(reply.headers['www-authenticate'], expected.challenge)
    })
})

function leftOut(members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, value ?? undefined]))
}

describe('vectors', () => {
  it('cover every attack that worked on other implementations', () => {
    const files = globSync('*.json', { cwd: FOLDER }).map(name => read<Record<string, unknown>>(name))
    const rows = files.flatMap(file =>
      [file.vectors, file.tokens, file.flows].flatMap(list =>
        Array.isArray(list) ? list.map(({ attack }) => attack) : [],
      ),
    )
    const covered = new Set(rows)
    for (let row = 1; row <= 25; row++) assert(covered.has(row), `row ${row} has no vector`)
  })

  it('have unique ids', () => {
    const ids = decisions.map(({ id }) => id)
    assert.equal(new Set(ids).size, ids.length)
  })
})
