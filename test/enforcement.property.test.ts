import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import type { Resource } from '../src/fhir/index.ts'
import { chooseResponseRule, findOutside } from '../src/interceptor/host/check-response.ts'
import { fhirBaseUrl } from '../src/interceptor/testing/test-issuer.ts'
import { computeAccess, createUserFilter, parsePolicy, parseScopes } from '../src/smart/index.ts'
import {
  ADMIN,
  bearerOf,
  type GuardedFhir,
  shownIn,
  startGuardedFhir,
  type TestCaller,
  type TestReply,
} from './support/guarded-fhir.ts'
import { GUARDED_SERVERS, type OpenGuarded, openApart } from './support/guarded-servers.ts'
import { matchesNaively, mayNaively, mayWriteNaively, type NaiveLetter } from './support/naive-rules.ts'
import { countRuns, IS_THOROUGH } from './support/thorough.ts'

// A request through the gateway to another process takes longer.
const SERVERS: readonly (readonly [
  name: string,
  open: OpenGuarded | undefined,
  worlds: number,
  runs: number,
])[] = [
  ['the embedded FHIR server', undefined, countRuns(8), countRuns(400)],
  ['the gateway', openApart, countRuns(4), countRuns(150)],
]
const REQUESTS = 200

const to = (reference: string) => ({ reference })
const patient = fc.constantFrom('Patient/ann', 'Patient/ann', 'Patient/bob')
const anybody = fc.constantFrom('Patient/ann', 'Patient/bob', 'Practitioner/dr', 'Organization/org')
const category = fc.constantFrom('lab', 'vital').map(code => [{ coding: [{ code }] }])

function optional<Value>(arbitrary: fc.Arbitrary<Value>) {
  return fc.option(arbitrary, { nil: undefined, freq: 2 })
}

const content: fc.Arbitrary<Resource> = fc.oneof(
  fc.record({
    resourceType: fc.constant('Condition'),
    subject: patient.map(to),
    asserter: optional(anybody.filter(it => !it.startsWith('Org')).map(to)),
    category,
  }),
  fc.record({
    resourceType: fc.constant('Observation'),
    status: fc.constantFrom('final', 'preliminary'),
    code: fc.constant({ text: 'x' }),
    category,
    subject: optional(patient.map(to)),
    performer: optional(anybody.map(it => [to(it)])),
    focus: optional(anybody.map(it => [to(it)])),
    hasMember: optional(fc.constantFrom('Observation/r3', 'Observation/r5').map(it => [to(it)])),
  }),
  fc.record({
    resourceType: fc.constant('Encounter'),
    status: fc.constantFrom('planned', 'finished'),
    class: fc.constant({ code: 'AMB' }),
    subject: patient.map(to),
  }),
) as fc.Arbitrary<Resource>

const world = fc
  .array(content, { minLength: 12, maxLength: 16 })
  .map(list => list.map((it, at) => withId(JSON.parse(JSON.stringify(it)), `r${at}`)))

const FIXED: readonly Resource[] = [
  { resourceType: 'Practitioner', id: 'dr' },
  { resourceType: 'Organization', id: 'org', name: 'Org' },
  { resourceType: 'Patient', id: 'ann' },
  { resourceType: 'Patient', id: 'bob' },
]

function withId(resource: Resource, id: string): Resource {
  return { ...resource, id }
}

const TYPES = ['Patient', 'Condition', 'Observation', 'Encounter', 'Practitioner', 'Organization']
const scope = fc
  .tuple(
    fc.constantFrom('patient', 'patient', 'patient', 'user', 'system'),
    fc.constantFrom('*', 'Condition', 'Observation', 'Encounter', 'Patient', 'Practitioner'),
    fc.constantFrom('r', 'rs', 'rs', 'cruds', 'c', 'u', 'd', 'cud', 's'),
    fc.constantFrom('', '', '', '?category=lab', '?status=final', '?category=lab&status=final'),
  )
  .map(([level, type, permissions, query]) => `${level}/${type}.${permissions}${query}`)
  // A parameter that is unknown for a type grants nothing; this test uses known parameters only.
  .filter(text => !text.includes('?') || text.includes('/Observation.'))
const asking: fc.Arbitrary<TestCaller> = fc
  .record({
    scopes: fc.array(scope, { minLength: 1, maxLength: 3 }),
    patient: fc.constantFrom('ann', 'ann', 'bob', null),
    user: fc.boolean(),
  })
  .map(({ scopes, patient, user }) => ({
    scope: scopes.join(' '),
    patient,
    ...(user && { fhirUser: 'Practitioner/dr' }),
  }))

const type = fc.constantFrom('Condition', 'Observation', 'Encounter', 'Patient', 'Practitioner')
const id = fc.constantFrom('ann', 'bob', 'dr', ...Array.from({ length: 8 }, (_, at) => `r${at}`))
const filter = fc.constantFrom('', '_id=r1,r2,r3,r4', 'patient=bob', 'patient=ann,bob', 'category=lab')
const testRequest = fc.oneof(
  fc.record({ kind: fc.constant('read' as const), type, id }),
  fc.record({ kind: fc.constant('search' as const), type, filter, sort: fc.constantFrom('', '_sort=-_id') }),
  fc.record({ kind: fc.constant('search' as const), type, filter, sort: fc.constant('_summary=count') }),
  fc.record({
    kind: fc.constant('wide' as const),
    line: fc.constantFrom(
      'GET /Condition?_include=Condition:subject&_include=Condition:asserter',
      'GET /Observation?_include=Observation:*&_include:iterate=Observation:has-member',
      'GET /Patient?_revinclude=Condition:subject&_revinclude=Observation:performer',
      'GET /Practitioner?_revinclude=Observation:performer&_revinclude:iterate=Observation:has-member',
      'GET /Observation?performer:Patient._id=bob',
      'GET /Patient?_has:Observation:performer:category=lab',
      'GET /Patient/ann/*',
      'GET /Patient/bob/Observation',
      'GET /Patient/ann/$everything',
      'GET /Patient/ann/$everything?start=2000&end=2030',
      'GET /Encounter/r2/$everything',
      'GET /Observation/$lastn?max=3',
      'GET /_history',
      'GET /Observation/_history?_count=3',
      'GET /Condition/r2/_history',
      'GET /?_type=Condition,Observation&_count=2',
    ),
  }),
  fc.record({ kind: fc.constant('create' as const), content }),
  fc.record({ kind: fc.constant('update' as const), content, id }),
  fc.record({ kind: fc.constant('delete' as const), type, id }),
)
type TestRequest = typeof testRequest extends fc.Arbitrary<infer Value> ? Value : never

/** Repeats a few values, because signing a token for each new caller takes most of the time. */
function someOf<Value>(arbitrary: fc.Arbitrary<Value>): fc.Arbitrary<Value> {
  return fc.constantFrom(...fc.sample(arbitrary, IS_THOROUGH ? 200 : 40))
}

/** A server with a copy of its resources. */
class TrackedServer {
  readonly fhir: GuardedFhir
  held = new Map<string, Resource>()
  /** The last content of deleted resources, by which they are checked (ABSENT-3). */
  readonly deleted = new Map<string, Resource>()
  constructor(fhir: GuardedFhir) {
    this.fhir = fhir
  }

  async look(): Promise<Map<string, Resource>> {
    const reply = await this.fhir.ask(`GET /?_type=${TYPES}&_count=1000`, ADMIN)
    return new Map(
      (reply.body.entry ?? []).map(({ resource }) => [
        `${resource?.resourceType}/${resource?.id}`,
        resource as Resource,
      ]),
    )
  }

  findPermitted(by: TestCaller, permission: NaiveLetter, of: string, query: string): readonly string[] {
    return [...this.held]
      .filter(([, it]) => it.resourceType === of && mayNaively(by, permission, it))
      .filter(([, it]) => query === '' || matchesNaively(it, query))
      .map(([address]) => address)
      .sort()
  }
}

async function check(server: TrackedServer, by: TestCaller, what: TestRequest): Promise<void> {
  const { fhir } = server
  switch (what.kind) {
    case 'read': {
      const reply = await fhir.ask(`GET /${what.type}/${what.id}`, by)
      const held = server.held.get(`${what.type}/${what.id}`)
      assert.equal(reply.status === 200, held !== undefined && mayNaively(by, 'r', held), reply.text)
      return
    }
    case 'search': {
      const query = [what.filter, what.sort].filter(Boolean).join('&')
      const reply = await fhir.ask(`GET /${what.type}?${query}`, by)
      if (reply.status === 400) return
      const expected = server.findPermitted(by, 's', what.type, what.filter)
      if (reply.status === 200) assert.equal(reply.body.total, expected.length, reply.text)
      else assert.deepEqual([reply.status, expected], [403, []], reply.text)
      if (reply.status === 200 && !query.includes('count')) assert.deepEqual(shownIn(reply), expected)
      return
    }
    case 'wide': {
      const reply = await fhir.ask(what.line, by)
      // A caller who may read the type gets 404.
      const isThere = [...server.held.keys()].some(address => what.line.includes(`/${address}/`))
      assert((isThere ? [200, 403] : [200, 403, 404, 410]).includes(reply.status), reply.text)
      assertWithin(by, reply, server.held)
      return
    }
    case 'create':
      return checkWrite(server, by, 'c', `POST /${what.content.resourceType}`, what.content)
    case 'update': {
      const { resourceType } = what.content
      return checkWrite(server, by, 'u', `PUT /${resourceType}/${what.id}`, withId(what.content, what.id))
    }
    case 'delete':
      return checkWrite(server, by, 'd', `DELETE /${what.type}/${what.id}`)
  }
}

/** Asserts that the caller may read or search every returned resource, in the returned and in the current version. */
function assertWithin(by: TestCaller, reply: TestReply, current: ReadonlyMap<string, Resource>): void {
  for (const { resource } of reply.body.entry ?? []) {
    if (resource === undefined) continue
    const shown = resource as Resource
    const address = `${shown.resourceType}/${shown.id}`
    for (const held of [shown, current.get(address) ?? shown])
      assert(
        mayNaively(by, 's', held) || mayNaively(by, 'r', held),
        `${address} is shown to ${JSON.stringify(by)}`,
      )
  }
}

async function checkWrite(
  server: TrackedServer,
  by: TestCaller,
  permission: 'c' | 'u' | 'd',
  line: string,
  body?: Resource,
): Promise<void> {
  const reply = await server.fhir.ask(line, by, body)
  assert(reply.status < 500, reply.text)
  if (reply.text !== '' && reply.status < 300)
    assert(mayNaively(by, 'r', reply.body as unknown as Resource), reply.text)
  const before = server.held
  server.held = await server.look()
  for (const address of new Set([...before.keys(), ...server.held.keys()])) {
    const [old, fresh] = [before.get(address), server.held.get(address)]
    if (JSON.stringify(old) === JSON.stringify(fresh)) continue
    assert(reply.status < 300, `${line} was refused and written`)
    if (old) assert(mayNaively(by, permission, old), `${line} wrote over ${JSON.stringify(old)}`)
    if (old && !fresh) server.deleted.set(address, old)
    if (fresh && permission !== 'd')
      assert(mayWriteNaively(by, permission, fresh), `${line} wrote ${JSON.stringify(fresh)}`)
  }
  const address = line.split(' /')[1] ?? ''
  const target = body?.id === undefined ? undefined : (before.get(address) ?? server.deleted.get(address))
  if (permission === 'd' || !body || !mayWriteNaively(by, permission, withId(body, String(body.id)))) return
  // Content that refers to a resource of other patients, or an absent one (WRITE-11).
  if (reply.status === 403 && /Cannot store \w+\.\w+/.test(reply.text)) return
  if (target === undefined || mayNaively(by, permission, target))
    assert(reply.status < 300 || [412, 422].includes(reply.status), `${line}: ${reply.text}`)
}

for (const [name, open, worlds, runs] of SERVERS)
  describe(`${name}, with random data, scopes and requests`, () => {
    it('shows, counts and writes exactly what a second, naive implementation of the rules allows (PATIENT-4)', async () => {
      const generated = fc.sample(world, { numRuns: worlds, seed: Date.now() & 0xffff })
      for (const resources of generated) {
        const server = new TrackedServer(await startGuardedFhir([...FIXED, ...resources], {}, open))
        server.held = await server.look()
        await fc.assert(
          fc.asyncProperty(someOf(asking), testRequest, (by, what) => check(server, by, what)),
          { numRuns: REQUESTS, endOnFailure: true },
        )
        await server.fhir.close()
      }
    })

    it('never shows or counts more with fewer scopes (SCOPE-6)', async () => {
      const [resources = []] = fc.sample(world, 1)
      const fhir = await startGuardedFhir([...FIXED, ...resources], {}, open)
      const line = fc.oneof(
        fc.tuple(type, filter).map(([of, query]) => `GET /${of}?${query}`),
        fc.constantFrom(
          'GET /_history',
          'GET /Patient/ann/*',
          'GET /Condition?_include=Condition:subject',
          'GET /Practitioner?_revinclude=Observation:performer',
        ),
      )
      await fc.assert(
        fc.asyncProperty(line, someOf(fc.tuple(asking, scope)), async (asks, [by, more]) => {
          const [narrow, wide] = [
            await fhir.ask(asks, by),
            await fhir.ask(asks, { ...by, scope: `${by.scope} ${more}` }),
          ]
          if (narrow.status === 200) assert.equal(wide.status, 200, asks)
          assert((narrow.body.total ?? 0) <= (wide.body.total ?? 0) || wide.status !== 200, asks)
          const shown = new Set(shownIn(wide))
          assert(
            shownIn(narrow).every(it => shown.has(it)),
            `${asks}: ${by.scope} + ${more}`,
          )
        }),
        { numRuns: runs },
      )
      await fhir.close()
    })
  })

// References in every form that a resource may contain.
const reference = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .constantFrom(
        'Patient/ann',
        'Patient/ann',
        'Patient/bob',
        'Patient/ann/_history/1',
        'Patient/bob/_history/1',
        `${fhirBaseUrl}/Patient/ann`,
        `${fhirBaseUrl}/Patient/bob`,
        'http://other.test/fhir/Patient/ann',
        'http://other.test/fhir/Practitioner/dr',
        'urn:uuid:3b5a1c70-0000-4000-8000-000000000000',
        'Practitioner/dr',
      )
      .map(to),
  },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom('ann', 'bob')
      .map(value => ({ type: 'Patient', identifier: { system: 'urn:mrn', value } })),
  },
  // Not valid: it is refused.
  { weight: 1, arbitrary: fc.constant({ reference: 'Patient/bob', type: 'Practitioner' }) },
)
const extension = fc
  .record({ url: fc.constant('http://x.test/e'), valueReference: reference })
  .map(it => [it])
const innerRecord = fc.oneof(
  fc.record({ resourceType: fc.constant('Condition'), subject: reference }),
  fc.record({
    resourceType: fc.constant('Observation'),
    status: fc.constant('final'),
    code: fc.constant({ text: 'x' }),
    performer: reference.map(it => [it]),
    focus: reference.map(it => [it]),
  }),
  fc.record({ resourceType: fc.constant('RelatedPerson'), patient: reference }),
  fc.constant({ resourceType: 'Patient', name: [{ family: 'Inner' }] }),
  fc.record({
    resourceType: fc.constant('Binary'),
    contentType: fc.constant('text/plain'),
    securityContext: reference,
  }),
)
const inner = fc
  .oneof(
    innerRecord,
    innerRecord.map(resource => ({ resourceType: 'Bundle', type: 'collection', entry: [{ resource }] })),
  )
  .map(it => ({ ...it, id: 'inner' }))
// Mostly Ann's, so that the other elements decide.
const about = fc.oneof(
  { weight: 3, arbitrary: fc.constant(to('Patient/ann')) },
  { weight: 1, arbitrary: reference },
)
const nested: fc.Arbitrary<Resource> = fc
  .oneof(
    fc.record({
      resourceType: fc.constant('Observation'),
      status: fc.constant('final'),
      code: fc.constant({ text: 'x' }),
      category,
      subject: about,
      performer: optional(reference.map(it => [it])),
      focus: optional(reference.map(it => [it])),
      part: fc.option(
        // Any type may be the focus.
        inner.map(it => ({ contained: [it], focus: [to('#inner')] })),
        { nil: undefined, freq: 4 },
      ),
      extension: optional(extension),
    }),
    fc.record({
      resourceType: fc.constant('Condition'),
      subject: about,
      asserter: optional(reference),
      part: fc.option(
        inner.map(it => ({ contained: [it], evidence: [{ detail: [to('#inner')] }] })),
        { nil: undefined, freq: 4 },
      ),
      extension: optional(extension),
    }),
  )
  .map(({ part, ...it }) => JSON.parse(JSON.stringify({ ...it, ...part })))

/** Resources of Ann, each with data of Bob. */
const CONTAINING: readonly Resource[] = [
  { resourceType: 'Condition', subject: to('Patient/bob') },
  { resourceType: 'RelatedPerson', patient: to(`${fhirBaseUrl}/Patient/bob`) },
  { resourceType: 'Binary', contentType: 'text/plain', securityContext: to('Patient/bob') },
  {
    resourceType: 'Bundle',
    type: 'collection',
    entry: [{ resource: { resourceType: 'Condition', subject: to('Patient/bob') } }],
  },
].map(it => ({
  resourceType: 'Condition',
  subject: to('Patient/ann'),
  contained: [{ ...it, id: 'inner' }],
  evidence: [{ detail: [to('#inner')] }],
}))

const RIGHTS = parsePolicy({
  rules: [
    { clinicians: ['Practitioner/lee'], organizations: ['org'] },
    { clinicians: ['Practitioner/kim'], patients: ['ann', 'bob'] },
  ],
})
const CALLERS: readonly TestCaller[] = [
  { scope: 'patient/*.cruds', patient: 'ann' },
  { scope: 'patient/Observation.cruds?category=lab patient/Condition.rs', patient: 'ann' },
  { scope: 'user/*.cruds', fhirUser: 'Practitioner/lee', sub: 'lee' },
  { scope: 'user/*.cruds', fhirUser: 'Practitioner/kim', sub: 'kim' },
]

describe('the embedded FHIR server, the gateway and the library', () => {
  it('decide alike about the same resources, however they refer to patients (PATIENT-8, PATIENT-9)', async () => {
    assert('rules' in RIGHTS)
    const policy = { userFilter: createUserFilter(RIGHTS) }
    const seed = Date.now() & 0xffff
    const resources = [...CONTAINING, ...fc.sample(nested, { numRuns: 12, seed })].map((it, at) =>
      withId(it, `n${at}`),
    )
    const ann = { resourceType: 'Patient', id: 'ann', managingOrganization: to('Organization/org') }
    const fixed = FIXED.map(it => (it.id === 'ann' ? ann : it))
    const servers = await Promise.all(
      Object.values(GUARDED_SERVERS).map(open => startGuardedFhir(fixed, policy, open)),
    )
    after(() => Promise.all(servers.map(it => it.close())))
    const askAll = async (line: string, by: TestCaller, body?: unknown) => {
      const answers = await Promise.all(servers.map(it => it.ask(line, by, body)))
      const [one, other] = answers.map(it => `${it.status} ${it.status === 200 ? shownIn(it) : it.why}`)
      assert.equal(other, one, `${line} by ${by.scope} ${by.sub}: ${JSON.stringify(body)} (seed ${seed})`)
      return answers[0]?.status
    }
    let stored = 0
    for (const resource of resources) {
      const place = `/${resource.resourceType}/${resource.id}`
      if ((await askAll(`PUT ${place}`, ADMIN, resource)) !== 201) continue
      stored += 1
      for (const by of CALLERS) {
        const read = await askAll(`GET ${place}`, by)
        // docs/gateway.md: for the patients of a policy the upstream finds only resources with them as the subject.
        if (typeof by.patient === 'string')
          await askAll(`GET /${resource.resourceType}?_id=${resource.id}`, by)
        await askAll(`GET ${place}/_history`, by)
        await askAll(`GET ${place}/_history/1`, by)
        const { id: _, ...content } = resource
        await askAll(`POST /${resource.resourceType}`, by, content)
        await askAll(`PUT ${place}`, by, resource)
        if (typeof by.patient !== 'string') continue
        const access = computeAccess(
          { scopes: parseScopes(by.scope), patient: by.patient },
          { fhirBaseUrl, contexts: ['patient'], searchPermission: 'r' },
        )
        const shows = chooseResponseRule(
          { kind: 'read', type: resource.resourceType, id: `${resource.id}`, params: [] },
          access,
        )
        const outside = findOutside(resource, shows, fhirBaseUrl)
        assert.equal(outside === undefined, read === 200, JSON.stringify(resource))
      }
    }
    // Some contain references that are not valid there.
    assert(stored > resources.length / 3, `only ${stored} were stored`)
  })
})

/** Sends a URL unchanged: most clients normalize it first. */
async function toLetter(origin: string, method: string, path: string, authorization?: string) {
  const sent = request(origin, {
    method,
    path,
    headers: authorization === undefined ? {} : { authorization },
  })
  const [response] = (await once(sent.end(), 'response')) as [IncomingMessage]
  return { status: Number(response.statusCode), text: await text(response) }
}

for (const [name, open] of SERVERS)
  describe(`random bytes sent to ${name}`, () => {
    let fhir: GuardedFhir
    before(async () => {
      fhir = await startGuardedFhir(FIXED, {}, open)
    })
    after(() => fhir.close())
    const good = bearerOf({ scope: 'patient/*.cruds', patient: 'ann' })
    const bytes = fc.uint8Array({ maxLength: 60 })
    const permissions = bytes.map(it =>
      Buffer.from(it)
        .toString('latin1')
        .replaceAll(/[^\x20-\x7e]/g, '~'),
    )

    it('never cause access or a 5xx in the Authorization header (ERROR-7)', async () => {
      const mangled = fc.oneof(
        permissions,
        permissions.map(it => `Bearer ${it}`),
        fc
          .tuple(fc.nat(good.length), permissions)
          .map(([at, it]) => `${good.slice(0, at)}${it}x${good.slice(at)}`),
        fc.nat(good.length - 1).map(at => good.slice(0, at)),
      )
      await fc.assert(
        fc.asyncProperty(mangled, async authorization => {
          const reply = await fhir.app.inject({ url: '/fhir/Patient/ann', headers: { authorization } })
          assert.equal(reply.statusCode, 401, JSON.stringify(authorization))
        }),
        { numRuns: countRuns(500) },
      )
    })

    it('never return another patient or cause a 5xx in the URL (ERROR-7)', async () => {
      const origin = await fhir.app.listen({ port: 0 })
      const piece = fc.oneof(
        permissions,
        fc.constantFrom('/', '?', '&', 'Patient', 'bob', '%2e', '..', '_search', '$', '=', '*'),
      )
      const url = fc.array(piece, { maxLength: 6 }).map(list => encodeURI(list.join('')).slice(0, 300))
      await fc.assert(
        fc.asyncProperty(
          url,
          fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH'),
          async (path, method) => {
            const reply = await toLetter(origin, method, `/fhir/${path}`, good)
            assert(reply.status < 500, `${method} ${path}: ${reply.status}`)
            assert.doesNotMatch(reply.text, /"id":"bob"/, path)
            const { status } = await toLetter(origin, method, `/fhir/${path}`)
            assert(status === 401 || status === 400 || !path.includes('/'), `${method} ${path}: ${status}`)
          },
        ),
        { numRuns: countRuns(400) },
      )
    })

    it('never cause a write or a 5xx in the body (ERROR-7)', async () => {
      const json = fc.jsonValue({ maxDepth: 4 }).map(it => JSON.stringify(it))
      const body = fc.oneof(
        bytes.map(it => Buffer.from(it)),
        json.map(it => Buffer.from(it)),
        json.map(it => Buffer.from(`{"resourceType":"Bundle","type":"transaction","entry":[${it}]}`)),
        json.map(it =>
          Buffer.from(`{"resourceType":"Condition","subject":{"reference":"Patient/bob"},"note":${it}}`),
        ),
      )
      const line = fc.constantFrom('POST /', 'POST /Condition', 'PUT /Condition/1', 'PATCH /Patient/ann')
      const kind = fc.constantFrom('application/fhir+json', 'application/json-patch+json', 'text/plain')
      await fc.assert(
        fc.asyncProperty(line, kind, body, async (asks, contentType, payload) => {
          const [method = '', url = ''] = asks.split(' ')
          const reply = await fhir.app.inject({
            method: method as 'POST',
            url: `/fhir${url}`,
            headers: { authorization: good, 'content-type': contentType },
            payload,
          })
          assert(
            reply.statusCode < 500 && reply.statusCode !== 201,
            `${asks}: ${reply.statusCode} ${reply.body}`,
          )
        }),
        { numRuns: countRuns(400) },
      )
      assert.deepEqual(
        shownIn(await fhir.ask(`GET /?_type=${TYPES}`, ADMIN)),
        FIXED.map(it => `${it.resourceType}/${it.id}`).sort(),
      )
    })
  })
