/** Conformance resources, operations and patches that both FHIR servers serve alike. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Resource } from '../src/fhir/index.ts'
import {
  type Asking,
  type GuardedFhir,
  NOT_WITHIN,
  shownIn,
  startGuardedFhir,
} from './support/guarded-fhir.ts'
import { GUARDED_SERVERS } from './support/guarded-servers.ts'

const to = (reference: string) => ({ reference })
const ann = (scope = 'patient/*.cruds'): Asking => ({ scope, patient: 'ann' })

const DATA: readonly Resource[] = [
  { resourceType: 'Questionnaire', id: 'phq', status: 'active', url: 'http://example.org/phq' },
  { resourceType: 'ValueSet', id: 'colours', status: 'active' },
  { resourceType: 'Patient', id: 'ann' },
  { resourceType: 'Patient', id: 'bob' },
  {
    ...{ resourceType: 'QuestionnaireResponse', id: 'qa', status: 'completed' },
    ...{ questionnaire: 'http://example.org/phq', subject: to('Patient/ann') },
  },
  {
    ...{ resourceType: 'QuestionnaireResponse', id: 'qb', status: 'completed' },
    ...{ questionnaire: 'http://example.org/phq', subject: to('Patient/bob') },
  },
]

for (const [name, open] of Object.entries(GUARDED_SERVERS))
  describe(`on ${name}`, () => {
    let server: GuardedFhir
    before(async () => {
      server = await startGuardedFhir(DATA, {}, open)
    })
    after(() => server.close())
    const ask = (line: string, asking: Asking = ann(), body?: unknown) => server.ask(line, asking, body)

    describe('a conformance resource', () => {
      it('is read and searched with a patient/ scope that covers its type, and never written', async () => {
        for (const scope of ['patient/*.rs', 'patient/Questionnaire.rs'])
          for (const line of ['GET /Questionnaire/phq', 'GET /Questionnaire?url=http://example.org/phq'])
            assert.equal((await ask(line, ann(scope))).status, 200, `${line} ${scope}`)
        assert.deepEqual(shownIn(await ask('GET /ValueSet', ann('patient/ValueSet.rs'))), [
          'ValueSet/colours',
        ])
        assert.equal((await ask('GET /Questionnaire/phq', ann('patient/Patient.rs'))).status, 403)
        assert.equal((await ask('DELETE /Questionnaire/phq')).why, NOT_WITHIN)
        const changed = { ...DATA[0], title: 'x' }
        assert.equal((await ask('PUT /Questionnaire/phq', ann(), changed)).why, NOT_WITHIN)
      })

      it('brings nobody else’s answers along', async () => {
        assert.deepEqual(shownIn(await ask('GET /QuestionnaireResponse')), ['QuestionnaireResponse/qa'])
        assert.equal((await ask('GET /QuestionnaireResponse/qb')).why, NOT_WITHIN)
        const line = 'GET /Questionnaire?_revinclude=QuestionnaireResponse:questionnaire'
        assert.doesNotMatch((await ask(line)).text, /"qb"/)
      })
    })
  })
