import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createAuditor, createFhirAudit, findRecords, type KeptRecord } from '../src/audit/index.ts'
import type { Resource } from '../src/fhir/index.ts'
import { fhirBaseUrl } from '../src/interceptor/testing/test-issuer.ts'
import type { Store } from '../src/store/index.ts'
import { eachDatabase } from './support/databases.ts'
import { ADMIN, type GuardedFhir, startGuardedFhir, type TestCaller } from './support/guarded-fhir.ts'
import { GUARDED_SERVERS } from './support/guarded-servers.ts'

const to = (reference: string) => ({ reference })
const coded = { status: 'final', code: { text: 'Weight' } }
const observation = (id: string, of: string, more: object = {}): Resource => ({
  resourceType: 'Observation',
  id,
  ...coded,
  subject: to(`Patient/${of}`),
  ...more,
})
const condition = (subject: string) => ({ resourceType: 'Condition', subject: to(subject) })
const binary = { resourceType: 'Binary', contentType: 'text/plain', data: 'YQ==' }

const DATA: readonly Resource[] = [
  { resourceType: 'Practitioner', id: 'dr' },
  { resourceType: 'Patient', id: 'ann' },
  { resourceType: 'Patient', id: 'bob' },
  { resourceType: 'Patient', id: 'cid' },
  observation('one', 'ann'),
  observation('two', 'ann', { performer: [to('Patient/bob')] }),
  observation('contained', 'ann', {
    contained: [{ id: 'c', ...condition('Patient/bob') }],
    focus: [to('#c')],
  }),
  { resourceType: 'Group', id: 'g', type: 'person', actual: true, member: [{ entity: to('Patient/cid') }] },
  { ...binary, id: 'of-document' },
  { ...binary, id: 'of-bob', securityContext: to('Patient/bob') },
  {
    resourceType: 'DocumentReference',
    id: 'd',
    status: 'current',
    subject: to('Patient/ann'),
    content: [{ attachment: { url: 'Binary/of-document' } }],
  },
  {
    resourceType: 'Bundle',
    id: 'letter',
    type: 'collection',
    entry: [{ resource: observation('x', 'bob') }],
  },
]

const CALLERS: Readonly<Record<string, TestCaller>> = {
  patient: { scope: 'patient/*.cruds', patient: 'ann', client_id: 'app', sub: 'u' },
  launched: {
    scope: 'user/*.cruds',
    patient: 'cid',
    fhirUser: 'Practitioner/dr',
    client_id: 'app',
    sub: 'u',
  },
  system: ADMIN,
}

const READS: readonly (readonly [line: string, ...patients: string[]])[] = [
  ['GET /Observation/two', 'ann', 'bob'],
  ['GET /Observation/two?_elements=code', 'ann', 'bob'],
  ['GET /Observation/two?_summary=true', 'ann', 'bob'],
  ['GET /Observation/two/_history/1', 'ann', 'bob'],
  ['GET /Observation/two/_history', 'ann', 'bob'],
  ['GET /Observation?_id=two', 'ann', 'bob'],
  ['GET /Observation?_id=two&_elements=code', 'ann', 'bob'],
  ['GET /Observation?_id=one&_summary=data', 'ann'],
  ['GET /Observation?code:text=weight&_id=two', 'ann', 'bob'],
  ['GET /Patient/ann/Observation?_id=two', 'ann', 'bob'],
  ['GET /Observation/$lastn?patient=ann&code:text=weight&max=9', 'ann', 'bob'],
  ['GET /Patient/ann/$everything', 'ann', 'bob'],
  ['GET /Observation/two/$validate', 'ann', 'bob'],
  ['GET /Observation/one', 'ann'],
  ['GET /Patient?_id=ann', 'ann'],
]

const READS_OF_ALL: readonly (readonly [line: string, ...patients: string[]])[] = [
  ['GET /Observation/contained', 'ann', 'bob'],
  ['GET /Observation?_id=one&_include=Observation:subject', 'ann'],
  ['GET /Observation?_id=two&_include=Observation:performer', 'ann', 'bob'],
  ['GET /Group?_id=g&_include=Group:member', 'cid'],
  ['GET /Patient?_id=cid&_revinclude=Group:member', 'cid'],
  ['GET /Binary/of-bob', 'bob'],
  ['GET /Binary/of-document', 'ann'],
  ['GET /Bundle/letter', 'bob'],
  ['GET /Practitioner/dr'],
]

const form = (query: string) => query.slice(query.indexOf('?') + 1)

eachDatabase((_, openStore) => {
  for (const [name, open] of Object.entries(GUARDED_SERVERS))
    describe(`an event of ${name}`, () => {
      let store: Store
      let fhir: GuardedFhir
      before(async () => {
        store = await openStore()
        const audit = createFhirAudit({ auditor: createAuditor({ store }), store, fhirBaseUrl })
        fhir = await startGuardedFhir(DATA, {}, (guard, baseUrl) => open(guard, baseUrl, audit))
      })
      after(() => fhir.close())

      const listPatients = ({ patient_id: one, patients }: KeptRecord) =>
        (patients?.trim().split(' ') ?? (one === null ? [] : [one])).toSorted()
      const newest = async (count = 1) => findRecords(store, { limit: count })
      /** The records of the last request, newest first. */
      const ofLast = async () => {
        const records = await newest(20)
        return records.filter(it => it.request_id === records[0]?.request_id)
      }
      const listAll = (records: readonly KeptRecord[]) =>
        [...new Set(records.flatMap(listPatients))].toSorted()
      /** Sends a request, and lists the patients of its events. */
      const file = async (line: string, caller: TestCaller, body?: unknown) => {
        // Otherwise the server sends the content of a Binary alone.
        const headers = { accept: 'application/fhir+json', ...caller.headers }
        const reply = await fhir.ask(line, { ...caller, headers }, body)
        assert.ok(reply.status < 300, `${line}: ${reply.status} ${reply.text}`)
        return { reply, patients: listAll(await ofLast()) }
      }

      for (const [who, caller] of Object.entries(CALLERS))
        it(`is filed under every patient of what a ${who} token reads (AUDIT-5)`, async () => {
          const reads = who === 'patient' ? READS : [...READS, ...READS_OF_ALL]
          for (const [line, ...expected] of reads) {
            assert.deepEqual((await file(line, caller)).patients, expected, line)
            const [method, url = ''] = line.split(' ')
            const entry = [{ request: { method, url: url.slice(1) } }]
            await fhir.ask('POST /', caller, { resourceType: 'Bundle', type: 'batch', entry })
            const records = await ofLast()
            assert.deepEqual(
              [records.slice(0, -1), records.slice(-1)].map(listAll),
              [expected, expected],
              line,
            )
            if (!/^GET \/(?:Observation|Patient|Group)\?/.test(line)) continue
            const posted = `POST ${url.replace(/\?.*/, '')}/_search`
            assert.deepEqual((await file(posted, caller, form(url))).patients, expected, posted)
          }
        })

      for (const [who, caller] of Object.entries(CALLERS))
        for (const prefer of ['return=representation', 'return=minimal'])
          it(`is filed under a Patient that a ${who} token creates, with ${prefer} (AUDIT-5)`, async () => {
            const asking = { ...caller, headers: { prefer } }
            const own = who === 'patient' ? ['ann'] : []
            const expect = (...patients: readonly string[]) => [...new Set([...own, ...patients])].toSorted()
            // The server chooses the id, whatever the body says.
            const created = await file('POST /Patient', asking, { resourceType: 'Patient', id: 'bob' })
            const id = String(created.reply.headers.location).split('/').at(-3) ?? ''
            assert.deepEqual(created.patients, expect(id))
            for (const type of ['batch', 'transaction']) {
              const fullUrl = 'urn:uuid:0c6a2a4e-7a4a-4b4a-9d5b-3a8f0d6a3f10'
              const patient = {
                fullUrl,
                resource: { resourceType: 'Patient' },
                request: { method: 'POST', url: 'Patient' },
              }
              const linked = {
                resource: condition(type === 'batch' ? 'Patient/ann' : fullUrl),
                request: { method: 'POST', url: 'Condition' },
              }
              const isLinked = who !== 'patient' || type === 'batch'
              const entry = [patient, ...(isLinked ? [linked] : [])]
              const reply = await fhir.ask('POST /', asking, { resourceType: 'Bundle', type, entry })
              assert.equal(reply.status, 200, reply.text)
              const records = await newest(entry.length + 1)
              const [whole, ofPatient, ofCondition] = records.toReversed().map(listPatients)
              const made = ofPatient?.find(it => !own.includes(it)) ?? ''
              assert.notEqual(made, 'bob')
              assert.equal((await fhir.ask(`GET /Patient/${made}`, ADMIN)).status, 200, made)
              assert.deepEqual(ofPatient, expect(made), type)
              if (isLinked) assert.deepEqual(ofCondition, expect(type === 'batch' ? 'ann' : made), type)
              const all = type === 'batch' ? [made, 'ann'] : [made]
              assert.deepEqual(whole, expect(...all), type)
            }
          })

      it('is filed under the former and the present patients of a changed or deleted resource (AUDIT-5)', async () => {
        const change = observation('changed', 'ann', { performer: [to('Patient/bob')] })
        const { launched = ADMIN } = CALLERS
        for (const caller of [launched, ADMIN]) {
          assert.deepEqual((await file('PUT /Observation/changed', caller, change)).patients, ['ann', 'bob'])
          const moved = observation('changed', 'cid')
          assert.deepEqual((await file('PUT /Observation/changed', caller, moved)).patients, [
            'ann',
            'bob',
            'cid',
          ])
          const patch = [{ op: 'replace', path: '/subject/reference', value: 'Patient/ann' }]
          const patched = await file('PATCH /Observation/changed', caller, patch)
          assert.deepEqual(patched.patients, ['ann', 'cid'])
          assert.deepEqual((await file('DELETE /Observation/changed', caller)).patients, ['ann'])
          const history = await file('GET /Observation/changed/_history', caller)
          assert.ok(history.patients.includes('cid'), history.patients.join())
        }
      })

      it('of a resource of two patients is found by the token of each, and names no other (AUDIT-26)', async () => {
        const audits = (patient: string): TestCaller => ({
          scope: 'patient/AuditEvent.rs',
          patient,
          client_id: 'viewer',
          sub: patient,
        })
        const readEvents = async (patient: string, query = '') => {
          const { text } = await fhir.ask(`GET /AuditEvent?_count=1000${query}`, audits(patient))
          const { entry = [] } = JSON.parse(text)
          return entry.map((it: { readonly resource: Resource }) => JSON.stringify(it.resource))
        }
        const { launched = ADMIN } = CALLERS
        const shared = observation('shared', 'ann', { performer: [to('Patient/bob')] })
        const { id: _, ...unnamed } = shared
        const batch = (url: string) => ({
          resourceType: 'Bundle',
          type: 'batch',
          entry: [{ request: { method: 'GET', url } }],
        })
        const patch = [{ op: 'add', path: '/note', value: [{ text: 'x' }] }]
        const requests: readonly (readonly [line: string, body?: unknown])[] = [
          ['PUT /Observation/shared', shared],
          ['POST /Observation', unnamed],
          ['PATCH /Observation/shared', patch],
          ['GET /Observation/shared'],
          ['GET /Observation/shared/_history/1'],
          ['GET /Observation/shared/_history'],
          ['POST /', batch('Observation/shared')],
          ['DELETE /Observation/shared'],
        ]
        for (const [line, body] of requests)
          for (const caller of line.startsWith('GET') ? [launched, ADMIN] : [ADMIN]) {
            await file(line, caller, body)
            const [{ request_id: id = null } = {}] = await newest()
            for (const [patient, other] of [
              ['ann', 'bob'],
              ['bob', 'ann'],
            ] as const) {
              const found = (await readEvents(patient)).filter((it: string) => it.includes(String(id)))
              assert.equal(found.length, 1, `${line} ${patient}`)
              assert.match(found[0], new RegExp(`"Patient/${patient}"`), line)
              assert.doesNotMatch(found[0], new RegExp(`Patient/${other}|Other patients`), line)
            }
          }
        // A search may return resources of any number of patients: its one event names them all.
        await file('GET /Observation?_id=two', ADMIN)
        const [search] = await newest()
        for (const patient of ['ann', 'bob'])
          assert(!(await readEvents(patient)).some((it: string) => it.includes(String(search?.request_id))))
      })

      it('is filed under all patients of a page, however many, and found by each of them (AUDIT-5)', async () => {
        const ids = Array.from({ length: 260 }, (_, at) => `many-${at}`)
        const entry = ids.map(id => ({
          resource: { resourceType: 'Patient', id, identifier: [{ value: 'many' }] },
          request: { method: 'PUT', url: `Patient/${id}` },
        }))
        await fhir.ask('POST /', ADMIN, { resourceType: 'Bundle', type: 'transaction', entry })
        const [written] = await findRecords(store, {
          events: [{ kind: 'fhir', interaction: 'transaction' }],
          limit: 1,
        })
        assert.deepEqual(written && listPatients(written), ids.toSorted())
        const read = await file('GET /Patient?identifier=many&_count=300', ADMIN)
        assert.deepEqual(read.patients, ids.toSorted())
        for (const id of ids) {
          const found = await findRecords(store, { patients: [id], limit: 10 })
          assert.equal(found.filter(it => it.interaction === 'search-type').length, 1, id)
        }
      })
    })
})
