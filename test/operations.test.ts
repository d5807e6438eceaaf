/** Conformance resources, operations and patches that both FHIR servers serve alike. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Resource } from '../src/fhir/index.ts'
import { fhirBaseUrl } from '../src/interceptor/testing/test-issuer.ts'
import {
  type GuardedFhir,
  NOT_WITHIN,
  shownIn,
  startGuardedFhir,
  type TestCaller,
} from './support/guarded-fhir.ts'
import { GUARDED_SERVERS } from './support/guarded-servers.ts'

const to = (reference: string) => ({ reference })
const ann = (scope = 'patient/*.cruds'): TestCaller => ({ scope, patient: 'ann' })

const CLAIM = { profile: ['http://example.org/unknown'] }

const DATA: readonly Resource[] = [
  { resourceType: 'Questionnaire', id: 'phq', status: 'active', url: 'http://example.org/phq' },
  { resourceType: 'ValueSet', id: 'colours', status: 'active' },
  { resourceType: 'Patient', id: 'ann' },
  { resourceType: 'Patient', id: 'bob' },
  {
    resourceType: 'QuestionnaireResponse',
    id: 'qa',
    status: 'completed',
    questionnaire: 'http://example.org/phq',
    subject: to('Patient/ann'),
    meta: CLAIM,
  },
  {
    resourceType: 'QuestionnaireResponse',
    id: 'qb',
    status: 'completed',
    questionnaire: 'http://example.org/phq',
    subject: to('Patient/bob'),
    meta: CLAIM,
  },
]

const observation = (
  id: string,
  patient: string,
  code: string,
  day: string,
  more: object = {},
): Resource => ({
  resourceType: 'Observation',
  id,
  status: 'final',
  effectiveDateTime: day,
  subject: to(`Patient/${patient}`),
  code: { coding: [{ system: 'http://loinc.org', code }] },
  ...more,
})

const RECORD: readonly Resource[] = [
  { resourceType: 'Practitioner', id: 'dr' },
  ...['ann', 'bob'].map(id => ({
    resourceType: 'Encounter',
    id: `e-${id}`,
    status: 'finished',
    class: { code: 'AMB' },
    subject: to(`Patient/${id}`),
    period: { start: '2020-05-01', end: '2020-05-02' },
    participant: [{ individual: to('Practitioner/dr') }],
  })),
  observation('a-2019', 'ann', 'hr', '2019-01-01'),
  observation('a-2020', 'ann', 'hr', '2020-05-01', { encounter: to('Encounter/e-ann') }),
  observation('a-2021', 'ann', 'hr', '2021-01-01'),
  observation('a-bp', 'ann', 'bp', '2018-01-01'),
  observation('b-2022', 'bob', 'hr', '2022-01-01'),
  // Data of another patient in Ann's encounter.
  observation('b-here', 'bob', 'hr', '2020-05-01', { encounter: to('Encounter/e-ann') }),
  { resourceType: 'Condition', id: 'c-2019', subject: to('Patient/ann'), recordedDate: '2019-06-01' },
  { resourceType: 'Condition', id: 'c-undated', subject: to('Patient/ann') },
  { resourceType: 'Practitioner', id: 'prescriber' },
  { resourceType: 'Medication', id: 'm1', code: { text: 'x' } },
  {
    resourceType: 'MedicationRequest',
    id: 'mr',
    status: 'active',
    intent: 'order',
    subject: to('Patient/ann'),
    encounter: to('Encounter/e-ann'),
    requester: to('Practitioner/prescriber'),
    medicationReference: to('Medication/m1'),
  },
]

for (const [name, open] of Object.entries(GUARDED_SERVERS))
  describe(`on ${name}`, () => {
    let server: GuardedFhir
    before(async () => {
      server = await startGuardedFhir([...DATA, ...RECORD], {}, open)
    })
    after(() => server.close())
    const ask = (line: string, asking: TestCaller = ann(), body?: unknown) => server.ask(line, asking, body)

    describe('a conformance resource', () => {
      it('can be read and searched with a patient/ scope that covers its type, and never written (PATIENT-5)', async () => {
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

      it("returns no other patient's QuestionnaireResponses", async () => {
        assert.deepEqual(shownIn(await ask('GET /QuestionnaireResponse')), ['QuestionnaireResponse/qa'])
        assert.equal((await ask('GET /QuestionnaireResponse/qb')).why, NOT_WITHIN)
        const line = 'GET /Questionnaire?_revinclude=QuestionnaireResponse:questionnaire'
        assert.doesNotMatch((await ask(line)).text, /"qb"/)
      })
    })

    describe('$validate of a stored resource', () => {
      const VALID = ['information', undefined]
      const validate = async (line: string, asking = ann('patient/*.r')) => {
        const reply = await ask(`GET /${line}`, asking)
        const issues = reply.body.issue as readonly { severity: string; expression?: readonly string[] }[]
        return { ...reply, issues: issues.map(({ severity, expression }) => [severity, expression?.[0]]) }
      }

      it('reports its faults, or that it is valid (OPERATION-5)', async () => {
        const claim = await validate('QuestionnaireResponse/qa/$validate?mode=update')
        assert.deepEqual(
          [claim.status, claim.issues.at(-1)],
          [200, ['warning', 'QuestionnaireResponse.meta.profile']],
        )
        const good = await validate('Patient/ann/$validate')
        assert.deepEqual([good.status, good.issues[0]], [200, VALID])
        assert.equal((await validate('Patient/ann/$validate?profile=http://x')).issues.at(-1)?.[0], 'error')
      })

      it("is refused for another patient's resource as for an absent one, and without permission to read (OPERATION-5)", async () => {
        const hidden = await validate('QuestionnaireResponse/qb/$validate')
        assert.equal(hidden.why, NOT_WITHIN)
        assert.equal((await validate('QuestionnaireResponse/absent/$validate')).text, hidden.text)
        assert.equal(
          (await validate('QuestionnaireResponse/qa/$validate', ann('patient/*.cuds'))).status,
          403,
        )
        const all: TestCaller = { scope: 'system/*.rs', patient: null }
        assert.equal((await validate('QuestionnaireResponse/absent/$validate', all)).status, 404)
      })
    })

    describe('$everything for a caller who may see a part of the record', () => {
      it('shows resources that belong to no patient only if a visible resource refers to them (OPERATION-6)', async () => {
        const shared = async (line: string, scope: string) =>
          shownIn(await ask(line, ann(scope))).filter(it => /^(?:Pract|Medication\/)/.test(it))
        const scope = 'patient/Patient.rs patient/Practitioner.rs patient/Medication.rs'
        for (const path of ['Patient/ann', 'Encounter/e-ann']) {
          const line = `GET /${path}/$everything`
          assert.deepEqual(await shared(line, `${scope} patient/Encounter.rs`), ['Practitioner/dr'], path)
          assert.deepEqual(
            await shared(`${line}?_type=Practitioner,Medication`, `${scope} patient/Encounter.rs`),
            ['Practitioner/dr'],
          )
        }
        const more = `${scope} patient/Encounter.rs patient/MedicationRequest.rs`
        assert.deepEqual(await shared('GET /Patient/ann/$everything', more), [
          'Medication/m1',
          'Practitioner/dr',
          'Practitioner/prescriber',
        ])
        assert.deepEqual(await shared('GET /Patient/ann/$everything', scope), [])
      })
    })

    describe('$everything with start and end', () => {
      const shown = async (query: string, asking?: TestCaller) =>
        shownIn(await ask(`GET /Patient/ann/$everything?${query}`, asking)).filter(it =>
          /^(?:Cond|Obs|Enc)/.test(it),
        )

      it('returns resources of that time and undated ones (OPERATION-3)', async () => {
        assert.deepEqual(await shown('start=2020-01-01&end=2020-12-31'), [
          'Condition/c-undated',
          'Encounter/e-ann',
          'Observation/a-2020',
        ])
        assert.deepEqual(await shown('start=2020-05-02'), [
          'Condition/c-undated',
          'Encounter/e-ann',
          'Observation/a-2021',
        ])
        assert.deepEqual(await shown('end=2019'), [
          'Condition/c-2019',
          'Condition/c-undated',
          'Observation/a-2019',
          'Observation/a-bp',
        ])
        const body = { resourceType: 'Parameters', parameter: [{ name: 'start', valueDate: '2021' }] }
        const posted = await ask('POST /Patient/ann/$everything', ann(), body)
        assert.deepEqual(
          shownIn(posted).filter(it => it.startsWith('Obs')),
          ['Observation/a-2021'],
        )
      })

      it('keeps them from page to page, and stays within the grant', async () => {
        const first = await ask(
          'GET /Patient/ann/$everything?start=2019&end=2021-12-31&_type=Observation&_count=1',
        )
        const found = [...shownIn(first)]
        for (let reply = first; ; ) {
          const next = reply.body.link?.find(({ relation }) => relation === 'next')?.url
          if (next === undefined) break
          reply = await ask(`GET ${next.slice(fhirBaseUrl.length)}`)
          found.push(...shownIn(reply))
        }
        assert.deepEqual([...new Set(found)].filter(it => it.startsWith('Obs')).sort(), [
          'Observation/a-2019',
          'Observation/a-2020',
          'Observation/a-2021',
        ])
        assert.deepEqual(await shown('start=2020&end=2020', ann('patient/Patient.rs patient/Encounter.rs')), [
          'Encounter/e-ann',
        ])
      })

      it('accepts only dates', async () => {
        for (const query of ['start=soon', 'end=2020-13-01', 'start=2020&start=2021', 'begin=2020'])
          assert.equal((await ask(`GET /Patient/ann/$everything?${query}`)).status, 400, query)
      })
    })

    describe('Encounter/[id]/$everything', () => {
      it('returns the encounter, its references and the resources that refer to it, within the grant (OPERATION-2)', async () => {
        const reply = await ask('GET /Encounter/e-ann/$everything')
        assert.deepEqual(shownIn(reply), [
          'Encounter/e-ann',
          'MedicationRequest/mr',
          'Observation/a-2020',
          'Patient/ann',
          'Practitioner/dr',
        ])
        assert.doesNotMatch(reply.text, /b-here|Patient\/bob/)
        const narrow = await ask('GET /Encounter/e-ann/$everything', ann('patient/Encounter.rs'))
        assert.deepEqual(shownIn(narrow), ['Encounter/e-ann'])
        const typed = await ask('GET /Encounter/e-ann/$everything?_type=Observation')
        assert.deepEqual(
          shownIn(typed).filter(it => !it.startsWith('Encounter/')),
          ['Observation/a-2020'],
        )
      })

      it('is refused for another patient and for an absent encounter alike', async () => {
        for (const id of ['e-bob', 'e-nobody'])
          assert.equal((await ask(`GET /Encounter/${id}/$everything`)).why, NOT_WITHIN)
        const scope = ann('patient/Observation.rs')
        assert.match((await ask('GET /Encounter/e-ann/$everything', scope)).why ?? '', /on Encounter/)
        assert.equal((await ask('GET /Encounter/e-ann/$everything?start=2020')).status, 400)
      })
    })

    describe('Observation/$lastn', () => {
      it('returns the newest of each code within the grant (OPERATION-4)', async () => {
        const reply = await ask('GET /Observation/$lastn')
        assert.deepEqual([shownIn(reply), reply.body.total], [['Observation/a-2021', 'Observation/a-bp'], 2])
        assert.doesNotMatch(reply.text, /b-2022/)
        const two = await ask('GET /Observation/$lastn?max=2&code=http://loinc.org|hr')
        assert.deepEqual(shownIn(two), ['Observation/a-2020', 'Observation/a-2021'])
        const all = await ask('GET /Observation/$lastn?patient=bob', { scope: 'system/*.rs', patient: null })
        assert.deepEqual(shownIn(all), ['Observation/b-2022'])
      })

      it('accepts its parameters in a body too', async () => {
        const parameter = [
          { name: 'max', valuePositiveInt: 2 },
          { name: 'code', valueString: 'http://loinc.org|hr' },
        ]
        const reply = await ask('POST /Observation/$lastn', ann(), { resourceType: 'Parameters', parameter })
        assert.deepEqual(shownIn(reply), ['Observation/a-2020', 'Observation/a-2021'])
      })

      it('returns nothing of another patient, and reveals nothing by a chain', async () => {
        for (const query of ['patient=bob', 'subject=Patient/bob', 'patient._id=bob'])
          assert.deepEqual(shownIn(await ask(`GET /Observation/$lastn?${query}`)), [], query)
        assert.equal((await ask('GET /Observation/$lastn', ann('patient/Patient.rs'))).status, 403)
        for (const query of ['max=0', '_include=Observation:subject', 'nonsense=1'])
          assert.equal((await ask(`GET /Observation/$lastn?${query}`)).status, 400, query)
      })
    })

    it('lists the supported operations in metadata (OPERATION-1)', async () => {
      const { rest } = (await ask('GET /metadata')).body as { rest: readonly Statement[] }
      const named = (type: string) =>
        rest[0]?.resource
          .find(it => it.type === type)
          ?.operation?.map(it => it.name)
          .toSorted()
      assert.deepEqual(named('Patient'), ['everything', 'validate'])
      assert.deepEqual(named('Encounter'), ['everything', 'validate'])
      assert.deepEqual(named('Observation'), ['lastn', 'validate'])
      assert.deepEqual(named('ValueSet'), ['validate'])
    })
  })

interface Statement {
  readonly resource: readonly {
    readonly type: string
    readonly operation?: readonly { readonly name: string; readonly definition: string }[]
  }[]
}
