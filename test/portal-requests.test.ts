import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { FhirReader } from '../src/auth/base/fhir-reader.ts'
import { findPatients } from '../src/auth/patients/patients.ts'
import { suggestSearches } from '../src/auth/patients/suggest-searches.ts'
import { createAuthenticator, patient } from '../src/backends/sqlite/testing/fhir.ts'
import { startHapi } from '../src/backends/upstream/testing/hapi/start-hapi.ts'
import { startGateway } from '../src/backends/upstream/testing/start-gateway.ts'

const PATIENTS = 300
const ON_PANEL = 120

const panel = {
  patients: new Set<string>(),
  organizations: [],
  careTeams: [],
  member: { type: 'Practitioner', id: 'kim' },
}
const upstream = await startHapi({ off: ['dangling-references-refused'] })
const gateway = await startGateway(upstream.url, {
  guard: createAuthenticator({
    kim: { filterFor: () => [{ panel }] },
    robin: { filterFor: () => 'everything' },
  }),
  profile: 'auto',
})
after(async () => {
  await gateway.close()
  await upstream.close()
})

function* listResources() {
  for (let index = 0; index < PATIENTS; index++)
    yield patient(`p${index}`, { name: [{ family: `Family${String(index).padStart(3, '0')}` }] })
  yield patient('on-panel', { name: [{ family: 'Juniper' }] })
  yield patient('other', { name: [{ family: 'Limestone' }] })
  yield patient('double', { name: [{ family: 'Feldspar-Quartermaine' }] })
  for (const id of ['on-panel', 'double', ...Array.from({ length: ON_PANEL }, (_, index) => `p${index}`)])
    yield {
      resourceType: 'CareTeam',
      id: `t-${id}`,
      status: 'active',
      subject: { reference: `Patient/${id}` },
      participant: [{ member: { reference: 'Practitioner/kim' } }],
    }
}

const entry = [...listResources()].map(resource => ({
  resource,
  request: { method: 'PUT', url: `${resource.resourceType}/${resource.id}` },
}))
const stored = await fetch(upstream.url, {
  method: 'POST',
  headers: { 'content-type': 'application/fhir+json' },
  body: JSON.stringify({ resourceType: 'Bundle', type: 'transaction', entry }),
})
assert.equal(stored.status, 200)
// The gateway finds out what the upstream can do.
await gateway.as('kim')('GET Patient?_count=1')

type Caller = 'kim' | 'robin'

function createReader(caller: Caller): FhirReader {
  const read = async (query: string) => {
    const { status, body } = await gateway.as(caller)(`GET ${query}`)
    assert.equal(status, 200)
    return { kind: 'found', resource: { ...body, resourceType: 'Bundle' } } as const
  }
  return Object.assign(read, {
    resource: assert.fail,
    page: assert.fail,
    asService: async () => createReader(caller),
  })
}

describe('the first page of the portal and of the picker', () => {
  const RECENT = ['p90', 'p70', 'p110']
  // The list and its total, the recent patients, and one search for similar names. The patients of a clinician with a
  // panel are looked up for the list, and again for the search, which follows it.
  for (const [caller, recent, most] of [
    // The upstream stores the searches of robin, who sees everything, and says only with a further request that one has ended.
    ['robin', [], 4],
    ['robin', RECENT, 5],
    ['kim', [], 4],
    ['kim', RECENT, 5],
  ] as const)
    it(`takes at most ${most} upstream requests with ${recent.length} recent patients (${caller})`, async () => {
      const counts: number[] = []
      // On a busy machine, lookups that begin at the same time may miss each other, and are made twice.
      while (counts.length < 3 && !counts.some(requests => requests <= most)) {
        const before = upstream.seen.length
        const list = await findPatients(createReader(caller), { search: undefined, page: undefined, recent })
        assert.ok(list.kind === 'list')
        assert.deepEqual(
          list.recent.map(({ id }) => id),
          recent,
        )
        assert.equal(list.patients.length, 20)
        assert.equal(list.similar.isComplete, true)
        counts.push(upstream.seen.length - before)
      }
      assert.ok(Math.min(...counts) <= most, `${counts} requests`)
    })
})

describe('a search for a later part of a double-barrelled name', () => {
  for (const caller of ['robin', 'kim'] as const)
    it(`finds the patient at another FHIR server too (${caller}, PORTAL-4)`, async () => {
      const query = { search: 'quartermaine', page: undefined, recent: [] }
      const list = await findPatients(createReader(caller), query)
      assert.ok(list.kind === 'list')
      assert.deepEqual(
        list.patients.map(({ id }) => id),
        ['double'],
      )
    })
})

describe('suggestions for a name that nobody has', () => {
  for (const [caller, search, expected] of [
    ['robin', 'Junpier', ['Juniper']],
    ['robin', 'Limestome', ['Limestone']],
    ['kim', 'Junpier', ['Juniper']],
    ['kim', 'Limestome', []],
    ['robin', 'Nobody', []],
  ] as const)
    it(`are names that ${caller} may see, at another FHIR server too: ${search}`, async () => {
      const before = upstream.seen.length
      assert.deepEqual(await suggestSearches(createReader(caller), search), expected)
      const requests = upstream.seen.length - before
      assert.ok(requests <= 4, `${requests} requests`)
    })
})
