import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { openRepository } from './repository/repository.ts'
import {
  BASE,
  condition,
  createAuthenticator,
  type Fhir,
  observation,
  patient,
  patientAccess,
  startFhir,
} from './testing/fhir.ts'

const panel = { patients: new Set<string>(), organizations: ['org'], careTeams: [] }
/** Noise ends some time: a difference that the work makes stays, however often it is measured. */
const [ROUNDS, MOST_ROUNDS] = [15, 150]
const SAME = 1.5

describe('the work for a resource outside the access', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-hidden-'))
  let fhir: Fhir
  before(async () => {
    const dataFile = join(folder, 'fhir.db')
    const repository = openRepository({ file: dataFile, baseUrl: BASE })
    const managed = { managingOrganization: { reference: 'Organization/org' } }
    const { refused } = repository.load([
      { resourceType: 'Organization', id: 'org', name: 'Clinic' },
      patient('ann', managed),
      patient('bob'),
      observation('own', 'ann'),
      { resourceType: 'Encounter', id: 'e', ...ENCOUNTER, subject: { reference: 'Patient/bob' } },
      ...Array.from({ length: 1_500 }, (_, at) =>
        observation(`o${at}`, 'bob', { encounter: { reference: 'Encounter/e' } }),
      ),
      condition('large', 'bob', { note: [{ text: 'x'.repeat(4_000_000) }] }),
    ])
    assert.deepEqual(refused, [])
    repository.close()
    const accesses = { ann: patientAccess('ann'), panel: { filterFor: () => [{ panel }] } }
    fhir = await startFhir({ dataFile, guard: createAuthenticator(accesses) })
  })
  after(async () => {
    await fhir.close()
    rmSync(folder, { recursive: true })
  })

  /** The shortest time of both, measured alternately: whatever else the machine does only makes a request longer. */
  async function compareTimes(caller: string, hidden: string, absent: string): Promise<number> {
    const measure = async (request: string) => {
      const start = process.hrtime.bigint()
      await fhir.as(caller)(`GET ${request}`)
      return Number(process.hrtime.bigint() - start)
    }
    let [ofHidden, ofAbsent] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    for (let round = 0; round < ROUNDS || (round < MOST_ROUNDS && ofHidden / ofAbsent >= SAME); round++) {
      ofHidden = Math.min(ofHidden, await measure(hidden))
      ofAbsent = Math.min(ofAbsent, await measure(absent))
    }
    return ofHidden / ofAbsent
  }

  for (const [hidden, absent] of [
    ['Observation?patient=bob', 'Observation?patient=nob'],
    ['Observation?subject=Patient/bob&_sort=-date', 'Observation?subject=Patient/nob&_sort=-date'],
    ['Observation?encounter=e', 'Observation?encounter=f'],
    ['Observation?patient=bob&_summary=count', 'Observation?patient=nob&_summary=count'],
    ['Patient/bob/Observation', 'Patient/nob/Observation'],
    ['Patient/bob/*', 'Patient/nob/*'],
    ['Condition/large', 'Condition/absent'],
    ['Condition/large/_history', 'Condition/absent/_history'],
    ['Condition/large/_history/1', 'Condition/absent/_history/1'],
    ['Condition?_id=large', 'Condition?_id=absent'],
  ] as const)
    for (const caller of ['ann', 'panel'])
      it(`is that for an absent one, for ${caller}: ${hidden} (ABSENT-7)`, async () => {
        const ratio = await compareTimes(caller, hidden, absent)
        assert.ok(ratio < SAME, `${ratio.toFixed(2)} times as long`)
      })
})

const ENCOUNTER = {
  status: 'finished',
  class: { system: 'http://terminology.hl7.org/CodeSystem/v3-ActCode', code: 'AMB' },
}
