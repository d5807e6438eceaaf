/** `X-Provenance`, which both FHIR servers handle alike. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createAuditor, createFhirAudit, findRecords } from '../src/audit/index.ts'
import type { Resource } from '../src/fhir/index.ts'
import { fhirBaseUrl } from '../src/interceptor/testing/test-issuer.ts'
import type { Store } from '../src/store/index.ts'
import { eachDatabaseIfThorough } from './support/databases.ts'
import { ADMIN, type GuardedFhir, startGuardedFhir, type TestCaller } from './support/guarded-fhir.ts'
import { GUARDED_SERVERS } from './support/guarded-servers.ts'

const to = (reference: string) => ({ reference })
const condition = (more: object = {}) => ({
  resourceType: 'Condition',
  subject: to('Patient/ann'),
  ...more,
})
const PROVENANCE = {
  resourceType: 'Provenance',
  recorded: '2026-01-05T10:00:00Z',
  agent: [{ who: { display: 'Import' } }],
}
/** A limited app names its patient, because R4's compartment has a Provenance by that target alone. */
const OF_ANN = { ...PROVENANCE, target: [to('Patient/ann')] }
const DATA: readonly Resource[] = [
  { resourceType: 'Patient', id: 'ann' },
  { resourceType: 'Patient', id: 'bob' },
  { resourceType: 'Condition', id: 'of-ann', subject: to('Patient/ann') },
  { resourceType: 'Condition', id: 'of-bob', subject: to('Patient/bob') },
]

eachDatabaseIfThorough((_, openStore) => {
  for (const [name, open] of Object.entries(GUARDED_SERVERS))
    describe(`X-Provenance on ${name}`, () => {
      let store: Store
      let fhir: GuardedFhir
      before(async () => {
        store = await openStore()
        const audit = createFhirAudit({ auditor: createAuditor({ store }), store, fhirBaseUrl })
        fhir = await startGuardedFhir(DATA, {}, (guard, baseUrl) => open(guard, baseUrl, audit))
      })
      after(() => fhir.close())

      const ask = (line: string, provenance: unknown, body: unknown, asking: TestCaller = ann()) =>
        fhir.ask(
          line,
          { ...asking, headers: { ...asking.headers, 'x-provenance': JSON.stringify(provenance) } },
          body,
        )
      const ann = (scope = 'patient/*.cruds'): TestCaller => ({ scope, patient: 'ann' })
      const listProvenances = async () => {
        const { body } = await fhir.ask('GET /Provenance?_count=100', ADMIN)
        return (body.entry ?? []).map(({ resource }) => JSON.stringify(resource))
      }
      const countConditions = async () => (await fhir.ask('GET /Condition?_summary=count', ADMIN)).body.total

      for (const [who, asking, provenance] of [
        ['a patient/ app', ann(), OF_ANN],
        ['a caller with access to everything', ADMIN, PROVENANCE],
      ] as const)
        it(`creates a Provenance of each write of ${who}, and records both (WRITE-15)`, async () => {
          const created = await ask('POST /Condition', provenance, condition(), asking)
          assert.equal(created.status, 201, created.text)
          assert.equal(created.body.resourceType, 'Condition')
          const { id } = created.body
          assert.match(String(created.headers.location), new RegExp(`/Condition/${id}/_history/1$`))
          const about = async () =>
            (await listProvenances()).filter(it => it.includes(`{"reference":"Condition/${id}"}`))
          assert.equal((await about()).length, 1)
          const records = await findRecords(store, { limit: 4 })
          const kinds = records.map(it => `${it.interaction} ${it.resource_type}`)
          assert(kinds.includes('create Condition') && kinds.includes('create Provenance'), kinds.join())
          const stored = { ...condition({ code: { text: who } }), id }
          assert.equal((await ask(`PUT /Condition/${id}`, provenance, stored, asking)).status, 200)
          assert.equal((await about()).length, 2)
        })

      it('is checked as any other write (WRITE-15)', async () => {
        const [before, conditions] = [(await listProvenances()).length, await countConditions()]
        const other = { ...OF_ANN, entity: [{ role: 'source', what: to('Condition/of-bob') }] }
        for (const [line, provenance, body, status, text, asking] of [
          ['POST /Condition', PROVENANCE, condition(), 403, /on Provenance/, ann('patient/Condition.cruds')],
          ['POST /Condition', PROVENANCE, condition(), 403, /granted patient as one of its targets/, ann()],
          [
            'POST /Condition',
            { ...PROVENANCE, target: [to('Patient/bob')] },
            condition(),
            403,
            /one of its targets/,
            ann(),
          ],
          ['POST /Condition', other, condition(), 403, /Provenance\.entity/, ann()],
          ['POST /Condition', { ...OF_ANN, agent: [] }, condition(), 422, /Provenance\.agent/, ann()],
          ['POST /Condition', OF_ANN, condition({ subject: to('Patient/bob') }), 403, /Not within/, ann()],
          [
            'PUT /Condition/of-bob',
            OF_ANN,
            { ...condition(), id: 'of-bob' },
            403,
            /Not within the granted patient/,
            ann(),
          ],
        ] as const) {
          const reply = await ask(line, provenance, body, asking)
          assert.equal(reply.status, status, reply.text)
          assert.match(reply.text, text)
          assert.doesNotMatch(reply.text, /Bundle\.entry/)
        }
        assert.deepEqual([(await listProvenances()).length, await countConditions()], [before, conditions])
      })

      it('is refused where it cannot be used, and never dropped (WRITE-15)', async () => {
        const before = await countConditions()
        const patch = [{ op: 'add', path: '/code', value: { text: 'x' } }]
        for (const [line, body, headers] of [
          ['PATCH /Condition/of-ann', patch, {}],
          ['DELETE /Condition/of-ann', undefined, {}],
          ['POST /', { resourceType: 'Bundle', type: 'batch', entry: [] }, {}],
          ['POST /Condition', condition(), { 'if-none-exist': 'code=x' }],
        ] as const) {
          const reply = await ask(line, PROVENANCE, body, { ...ann(), headers })
          assert.equal(reply.status, 400, `${line} ${reply.text}`)
          assert.match(reply.text, /Cannot accept X-Provenance/)
        }
        const encoded = { ...OF_ANN, agent: [{ who: { display: 'Müller' } }] }
        for (const malformed of [{ ...PROVENANCE, target: 'x' }, condition(), 'x', null, encoded])
          assert.match(
            (await ask('POST /Condition', malformed, condition())).text,
            /Cannot read X-Provenance/,
          )
        assert.equal(await countConditions(), before)
        assert.equal((await ask('GET /Condition/of-ann', PROVENANCE, undefined)).status, 200)
      })
    })
})
