/** Patches of resources that the grant may write but not read (WRITE-5, WRITE-6; attacks 2, 13 and 16 of vectors/README.md). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Resource } from '../src/fhir/index.ts'
import { type GuardedFhir, NOT_WITHIN, startGuardedFhir, type TestCaller } from './support/guarded-fhir.ts'
import { GUARDED_SERVERS } from './support/guarded-servers.ts'

const to = (reference: string) => ({ reference })
const DATA: readonly Resource[] = [
  { resourceType: 'Patient', id: 'ann' },
  { resourceType: 'Patient', id: 'bob' },
  { resourceType: 'Condition', id: 'ca', subject: to('Patient/ann') },
  { resourceType: 'Condition', id: 'cb', subject: to('Patient/bob') },
  {
    resourceType: 'Observation',
    id: 'ov',
    status: 'final',
    code: { text: 'x' },
    category: [{ coding: [{ code: 'vital-signs' }] }],
    subject: to('Patient/ann'),
    valueString: 'Hidden',
  },
  { resourceType: 'Device', id: 'x' },
]
const ann = (scope = 'patient/*.cruds'): TestCaller => ({ scope, patient: 'ann' })

/** Creates a FHIRPath Patch of these operations: type, path and further parts. */
const fhirPath = (
  ...operations: readonly (readonly [type: string, path: string, more?: readonly object[]])[]
) => ({
  resourceType: 'Parameters',
  parameter: operations.map(([type, path, more = []]) => ({
    name: 'operation',
    part: [{ name: 'type', valueCode: type }, { name: 'path', valueString: path }, ...more],
  })),
})
const named = (name: string) => ({ name: 'name', valueString: name })
const text = (valueString: string) => ({ name: 'value', valueString })

for (const [name, open] of Object.entries(GUARDED_SERVERS))
  describe(`a patch of unreadable content, on ${name}`, () => {
    let server: GuardedFhir
    before(async () => {
      server = await startGuardedFhir(DATA, {}, open)
    })
    after(() => server.close())
    const ask = (line: string, asking: TestCaller, body?: unknown) => server.ask(line, asking, body)
    const blind = ann('patient/Observation.u patient/Observation.rs?category=laboratory')
    const patch = (steps: readonly object[], asking = blind) => ask('PATCH /Observation/ov', asking, steps)
    const code = '/category/0/coding/0/code'

    it('does not make it readable (WRITE-6)', async () => {
      assert.equal((await patch([{ op: 'replace', path: code, value: 'laboratory' }])).why, NOT_WITHIN)
      assert.equal((await ask('GET /Observation/ov', blind)).why, NOT_WITHIN)
      const note = [{ op: 'add', path: '/note', value: [{ text: 'x' }] }]
      const noted = await patch(note)
      assert.deepEqual([noted.status, noted.text], [200, ''])
      const reader = ann('patient/Observation.ru')
      assert.equal((await patch([{ op: 'replace', path: code, value: 'vital-signs' }], reader)).status, 200)
    })

    it('cannot copy, move or test it, and reveals only that it failed (WRITE-5)', async () => {
      for (const step of [
        { op: 'copy', from: '/valueString', path: '/code/text' },
        { op: 'move', from: '/valueString', path: '/code/text' },
        { op: 'test', path: '/valueString', value: 'Hidden' },
      ])
        assert.equal((await patch([step])).why, NOT_WITHIN, step.op)
      for (const step of [
        { op: 'remove', path: '/bodySite' },
        { op: 'add', path: '/valueInteger', value: 1 },
        { op: 'replace', path: '/status', value: 'x' },
        { op: 'replace', path: '/id', value: 'x' },
      ]) {
        const { status, why } = await patch([step])
        assert.deepEqual([status, why], [422, 'Cannot apply patch'], JSON.stringify(step))
      }
    })

    describe('with FHIRPath Patch', () => {
      const blindly = (patch: object, asking = blind) => ask('PATCH /Observation/ov', asking, patch)
      const category = 'Observation.category[0].coding[0].code'

      it('does not make it readable (WRITE-6)', async () => {
        const readable = fhirPath(['replace', category, [{ name: 'value', valueCode: 'laboratory' }]])
        assert.equal((await blindly(readable)).why, NOT_WITHIN)
        assert.equal((await ask('GET /Observation/ov', blind)).why, NOT_WITHIN)
        const device = [named('device'), { name: 'value', valueReference: to('Device/x') }]
        const noted = await blindly(fhirPath(['add', 'Observation', device]))
        assert.deepEqual([noted.status, noted.text], [200, ''])
        assert.equal((await blindly(fhirPath(['delete', 'Observation.device']))).status, 200)
      })

      it('cannot query it by a condition or a move, and reveals only that it failed (WRITE-5)', async () => {
        const note = [named('comment'), text('x')]
        for (const patch of [
          fhirPath(['delete', "Observation.note.where(text = 'x')"]),
          fhirPath(['delete', "Observation.code.where(text = 'x')"]),
          fhirPath(['delete', 'Observation.value.ofType(string)']),
          fhirPath(['add', "Observation.code.where(text = 'x')", note]),
          fhirPath(['add', "Observation.extension('http://x')", note]),
          fhirPath([
            'move',
            'Observation.note',
            [
              { name: 'source', valueInteger: 0 },
              { name: 'destination', valueInteger: 0 },
            ],
          ]),
        ])
          assert.equal((await blindly(patch)).why, NOT_WITHIN, JSON.stringify(patch))
        for (const patch of [
          fhirPath(['replace', 'Observation.bodySite.text', [text('x')]]),
          fhirPath(['add', 'Observation', [named('value'), text('x')]]),
          fhirPath(['replace', 'Observation.status', [{ name: 'value', valueCode: 'x' }]]),
          fhirPath(['replace', 'Observation.id', [{ name: 'value', valueId: 'x' }]]),
        ]) {
          const { status, why } = await blindly(patch)
          assert.deepEqual([status, why], [422, 'Cannot apply patch'], JSON.stringify(patch))
        }
      })

      it('cannot move a resource to another record', async () => {
        const there = [
          'replace',
          'Condition.subject',
          [{ name: 'value', valueReference: to('Patient/bob') }],
        ] as const
        const back = ['replace', 'Condition.subject.reference', [text('Patient/ann')]] as const
        assert.equal((await ask('PATCH /Condition/ca', ann(), fhirPath(there, back))).status, 200)
        assert.equal((await ask('PATCH /Condition/ca', ann(), fhirPath(back, there))).why, NOT_WITHIN)
        assert.equal((await ask('PATCH /Condition/cb', ann(), fhirPath(back))).why, NOT_WITHIN)
        assert.equal((await ask('PATCH /Condition?_id=cb', ann(), fhirPath(back))).status, 404)
        assert.equal(
          (await ask('PATCH /Condition/ca', ann('patient/Condition.rs'), fhirPath(back))).status,
          403,
        )
        assert.equal((await ask('PATCH /Condition/nobody', ann(), fhirPath(back))).why, NOT_WITHIN)
      })

      it('has the same effect in a Bundle', async () => {
        const patch = fhirPath([
          'add',
          'Condition',
          [named('recordedDate'), { name: 'value', valueDateTime: '2024' }],
        ])
        const gone = fhirPath(['delete', 'Condition.recordedDate'])
        const entry = (id: string, resource: object) => ({
          resource,
          request: { method: 'PATCH', url: `Condition/${id}` },
        })
        for (const type of ['batch', 'transaction']) {
          const bundle = (...list: object[]) => ({ resourceType: 'Bundle', type, entry: list })
          const reply = await ask('POST /', ann(), bundle(entry('ca', patch)))
          assert.equal(reply.body.entry?.[0]?.response?.status.slice(0, 3), '200', reply.text)
          assert.equal((await ask('GET /Condition/ca', ann())).body.recordedDate, '2024')
          assert.equal((await ask('POST /', ann(), bundle(entry('ca', gone)))).status, 200)
          const stranger = await ask('POST /', ann(), bundle(entry('cb', patch)))
          assert.match(stranger.text, /Not within the granted/)
        }
      })
    })

    it('may move a value and move it back within one patch', async () => {
      const there = { op: 'replace', path: '/subject', value: to('Patient/bob') }
      const back = { op: 'replace', path: '/subject', value: to('Patient/ann') }
      assert.equal((await ask('PATCH /Condition/ca', ann(), [there, back])).status, 200)
      assert.equal((await ask('PATCH /Condition/ca', ann(), [back, there])).why, NOT_WITHIN)
      assert.equal((await ask('PATCH /Condition/cb', ann(), [back])).why, NOT_WITHIN)
    })
  })
