import assert from 'node:assert/strict'
import {
  condition,
  createAuthenticator,
  type Fhir,
  observation,
  patient,
  patientAccess,
  type StartFhir,
} from '../../backends/sqlite/testing/fhir.ts'
import { type Access, fullAccess, type VersionAccess } from '../../smart/index.ts'

const category = (code: string) => ({
  category: [{ coding: [{ system: 'http://terminology.hl7.org/CodeSystem/observation-category', code }] }],
})
const vitals: Access = {
  filterFor: type =>
    type === 'Observation' ? [{ patient: 'ann', query: [['category', 'vital-signs']] }] : [],
}
const noPatients: Access = { filterFor: type => (type === 'Patient' ? [] : 'everything') }
const unreadable: Access = {
  filterFor: () => [{ query: [['nothing', 'x']] }, { query: [['patient.name', 'x']] }],
}

const DATA = [
  { resourceType: 'Practitioner', id: 'dr', name: [{ family: 'Who' }] },
  patient('ann', { name: [{ family: 'Ann' }], generalPractitioner: [{ reference: 'Practitioner/dr' }] }),
  patient('bob', {
    name: [{ family: 'Bob' }],
    link: [{ other: { reference: 'Patient/ann' }, type: 'seealso' }],
  }),
  condition('ca', 'ann', { recordedDate: '2020' }),
  condition('cb', 'bob', { recordedDate: '2021' }),
  condition('moved', 'bob'),
  observation('oa', 'ann', { ...category('vital-signs'), valueQuantity: { value: 1 } }),
  observation('oa-lab', 'ann', category('laboratory')),
  observation('ob', 'bob', {
    ...category('vital-signs'),
    focus: [{ reference: 'Patient/ann' }],
    hasMember: [{ reference: 'Observation/oa' }],
  }),
  observation('about-ob', 'ann', { ...category('survey'), hasMember: [{ reference: 'Observation/ob' }] }),
]

export interface TwoPatients {
  /** Without a token. */
  readonly fhir: Fhir
  readonly all: Fhir
  readonly ann: Fhir
}

/**
 * Starts a server with access control and two patients. Each has resources, deleted resources, and resources that were
 * moved to the other patient and back. `all` may do everything, `ann` everything in her compartment, others less.
 */
export async function startTwoPatients(
  start: StartFhir,
  versionAccess: VersionAccess = 'current',
): Promise<TwoPatients> {
  const fhir = await start({
    versionAccess,
    guard: createAuthenticator({
      all: fullAccess,
      ann: patientAccess('ann'),
      bob: patientAccess('bob'),
      creator: patientAccess('ann', 'c'),
      searcher: patientAccess('ann', 's'),
      vitals,
      noPatients,
      unreadable,
      user: {
        filterFor: (type, permission) =>
          type === 'Practitioner' && permission === 'r' ? [{ id: 'dr' }] : [],
      },
    }),
  })
  const all = fhir.as('all')
  for (const it of DATA) assert.ok((await all(`PUT ${it.resourceType}/${it.id}`, it)).status < 300)
  await all('PUT Condition/moved', condition('moved', 'ann'))
  await all('PUT Condition/moved', condition('moved', 'bob'))
  await all('PUT Condition/gone-a', condition('gone-a', 'ann'))
  await all('PUT Condition/gone-b', condition('gone-b', 'bob'))
  await all('DELETE Condition/gone-a')
  await all('DELETE Condition/gone-b')
  return { fhir, all, ann: fhir.as('ann') }
}
