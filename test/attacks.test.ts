/** The attacks of vectors/README.md, by their numbers. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import { createInterceptor } from '../src/interceptor/index.ts'
import { authUrl, fhirBaseUrl, TestIssuer } from '../src/interceptor/testing/test-issuer.ts'
import { GUARDED_SERVERS } from './support/guarded-servers.ts'
import { countRuns } from './support/thorough.ts'

// Two patients; `ann` is the patient of every token here, and nothing of `bob` may be seen, counted or changed.
const auth = new TestIssuer()
const NOT_WITHIN = 'Not within the granted patient, user or filter.'
const JSON_TYPE = { 'content-type': 'application/fhir+json' }
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' }
const category = (code: string) => [
  { coding: [{ system: 'http://terminology.hl7.org/CodeSystem/observation-category', code }] },
]
const condition = (patient: string, more: object = {}) => ({
  resourceType: 'Condition',
  subject: { reference: `Patient/${patient}` },
  ...more,
})
const observation = (patient: string, code: string, more: object = {}) => ({
  resourceType: 'Observation',
  status: 'final',
  code: { text: 'x' },
  category: category(code),
  subject: { reference: `Patient/${patient}` },
  ...more,
})
const DATA = [
  { resourceType: 'Practitioner', id: 'dr', name: [{ family: 'Who' }] },
  {
    resourceType: 'Patient',
    id: 'ann',
    name: [{ family: 'Annson' }],
    generalPractitioner: [{ reference: 'Practitioner/dr' }],
  },
  {
    resourceType: 'Patient',
    id: 'bob',
    name: [{ family: 'Secretson' }],
    link: [{ other: { reference: 'Patient/ann' }, type: 'seealso' }],
  },
  { ...condition('ann'), id: 'ca', asserter: { reference: 'Practitioner/dr' } },
  { ...condition('bob'), id: 'cb', asserter: { reference: 'Practitioner/dr' } },
  { ...observation('ann', 'laboratory'), id: 'oa' },
  { ...observation('ann', 'vital-signs'), id: 'ov' },
  {
    ...observation('bob', 'laboratory', {
      focus: [{ reference: 'Patient/ann' }],
      hasMember: [{ reference: 'Observation/oa' }],
    }),
    id: 'ob',
  },
  {
    resourceType: 'Group',
    id: 'g',
    type: 'person',
    actual: true,
    member: [{ entity: { reference: 'Patient/ann' } }, { entity: { reference: 'Patient/bob' } }],
  },
]

let app: FastifyInstance
const tokens = new Map<string, string>()

function bearer(claims: object): string {
  const key = JSON.stringify(claims)
  const token = tokens.get(key) ?? auth.bearer({ patient: 'ann', ...claims })
  tokens.set(key, token)
  return token
}

interface TestReply {
  readonly status: number
  readonly text: string
  readonly body: {
    readonly [name: string]: unknown
    readonly entry?: readonly {
      readonly resource?: { readonly id?: string }
      readonly response?: { readonly status: string }
    }[]
    readonly total?: number
  }
  readonly why: string | undefined
}

async function ask(
  line: string,
  scope = 'patient/*.cruds',
  body?: unknown,
  more: object = {},
): Promise<TestReply> {
  const [method = '', url = ''] = line.split(' ')
  const { headers, ...claims } = { headers: {}, ...more }
  const reply = await app.inject({
    method: method as 'GET',
    url: `/fhir${url}`,
    headers: {
      authorization: bearer({ scope, ...claims }),
      ...(body !== undefined && (typeof body === 'string' ? FORM_TYPE : JSON_TYPE)),
      ...headers,
    },
    ...(body !== undefined && { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const parsed = reply.body === '' ? {} : reply.json()
  return { status: reply.statusCode, text: reply.body, body: parsed, why: parsed.issue?.[0]?.details?.text }
}

const ids = ({ body }: TestReply) => (body.entry ?? []).map(({ resource }) => resource?.id).sort()

async function assertNothingOfBob(line: string, scope?: string, body?: unknown): Promise<TestReply> {
  const reply = await ask(line, scope, body)
  assert(reply.status < 500, `${line}: ${reply.status}`)
  // The self link repeats the request.
  const shown = JSON.stringify({ ...reply.body, link: [] })
  assert.doesNotMatch(shown, /Secretson|"(?:bob|cb|ob)"|Patient\/bob"/, line)
  return reply
}

for (const [name, open] of Object.entries(GUARDED_SERVERS))
  describe(`the access checks of ${name} (GATEWAY-1)`, () => {
    before(async () => {
      const guard = createInterceptor({
        authUrl,
        fhirBaseUrl,
        fetch: auth.fetch,
        clock: auth.clock,
        contexts: ['patient', 'user', 'system'],
      })
      app = await open(guard, fhirBaseUrl)
      for (const resource of DATA)
        assert.equal(
          (await ask(`PUT /${resource.resourceType}/${resource.id}`, 'system/*.cruds', resource)).status,
          201,
        )
    })
    after(() => app.close())

    it("1: refuse a search of another type than the token's", async () => {
      assert.match(
        (await ask('GET /Observation', 'patient/Condition.rs')).why ?? '',
        /^Insufficient scope for GET on Observation/,
      )
    })

    it('2: check PATCH (WRITE-5)', async () => {
      const headers = { 'content-type': 'application/json-patch+json' }
      const patch = (id: string, path: string, value: unknown, scope?: string) =>
        ask(`PATCH /Condition/${id}`, scope, [{ op: 'add', path, value }], { headers })
      assert.match(
        (await patch('ca', '/recordedDate', '2020', 'patient/Condition.crds')).why ?? '',
        /^Insufficient scope for PATCH on Condition\. Required: patient\/Condition\.u/,
      )
      assert.equal((await patch('cb', '/recordedDate', '2020')).why, NOT_WITHIN)
      assert.equal((await patch('ca', '/subject', { reference: 'Patient/bob' })).why, NOT_WITHIN)
      assert.equal((await patch('ca', '/recordedDate', '2020')).status, 200)
    })

    it('3, 13: respond alike to a resource outside the grant and an absent one (ABSENT-1)', async () => {
      for (const line of ['GET /Condition/', 'GET /Observation/', 'DELETE /Condition/']) {
        const outside = await ask(`${line}${line.includes('Observation') ? 'ob' : 'cb'}`)
        const absent = await ask(`${line}absent`)
        assert.deepEqual([outside.status, outside.text], [403, absent.text.replace('absent', 'cb')], line)
        assert.equal(absent.status, 403)
      }
      for (const suffix of ['', '/_history', '/_history/1', '/$everything'])
        assert.equal((await ask(`GET /Patient/bob${suffix}`)).why, NOT_WITHIN)
    })

    it('4: check the entries of a Bundle one by one (BUNDLE-1)', async () => {
      const entry = [
        { request: { method: 'GET', url: 'Condition/ca' } },
        { request: { method: 'GET', url: 'Condition/cb' } },
        { request: { method: 'GET', url: 'Patient/bob' } },
        { request: { method: 'DELETE', url: 'Practitioner/dr' } },
        { request: { method: 'GET', url: 'Condition?patient=bob' } },
      ]
      const batch = await assertNothingOfBob('POST /', undefined, {
        resourceType: 'Bundle',
        type: 'batch',
        entry,
      })
      assert.deepEqual(
        batch.body.entry?.map(it => it.response?.status.slice(0, 3)),
        ['200', '403', '403', '403', '200'],
      )
      const writes = [
        { request: { method: 'POST', url: 'Condition' }, resource: condition('ann') },
        { request: { method: 'POST', url: 'Condition' }, resource: condition('bob') },
      ]
      const count = async () => (await ask('GET /Condition?_summary=count', 'system/*.rs')).body.total
      const earlier = await count()
      assert.equal(
        (await ask('POST /', undefined, { resourceType: 'Bundle', type: 'transaction', entry: writes }))
          .status,
        403,
      )
      assert.equal(await count(), earlier)
      assert.equal((await app.inject({ method: 'POST', url: '/fhir' })).statusCode, 401)
    })

    it('5, 6: return no other patient by includes and references that grant nothing (ROUTE-5)', async () => {
      for (const query of [
        'Observation?_revinclude=Observation:has-member',
        'Observation?_include=Observation:focus',
        'Patient?_include=Patient:link',
        'Patient?_revinclude=Patient:link',
        'Patient?_revinclude=Observation:subject&_revinclude:iterate=Provenance:target',
        'Condition?_include=*',
        'Group',
        'Observation?focus=Patient/ann',
      ])
        await assertNothingOfBob(`GET /${query}`)
      assert.deepEqual(
        ids(await ask('GET /Condition?_id=ca&_include=Condition:subject', 'patient/Condition.rs')),
        ['ca'],
      )
      assert.deepEqual(ids(await ask('GET /Condition?_id=ca&_include=Condition:subject')), ['ann', 'ca'])
    })

    it('7: allow nothing to a token without a patient, or without a user (PATIENT-1)', async () => {
      assert.equal(
        (await ask('GET /Condition', 'patient/*.cruds', undefined, { patient: null })).why,
        NOT_WITHIN,
      )
      assert.equal((await ask('GET /Condition/ca', 'user/*.cruds')).why, NOT_WITHIN)
    })

    it('8, 9, 10: let no parameter widen a search', async () => {
      for (const query of [
        '',
        'patient=bob',
        'patient=ann,bob',
        'patient=ann&patient=bob',
        'subject=Patient/bob',
        `patient=${fhirBaseUrl}/Patient/bob`,
        'patient=Patient/bob/_history/1',
        '_id=cb',
        '_id=ca,cb',
        '_total=accurate',
        '_summary=count',
        '_sort=-_lastUpdated',
        'patient:not=ann',
        'patient:missing=false',
        'asserter=Practitioner/dr',
      ]) {
        const reply = await assertNothingOfBob(`GET /Condition?${query}`)
        assert.equal(
          reply.body.total === undefined || reply.body.total <= 2,
          true,
          `${query}: ${reply.body.total}`,
        )
        await assertNothingOfBob('POST /Condition/_search', undefined, query)
      }
      for (const query of ['name=Secretson', '_id=bob', '_id=ann,bob', ''])
        await assertNothingOfBob(`GET /Patient?${query}`)
    })

    it('11, 12: check compartment paths and operations by the resources that they return (OPERATION-2)', async () => {
      assert.match(
        (await ask('GET /Patient/ann/Observation', 'patient/Patient.rs')).why ?? '',
        /on Observation/,
      )
      for (const line of ['GET /Patient/bob/Observation', 'GET /Patient/bob/*'])
        assert.equal((await ask(line)).why, NOT_WITHIN, line)
      for (const line of [
        'GET /Patient/$everything',
        'POST /$graphql',
        'GET /$export',
        'POST /Patient/ann/$meta-add',
        'POST /Patient/bob/$meta-add',
        'POST /Patient/$match',
      ]) {
        const [method, url = ''] = line.split(' ')
        const text = `The operation ${url.slice(url.indexOf('$'))} is not supported here.`
        for (const scope of [undefined, 'openid', 'system/*.cruds']) {
          const reply = await ask(line, scope)
          assert.deepEqual([reply.status, reply.why], [404, text])
          assert.match(reply.text, /"code":"not-supported"/)
          const entry = [{ request: { method, url } }]
          if (scope === 'openid') {
            const refused = await ask('POST /', scope, { resourceType: 'Bundle', type: 'batch', entry })
            assert.equal(refused.status, 403)
            continue
          }
          const batch = await ask('POST /', scope, { resourceType: 'Bundle', type: 'batch', entry })
          assert.equal(batch.body.entry?.[0]?.response?.status.slice(0, 3), '404', line)
          assert(batch.text.includes(text), line)
          const whole = await ask('POST /', scope, { resourceType: 'Bundle', type: 'transaction', entry })
          assert.deepEqual([whole.status, whole.why], [404, text])
        }
        const headers = { 'content-type': 'application/fhir+json' }
        const reply = await app.inject({ method: method as 'GET', url: `/fhir${url}`, headers })
        assert.equal(reply.statusCode, 401, line)
      }
      const everything = await assertNothingOfBob(
        'GET /Patient/ann/$everything',
        'patient/Patient.rs patient/Condition.rs',
      )
      assert(ids(everything).includes('ca') && !ids(everything).includes('oa'))
    })

    it('reveal nothing outside the grant by chains and _has (ROUTE-4)', async () => {
      assert.match(
        (await ask('GET /Condition?patient.name=Annson', 'patient/Condition.rs')).why ?? '',
        /on Patient/,
      )
      assert.deepEqual(ids(await ask('GET /Practitioner?_has:Condition:asserter:patient=bob')), [])
      assert.deepEqual(ids(await ask('GET /Practitioner?_has:Condition:asserter:patient=ann')), ['dr'])
      assert.deepEqual(ids(await ask('GET /Observation?has-member.subject:Patient.name=Secretson')), [])
    })

    it('16: apply granular scopes to reads, searches, counts and writes (GRANULAR-2)', async () => {
      const lab = 'patient/Observation.cruds?category=laboratory'
      assert.deepEqual(ids(await ask('GET /Observation', lab)), ['oa'])
      assert.equal((await ask('GET /Observation?_summary=count', lab)).body.total, 1)
      assert.equal((await ask('GET /Observation/ov', lab)).why, NOT_WITHIN)
      assert.equal((await ask('DELETE /Observation/ov', lab)).why, NOT_WITHIN)
      assert.equal((await ask('POST /Observation', lab, observation('ann', 'vital-signs'))).why, NOT_WITHIN)
      assert.equal(
        (await ask('PUT /Observation/oa', lab, { ...observation('ann', 'vital-signs'), id: 'oa' })).why,
        NOT_WITHIN,
      )
      assert.deepEqual(ids(await ask('GET /Observation', `${lab}&status=preliminary`)), [])
      assert.deepEqual(ids(await ask('GET /Observation', `${lab} patient/Observation.rs`)), ['oa', 'ov'])
      assert.equal((await ask('GET /Observation', 'patient/Observation.rs?foo=bar')).why, NOT_WITHIN)
    })

    it('17: let no write move a resource into or out of the compartment (WRITE-1)', async () => {
      for (const [line, body] of [
        ['PUT /Condition/ca', { ...condition('bob'), id: 'ca' }],
        ['PUT /Condition/cb', { ...condition('ann'), id: 'cb' }],
        ['PUT /Condition/new', { ...condition('bob'), id: 'new' }],
        ['PUT /Patient/bob', { resourceType: 'Patient', id: 'bob' }],
        ['PUT /Patient/carl', { resourceType: 'Patient', id: 'carl' }],
        ['POST /Condition', condition('bob')],
        ['POST /Condition', condition('ann', { asserter: { reference: 'Patient/bob' } })],
        ['PUT /Practitioner/dr', { resourceType: 'Practitioner', id: 'dr' }],
        ['POST /Organization', { resourceType: 'Organization', name: 'x' }],
      ] as const)
        assert.deepEqual(
          [(await ask(line, undefined, body)).status, (await ask(line, undefined, body)).why],
          [403, NOT_WITHIN],
          line,
        )
      assert.equal((await ask('PUT /Condition/ca', undefined, { ...condition('ann'), id: 'cb' })).status, 400)
      assert.equal((await ask('POST /Patient', 'patient/Patient.c', { resourceType: 'Patient' })).status, 201)
    })

    it('6, 17: let no write refer to another patient, in any element and form (WRITE-2)', async () => {
      const count = async () =>
        (await ask('GET /?_type=Observation,Patient&_count=500', 'system/*.rs')).body.total
      const before = await count()
      const refused = async (line: string, body: unknown, more: object = {}) => {
        const reply = await ask(line, undefined, body, more)
        assert.deepEqual([reply.status, reply.why], [403, NOT_WITHIN], `${line} ${JSON.stringify(body)}`)
      }
      const bob = { reference: 'Patient/bob' }
      for (const reference of [
        'Patient/bob',
        'Patient/bob/_history/1',
        `${fhirBaseUrl}/Patient/bob`,
        `${fhirBaseUrl}/Patient/bob/`,
        `${fhirBaseUrl}/Patient/%62ob`,
        'http://other.test/fhir/Patient/ann',
        'Patient?name=Secretson',
      ])
        await refused('POST /Observation', observation('ann', 'laboratory', { focus: [{ reference }] }))
      const inner = {
        resourceType: 'Observation',
        id: 'i',
        status: 'final',
        code: { text: 'x' },
        focus: [bob],
      }
      for (const more of [
        { extension: [{ url: 'http://x.test', valueReference: bob }] },
        { contained: [inner], hasMember: [{ reference: '#i' }] },
        { component: [{ code: { text: 'x' }, extension: [{ url: 'http://x.test', valueReference: bob }] }] },
      ])
        await refused('POST /Observation', observation('ann', 'laboratory', more))
      const ann = { resourceType: 'Patient', id: 'ann', link: [{ other: bob, type: 'seealso' }] }
      await refused('PUT /Patient/ann', ann)
      await refused('POST /Patient', { resourceType: 'Patient', link: ann.link })
      const headers = { 'content-type': 'application/json-patch+json' }
      await refused('PATCH /Patient/ann', [{ op: 'add', path: '/link', value: ann.link }], { headers })
      await refused('PATCH /Observation/oa', [{ op: 'add', path: '/focus', value: [bob] }], { headers })
      const made = { fullUrl: 'urn:uuid:00000000-0000-4000-8000-000000000001' }
      for (const [status, entry] of [
        [[403], [{ resource: observation('ann', 'laboratory', { focus: [bob] }) }]],
        [
          [403],
          [
            { ...made, resource: { resourceType: 'Patient' } },
            { resource: observation('ann', 'laboratory', { focus: [{ reference: made.fullUrl }] }) },
          ],
        ],
        // A conditional reference finds only resources that the caller may search.
        [
          [404],
          [
            {
              resource: observation('ann', 'laboratory', {
                focus: [{ reference: 'Patient?name=Secretson' }],
              }),
            },
          ],
        ],
      ] as const) {
        const reply = await ask('POST /', undefined, {
          resourceType: 'Bundle',
          type: 'transaction',
          entry: entry.map(it => ({ ...it, request: { method: 'POST', url: it.resource.resourceType } })),
        })
        assert((status as readonly number[]).includes(reply.status), reply.text)
      }
      assert.equal(await count(), before)
      for (const reference of [
        'Patient/ann',
        'Practitioner/dr',
        'urn:uuid:3b5a1c70-0000-4000-8000-000000000000',
      ])
        assert.equal(
          (
            await ask(
              'POST /Observation',
              undefined,
              observation('ann', 'laboratory', { focus: [{ reference }] }),
            )
          ).status,
          201,
          reference,
        )
      const searching = 'patient/*.cruds system/Patient.rs'
      const found = await ask('POST /', searching, {
        resourceType: 'Bundle',
        type: 'transaction',
        entry: [
          {
            resource: observation('ann', 'laboratory', { focus: [{ reference: 'Patient?name=Secretson' }] }),
            request: { method: 'POST', url: 'Observation' },
          },
        ],
      })
      assert.equal(found.why, NOT_WITHIN)
    })

    it('18: reveal nothing by a conditional write (WRITE-8)', async () => {
      assert.match(
        (await ask('DELETE /Condition?_id=cb', 'patient/Condition.d')).why ?? '',
        /Required: patient\/Condition\.r/,
      )
      await ask('DELETE /Condition?_id=cb')
      assert.equal((await ask('GET /Condition/cb', 'system/*.rs')).status, 200)
      const headers = { 'if-none-exist': '_id=cb' }
      assert.equal((await ask('POST /Condition', undefined, condition('ann'), { headers })).status, 201)
    })

    it('14: bind a page to the grant that created it (ABSENT-8)', async () => {
      const first = await ask('GET /Condition?_count=1', 'system/*.rs')
      const link = (first.body.link as { relation: string; url: string }[]).find(it => it.relation === 'next')
      assert(link)
      const line = `GET ${link.url.slice(fhirBaseUrl.length)}`
      for (const [scope, claims] of [
        ['patient/*.cruds', {}],
        ['system/*.cruds', {}],
        ['system/*.rs', { patient: 'bob' }],
        ['system/*.rs', { client_id: 'another' }],
        ['system/*.rs', { sub: 'c-2' }],
        ['system/*.rs', { fhirUser: 'Practitioner/dr' }],
      ] as const)
        assert.equal(
          (await ask(line, scope, undefined, claims)).why,
          NOT_WITHIN,
          JSON.stringify([scope, claims]),
        )
      // A refreshed token belongs to the same grant.
      assert.equal((await ask(line, 'system/*.rs', undefined, { jti: 'renewed' })).status, 200)
    })

    it('show nothing of another patient, for any request with any patient/ scopes (PATIENT-4)', async () => {
      const piece = fc.constantFrom(
        'Patient',
        'Condition',
        'Observation',
        'Group',
        'ann',
        'bob',
        'cb',
        'ob',
        'ca',
        '_history',
        '1',
        '_search',
        '$everything',
        '*',
        '..',
        '%2e',
      )
      const param = fc.constantFrom(
        '_include=*',
        '_revinclude=Observation:has-member',
        'patient=bob',
        '_id=bob,cb,ob',
        '_summary=count',
        '_total=accurate',
        'subject.name=Secretson',
        '_has:Observation:patient:code=x',
        '_type=Patient,Condition',
        '_sort=-_id',
        '_count=1',
        '_elements=id',
        'name=Secretson',
      )
      const line = fc
        .tuple(
          fc.constantFrom('GET', 'GET', 'POST', 'DELETE', 'HEAD'),
          fc.array(piece, { maxLength: 4 }),
          fc.array(param, { maxLength: 3 }),
        )
        .map(([method, pieces, params]) => `${method} /${pieces.join('/')}?${params.join('&')}`)
      const scopes = fc.array(
        fc.constantFrom(
          'patient/*.cruds',
          'patient/Patient.rs',
          'patient/Condition.cruds',
          'patient/Observation.rs?category=laboratory',
          'patient/Group.rs',
          'openid',
        ),
        { maxLength: 3 },
      )
      await fc.assert(
        fc.asyncProperty(line, scopes, async (request, granted) => {
          await assertNothingOfBob(request, granted.join(' '))
        }),
        { numRuns: countRuns(1500) },
      )
      for (const id of ['Patient/bob', 'Condition/cb', 'Observation/ob'])
        assert.equal((await ask(`GET /${id}`, 'system/*.rs')).status, 200, id)
    })
  })
