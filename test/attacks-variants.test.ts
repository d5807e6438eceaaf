/** Variants of the attacks of vectors/README.md: reads and writes beyond the scopes of a valid token. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import type { Resource } from '../src/fhir/index.ts'
import { fhirBaseUrl } from '../src/interceptor/testing/test-issuer.ts'
import { createUserFilter, parsePolicy } from '../src/smart/index.ts'
import {
  ADMIN,
  bearerOf,
  type GuardedFhir,
  NOT_WITHIN,
  shownIn,
  startGuardedFhir,
  type TestCaller,
  type TestReply,
} from './support/guarded-fhir.ts'
import { GUARDED_SERVERS } from './support/guarded-servers.ts'

const to = (reference: string) => ({ reference })
const condition = (id: string | undefined, of: string, more: object = {}): Resource => ({
  resourceType: 'Condition',
  ...(id !== undefined && { id }),
  subject: to(`Patient/${of}`),
  ...more,
})
const observation = (id: string, of: string, code: string, more: object = {}): Resource => ({
  resourceType: 'Observation',
  id,
  status: 'final',
  code: { text: 'x' },
  category: [{ coding: [{ code }] }],
  subject: to(`Patient/${of}`),
  ...more,
})

// `ann` is the patient of every token with patient/ scopes; `kim` sees the patients of `north`, including `ann`.
const DATA: readonly Resource[] = [
  { resourceType: 'Organization', id: 'north', name: 'North' },
  { resourceType: 'Practitioner', id: 'dr' },
  { resourceType: 'Patient', id: 'ann', managingOrganization: to('Organization/north') },
  { resourceType: 'Patient', id: 'bob', name: [{ family: 'Secretson' }] },
  condition('ca', 'ann', { code: { text: 'Cough' } }),
  condition('ca2', 'ann', { code: { text: 'Cough' } }),
  condition('cb', 'bob', { code: { text: 'Secret' } }),
  observation('oa', 'ann', 'laboratory'),
  observation('ov', 'ann', 'vital-signs', { valueString: 'Hidden' }),
  observation('ob', 'bob', 'laboratory'),
  {
    resourceType: 'Immunization',
    id: 'ib',
    status: 'completed',
    vaccineCode: { text: 'v' },
    patient: to('Patient/bob'),
    occurrenceString: 'x',
  },
  {
    resourceType: 'Linkage',
    id: 'l',
    item: ['source', 'alternate'].map(type => ({ type, resource: to('Patient/bob') })),
  },
]

const ann = (scope = 'patient/*.cruds', headers: Record<string, string> = {}): TestCaller => ({
  scope,
  patient: 'ann',
  client_id: 'app-1',
  sub: 'c-1',
  headers,
})
const kim: TestCaller = { scope: 'user/*.cruds', fhirUser: 'Practitioner/kim', sub: 'kim' }

for (const [name, open] of Object.entries(GUARDED_SERVERS))
  describe(name, () => {
    const isEmbedded = name === 'the embedded FHIR server'
    let fhir: GuardedFhir
    before(async () => {
      const rights = parsePolicy({ rules: [{ clinicians: ['Practitioner/kim'], organizations: ['north'] }] })
      assert(!('problem' in rights))
      fhir = await startGuardedFhir(DATA, { userFilter: createUserFilter(rights) }, open)
    })
    after(() => fhir.close())

    const ask = (line: string, asking: TestCaller = ann(), body?: unknown) => fhir.ask(line, asking, body)

    describe('a search of several types', () => {
      it("is accepted or refused independently of other patients' data", async () => {
        for (const query of ['code=x', '_sort=code', 'nonsense=1']) {
          const texts = []
          for (const who of isEmbedded ? ['ann', 'bob', 'nobody'] : ['bob', 'nobody'])
            texts.push((await ask(`GET /Patient/${who}/*?${query}`, kim)).text)
          assert.equal(new Set(texts).size, 1, texts.join('\n'))
          assert.doesNotMatch((await ask(`GET /?${query}`)).why ?? '', /Immunization/)
        }
      })

      it('supports parameters that all types or the named types have', async () => {
        const all = shownIn(await ask('GET /?_lastUpdated=gt2000'))
        assert.deepEqual(
          all.filter(it => !/^(?:Organization|Practitioner)/.test(it)),
          ['Condition/ca', 'Condition/ca2', 'Observation/oa', 'Observation/ov', 'Patient/ann'],
        )
        assert.deepEqual(shownIn(await ask('GET /Patient/bob/*?_lastUpdated=gt2000', kim)), [])
        assert.deepEqual(shownIn(await ask('GET /?_type=Condition,Observation&subject=Patient/bob')), [])
      })

      it("finds a patient of another scope beside the data of the token's patient", async () => {
        const scope = 'system/Patient.rs patient/Condition.rs'
        const found = await ask('GET /Patient/bob/*', { scope, patient: 'ann' })
        assert.deepEqual(shownIn(found), ['Patient/bob'])
      })

      it('counts only resources within the grant', async () => {
        const totals = []
        for (const text of ['Cough', 'cough', 'COUGH'])
          totals.push((await ask(`GET /Condition?code:text=${text}&_count=1`, kim)).body.total)
        assert.deepEqual(totals, [undefined, undefined, undefined])
        const found = await ask('GET /Condition?code:text=cough&_count=1&_total=accurate', kim)
        assert.equal(found.body.total, 2)
      })
    })

    describe('a clinician with a panel of patients', () => {
      it('sees no resource outside of compartments that may concern other patients', async () => {
        for (const type of ['Linkage', 'Group', 'Bundle', 'MessageHeader', 'Subscription'])
          assert.equal((await ask(`GET /${type}`, kim)).why, NOT_WITHIN, type)
        assert.equal((await ask('GET /Linkage/l', kim)).why, NOT_WITHIN)
        assert.equal((await ask('GET /Linkage/l', ADMIN)).status, 200)
      })
    })

    describe('an ambiguous request', () => {
      it('is not executed with another method (ROUTE-8)', async () => {
        for (const name of ['x-http-method-override', 'x-http-method', 'x-method-override'])
          assert.equal(
            (await ask('GET /Condition/ca', ann('patient/*.cruds', { [name]: 'DELETE' }))).status,
            400,
          )
        assert.equal((await ask('GET /Condition/ca?_method=DELETE')).status, 400)
        assert.equal((await ask('POST /Condition/_search', ann(), 'patient=ann&_method=DELETE')).status, 400)
        assert.equal((await ask('GET /Condition/ca')).status, 200)
      })

      it('is not executed at another URL (ROUTE-8)', async () => {
        for (const name of ['x-original-url', 'x-rewrite-url', 'x-forwarded-uri'])
          assert.equal(
            (await ask('GET /Condition/ca', ann('patient/*.rs', { [name]: '/fhir/Condition/cb' }))).body.id,
            'ca',
          )
      })

      it('is refused at URLs that a proxy may read differently (ROUTE-7)', async () => {
        await fhir.app.listen({ port: 0, host: '127.0.0.1' })
        const { port } = fhir.app.server.address() as AddressInfo
        for (const target of [
          `${fhirBaseUrl}/Patient/bob`,
          'http://x/fhir/Patient/bob',
          '/%66hir/Patient/bob',
          '/fhir/./Patient/bob',
          '/fhir/Patient/ann/../bob',
          '/fhir/Patient/ann/%2e%2e/bob',
          '/fhir/Patient%2fbob',
          '/FHIR/Patient/bob',
          '/fhir;a=b/Patient/bob',
          '//fhir/Patient/bob',
          '/fhir/Patient/bob?',
          '/fhir/Patient/bob#ann',
          '/fhir\\Patient\\bob',
          '/fhir/metadata/../Patient/bob',
          '/fhir/Patient/bob%00',
        ]) {
          const socket = connect(port, '127.0.0.1')
          socket.write(
            `GET ${target} HTTP/1.1\r\nhost: x\r\nauthorization: ${bearerOf(ann())}\r\nconnection: close\r\n\r\n`,
          )
          let reply = ''
          socket.on('data', chunk => {
            reply += chunk
          })
          await once(socket, 'close')
          assert.match(reply, /^HTTP\/1\.1 40[034] /, target)
        }
      })
    })

    describe('parameters that change a search', () => {
      it('are refused, or ignored if the caller prefers lenient handling, and never widen it', async () => {
        for (const query of [
          '_filter=patient%20eq%20bob',
          '_query=all',
          '_list=x',
          '_in=Group/g',
          '_text=Secret',
          '_content=Secret',
          '_contained=true',
          '_contained=both',
          '_containedType=container',
          '_sort=patient.name',
          'patient:in=x',
          '%5Finclude=Condition:subject:Practitioner&_id=cb',
          'patient=ann&patient:Patient=bob',
          '_has:Condition:evidence-detail:_id=cb',
        ])
          for (const prefer of ['handling=strict', 'handling=lenient']) {
            const reply = await ask(`GET /Condition?${query}`, ann('patient/*.rs', { prefer }))
            assert(reply.status === 400 || reply.status === 200, query)
            assert.doesNotMatch(JSON.stringify(reply.body.entry ?? []), /bob|"cb"|Secret/, query)
          }
      })
    })

    describe('$everything', () => {
      const parameters = (...parameter: unknown[]) => ({ resourceType: 'Parameters', parameter })
      const nextIn = ({ body }: TestReply) =>
        body.link?.find(({ relation }) => relation === 'next')?.url.slice(fhirBaseUrl.length)
      const post = (body: unknown, query = '', asking = ann()) =>
        ask(`POST /Patient/ann/$everything${query}`, asking, body)

      it('accepts its parameters in the URL and in Parameters (OPERATION-3)', async () => {
        const only = await ask('GET /Patient/ann/$everything?_type=Condition')
        assert.deepEqual(shownIn(only), ['Condition/ca', 'Condition/ca2'])
        const type = { name: '_type', valueCode: 'Condition' }
        assert.deepEqual(shownIn(await post(parameters(type))), shownIn(only))
        assert.deepEqual(shownIn(await post(parameters(), '?_type=Condition')), shownIn(only))
        const both = await ask('GET /Patient/ann/$everything?_type=Condition,Observation')
        assert.deepEqual(shownIn(await post(parameters(type), '?_type=Observation')), shownIn(both))
        assert.equal((await ask('GET /Patient/bob/$everything?_type=Condition', kim)).why, NOT_WITHIN)
        assert.equal((await ask('GET /Patient/nobody/$everything?_since=2020', kim)).why, NOT_WITHIN)
      })

      it('refuses unsupported parameters, in the URL and in the body', async () => {
        for (const body of [
          parameters({ name: '_include', valueString: 'Patient:link' }),
          parameters({ name: 'patient', valueString: 'bob' }),
          parameters({ name: '_type', part: [] }),
          parameters('_type'),
          { resourceType: 'Patient', id: 'bob' },
        ])
          assert.equal((await post(body)).status, 400, JSON.stringify(body))
        assert.equal((await ask('GET /Patient/ann/$everything?_include=Patient:link')).status, 400)
      })

      it('returns no more for a body than the scope covers', async () => {
        const narrow = ann('patient/Patient.rs patient/Condition.rs')
        const reply = await post(
          parameters(...['Observation', 'Condition'].map(valueCode => ({ name: '_type', valueCode }))),
          '',
          narrow,
        )
        assert.deepEqual(shownIn(reply), ['Condition/ca', 'Condition/ca2'])
        assert.doesNotMatch(reply.text, /"Observation"|Hidden|Secret/)
      })

      it('keeps the parameters of the body from page to page', async () => {
        const count = { name: '_count', valueInteger: 1 }
        const first = await post(parameters({ name: '_type', valueCode: 'Condition' }, count))
        const next = nextIn(first)
        const other = { name: '_type', valueCode: 'Observation' }
        assert.equal((await ask(`POST ${next}`, ann(), parameters(other))).status, 400)
        const pages = [first]
        for (let link = next; link !== undefined; link = nextIn(pages.at(-1) ?? first))
          pages.push(await ask(`GET ${link}`))
        const shown = pages.flatMap(reply => shownIn(reply))
        assert.deepEqual([shown, pages.length > 1], [['Condition/ca', 'Condition/ca2'], true])
      })
    })

    describe('a Bundle', () => {
      const bundle = (type: string, ...entry: object[]) => ({ resourceType: 'Bundle', type, entry })
      const get = (url: string) => ({ request: { method: 'GET', url } })

      it('contains no other Bundle, and its entries have no other URL (BUNDLE-5)', async () => {
        const inner = bundle('batch', get('Patient/bob'))
        for (const entry of [
          { request: { method: 'POST', url: '' }, resource: inner },
          { request: { method: 'POST', url: '/' }, resource: inner },
          { request: { method: 'POST', url: 'Bundle' }, resource: inner },
          ...[
            '/Patient/bob',
            `${fhirBaseUrl}/Patient/bob`,
            'http://evil.test/fhir/Patient/bob',
            '//Patient/bob',
            './Patient/bob',
            'Patient/bob#x',
            'Patient/bob?_elements=id',
            'Patient%2Fbob',
            'Patient/bob/_history/1',
            'Patient/bob/*',
          ].map(get),
        ]) {
          const reply = await ask('POST /', ann(), bundle('batch', entry))
          assert.match(reply.body.entry?.[0]?.response?.status ?? '', /^40[03]/, JSON.stringify(entry))
          assert.doesNotMatch(reply.text, /Secretson/)
        }
      })

      it('cannot move a resource out and back by the order of its entries', async () => {
        const put = (of: string) => ({
          request: { method: 'PUT', url: 'Condition/ca' },
          resource: condition('ca', of),
        })
        const remove = { request: { method: 'DELETE', url: 'Condition/ca' } }
        for (const entries of [
          [remove, put('bob')],
          [put('bob'), put('ann')],
          [put('bob'), get('Condition/ca')],
        ])
          assert.match(
            String((await ask('POST /', ann(), bundle('transaction', ...entries))).status),
            /^40[03]$/,
          )
        assert.deepEqual((await ask('GET /Condition/ca')).body.subject, to('Patient/ann'))
      })
    })

    describe('references to other patients', () => {
      it('are not written, in any form', async () => {
        for (const reference of [
          'Patient/bob/_history/1',
          `${fhirBaseUrl}/Patient/bob`,
          `${fhirBaseUrl}//Patient/bob`,
          `${fhirBaseUrl}/Patient/ann/../bob`,
          fhirBaseUrl.toUpperCase().concat('/Patient/bob'),
          'http://other.test/fhir/Patient/bob',
          'urn:uuid:3b5a1c70-0000-4000-8000-000000000000',
          'Patient?name=Secretson',
          'Patient/bob#x',
          'patient/bob',
          ' Patient/bob',
          './Patient/bob',
          'Patient/ann,Patient/bob',
        ]) {
          const reply = await ask(
            'POST /Condition',
            ann(),
            condition(undefined, 'ann', { asserter: to(reference) }),
          )
          assert.match(String(reply.status), /^4(?:03|22)$/, reference)
        }
      })
    })
  })
