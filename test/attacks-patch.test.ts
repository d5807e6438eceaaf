/** What a grant may write and not read (attacks.md 2, 13, 16). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Resource } from '../src/fhir/index.ts'
import { type Asking, type GuardedFhir, NOT_WITHIN, startGuardedFhir } from './support/guarded-fhir.ts'
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
]
const ann = (scope = 'patient/*.cruds'): Asking => ({ scope, patient: 'ann' })

for (const [name, open] of Object.entries(GUARDED_SERVERS))
  describe(`a patch of what may not be read, on ${name}`, () => {
    let server: GuardedFhir
    before(async () => {
      server = await startGuardedFhir(DATA, {}, open)
    })
    after(() => server.close())
    const ask = (line: string, asking: Asking, body?: unknown) => server.ask(line, asking, body)
    const blind = ann('patient/Observation.u patient/Observation.rs?category=laboratory')
    const patch = (steps: readonly object[], asking = blind) => ask('PATCH /Observation/ov', asking, steps)
    const code = '/category/0/coding/0/code'

    it('does not make it readable', async () => {
      assert.equal((await patch([{ op: 'replace', path: code, value: 'laboratory' }])).why, NOT_WITHIN)
      assert.equal((await ask('GET /Observation/ov', blind)).why, NOT_WITHIN)
      const note = [{ op: 'add', path: '/note', value: [{ text: 'x' }] }]
      const noted = await patch(note)
      assert.deepEqual([noted.status, noted.text], [200, ''])
      const reader = ann('patient/Observation.ru')
      assert.equal((await patch([{ op: 'replace', path: code, value: 'vital-signs' }], reader)).status, 200)
    })

    it('copies, moves and tests nothing of it, and says no more than that it failed', async () => {
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

    it('goes there and back within one patch, and ends where it was', async () => {
      const there = { op: 'replace', path: '/subject', value: to('Patient/bob') }
      const back = { op: 'replace', path: '/subject', value: to('Patient/ann') }
      assert.equal((await ask('PATCH /Condition/ca', ann(), [there, back])).status, 200)
      assert.equal((await ask('PATCH /Condition/ca', ann(), [back, there])).why, NOT_WITHIN)
      assert.equal((await ask('PATCH /Condition/cb', ann(), [back])).why, NOT_WITHIN)
    })
  })
