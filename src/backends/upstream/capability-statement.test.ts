import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createAuthenticator, type Fhir, patientAccess } from '../sqlite/testing/fhir.ts'
import { type HostileUpstream, json, METADATA, searchset, startHostile } from './testing/hostile-upstream.ts'
import { startGateway, startRecordedGateway } from './testing/start-gateway.ts'

interface Section {
  readonly type: string
  readonly interaction?: readonly { readonly code: string }[]
  readonly searchParam?: readonly { readonly name: string }[]
  readonly searchInclude?: readonly string[]
  readonly searchRevInclude?: readonly string[]
  readonly conditionalDelete?: string
  readonly supportedProfile?: readonly string[]
}
interface Rest {
  readonly resource: readonly Section[]
  readonly searchParam?: readonly { readonly name: string }[]
  readonly compartment?: readonly string[]
}

/** Search parameters that the upstream lists, and a use of each. */
const PATIENT = {
  _id: '_id=a',
  _lastUpdated: '_lastUpdated=gt2020',
  name: 'name=a',
  birthdate: 'birthdate=2020',
  _has: '_has:Condition:patient:code=a',
  _text: '_text=a',
  _list: '_list=$current-problems',
  _filter: '_filter=name eq a',
  mrn: 'mrn=1',
  nickname: 'nickname=a',
  'name-of-friend': 'name-of-friend=a',
}
const OBSERVATION = { code: 'code=a', 'code-value-quantity': 'code-value-quantity=a$1', mrn: 'mrn=1' }
const US_CORE_PATIENT = 'http://hl7.org/fhir/us/core/StructureDefinition/us-core-patient'
const list = (parameters: object) => Object.keys(parameters).map(name => ({ name, type: 'string' }))

const [server] = METADATA.rest
const metadata = {
  ...METADATA,
  instantiates: [
    'http://hl7.org/fhir/us/core/CapabilityStatement/us-core-server|7.0.0',
    'http://hospital.example.org/CapabilityStatement/everything',
  ],
  rest: [
    {
      ...server,
      compartment: ['http://hl7.org/fhir/CompartmentDefinition/encounter'],
      searchParam: list({ _id: '', _filter: '', _has: '' }),
      resource: [
        {
          type: 'Patient',
          supportedProfile: [US_CORE_PATIENT],
          conditionalDelete: 'multiple',
          searchParam: list(PATIENT),
          searchInclude: ['*', 'Patient:link', 'Patient:friend'],
          searchRevInclude: ['Condition:patient', 'AuditEvent:patient', 'Observation:friend'],
        },
        { type: 'Observation', conditionalDelete: 'not-supported', searchParam: list(OBSERVATION) },
        { type: 'AuditEvent', interaction: [{ code: 'create' }], searchParam: [{ name: 'mrn' }] },
      ],
    },
  ],
}

let upstream: HostileUpstream
let fhir: Fhir
let unrecorded: Fhir

before(async () => {
  upstream = await startHostile()
  upstream.answerMetadata((_request, response) => json(response, metadata))
  upstream.answerJson(searchset([]))
  const options = {
    guard: createAuthenticator({ ann: patientAccess('ann') }),
    searchParameters: ['Patient.mrn'],
  }
  fhir = await startRecordedGateway(upstream.url, options)
  unrecorded = await startGateway(upstream.url, options)
})
after(async () => {
  await fhir.close()
  await unrecorded.close()
  await upstream.close()
})

async function readRest(from = fhir): Promise<Rest> {
  const { rest } = (await from('GET metadata')).body as unknown as { readonly rest: readonly [Rest] }
  return rest[0]
}
const find = ({ resource }: Rest, type: string) => resource.find(it => it.type === type)
const names = (section: Pick<Section, 'searchParam'> | undefined) => section?.searchParam?.map(it => it.name)

describe('the CapabilityStatement of the gateway', () => {
  for (const [type, parameters] of Object.entries({ Patient: PATIENT, Observation: OBSERVATION }))
    it(`lists the search parameters of ${type} that a limited caller may use, and no other (GATEWAY-29)`, async () => {
      const accepted: string[] = []
      for (const [name, use] of Object.entries(parameters))
        if ((await fhir.as('ann')(`GET ${type}?${encodeURI(use)}`)).status === 200) accepted.push(name)
      assert.deepEqual(names(find(await readRest(), type)), accepted)
    })

  it('lists the search parameters of a search of all types that the gateway evaluates', async () => {
    assert.deepEqual(names(await readRest()), ['_id'])
  })

  it('names US Core and its profiles as the upstream does, and no other statement (FHIR-19)', async () => {
    const statement = (await fhir('GET metadata')).body as unknown as { readonly instantiates: unknown }
    assert.deepEqual(statement.instantiates, metadata.instantiates.slice(0, 1))
    const rest = await readRest()
    assert.deepEqual(find(rest, 'Patient')?.supportedProfile, [US_CORE_PATIENT])
    assert.equal(find(rest, 'Observation')?.supportedProfile, undefined)
  })

  it('lists includes that the gateway performs (GATEWAY-29)', async () => {
    const section = find(await readRest(), 'Patient')
    assert.deepEqual(section?.searchInclude, ['*', 'Patient:link'])
    assert.deepEqual(section?.searchRevInclude, ['Condition:patient'])
  })

  it('lists AuditEvents as the audit trail serves them, and not without one (GATEWAY-29)', async () => {
    const section = find(await readRest(), 'AuditEvent')
    assert.deepEqual(section?.interaction, [{ code: 'read' }, { code: 'search-type' }])
    assert.ok(names(section)?.includes('patient'))
    assert.ok(!names(section)?.includes('mrn'))
    assert.equal(find(await readRest(unrecorded), 'AuditEvent'), undefined)
  })

  it('lists conditional deletes of one resource, and searches of a patient’s compartment', async () => {
    const rest = await readRest()
    assert.equal(find(rest, 'Patient')?.conditionalDelete, 'single')
    assert.equal(find(rest, 'Observation')?.conditionalDelete, 'not-supported')
    assert.deepEqual(rest.compartment, ['http://hl7.org/fhir/CompartmentDefinition/patient'])
  })
})
