import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isRecord } from '../../core/index.ts'
import { validate } from '../../fhir/index.ts'
import type { KeptRecord } from '../index.ts'
import { readRecord } from '../testing/records.ts'
import { createEventIds } from '../trail/event-ids.ts'
import { toAuditEvent } from './to-audit-event.ts'

const ids = createEventIds(Buffer.alloc(32))

/**
 * The rules of IHE BALP 1.1 (https://profiles.ihe.net/ITI/BALP) as a table: for each slice of agents and entities the codes
 * that put an element into it, how many there may be, and the members that it must or must not have.
 */
interface Slice {
  readonly code: string
  readonly min: number
  readonly max: number
  readonly needs?: readonly string[]
  readonly forbids?: readonly string[]
  readonly equals?: Readonly<Record<string, unknown>>
  readonly roles?: readonly string[]
}

interface Profile {
  readonly type?: string
  readonly subtypes?: readonly string[]
  readonly action?: string
  readonly outcome?: string
  readonly agents: readonly Slice[]
  readonly entities?: readonly Slice[]
}

const client = (code: string): Slice => ({
  code,
  min: 1,
  max: 1,
  needs: ['who', 'network'],
  forbids: ['media'],
})
const user = (code: string): Slice => ({
  code,
  min: 0,
  max: 1,
  needs: ['who'],
  forbids: ['media', 'network'],
  equals: { requestor: true },
})
const requestId: Slice = { code: 'XrequestId', min: 0, max: 1, needs: ['what.identifier.value'] }
const patient: Slice = { code: '1', min: 1, max: 1, needs: ['what.reference'], roles: ['1'] }
const data: Slice = { code: '2', min: 1, max: 1, needs: ['what'], roles: ['3', '4', '20'] }
const query: Slice = {
  code: '2',
  min: 1,
  max: 1,
  needs: ['query'],
  roles: ['24'],
  forbids: ['what', 'lifecycle', 'detail'],
}

const rest = { type: 'rest', outcome: '0' }
const BASIC: Readonly<Record<string, Profile>> = {
  Read: {
    ...rest,
    subtypes: ['read', 'vread'],
    action: 'R',
    agents: [client('110152'), client('110153'), user('IRCP')],
    entities: [requestId, data],
  },
  Query: {
    ...rest,
    subtypes: ['search', 'search-type', 'search-system'],
    action: 'E',
    agents: [client('110153'), client('110152'), user('IRCP')],
    entities: [requestId, query],
  },
  Create: {
    ...rest,
    subtypes: ['create'],
    action: 'C',
    agents: [client('110153'), client('110152'), user('AUT')],
    entities: [requestId, data],
  },
  Update: {
    ...rest,
    subtypes: ['update', 'patch'],
    action: 'U',
    agents: [client('110153'), client('110152'), user('AUT')],
    entities: [requestId, data],
  },
  Delete: {
    ...rest,
    subtypes: ['delete'],
    action: 'D',
    agents: [client('110150'), client('custodian'), user('AUT')],
    entities: [requestId, data],
  },
}

const PROFILES: Readonly<Record<string, Profile>> = {
  ...BASIC,
  ...Object.fromEntries(
    Object.entries(BASIC).map(([name, it]) => [
      `Patient${name}`,
      { ...it, entities: [...(it.entities ?? []), patient] },
    ]),
  ),
  'OAUTHaccessTokenUse.Comprehensive': {
    agents: [
      { code: '110150', min: 1, max: 1, needs: ['who.identifier.value'], forbids: ['media'] },
      { ...user('IRCP'), needs: ['who.identifier', 'policy.0'], forbids: ['media', 'network', 'policy.1'] },
    ],
  },
  'OAUTHaccessTokenUse.Minimal': {
    agents: [
      {
        ...user('UserOauthAgent'),
        min: 1,
        needs: ['policy.0'],
        forbids: ['media', 'network', 'policy.1'],
      },
    ],
  },
}

type Element = Readonly<Record<string, unknown>>

function get(element: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((found, name) => {
    if (Array.isArray(found)) return found[Number(name)]
    return isRecord(found) ? found[name] : undefined
  }, element)
}

const listCodes = (element: Element, path: string): readonly string[] => {
  const found = get(element, path)
  const codings = isRecord(found) && Array.isArray(found.coding) ? found.coding : [found]
  return codings.map(it => String(get(it, 'code')))
}

function findFaults(elements: readonly Element[], slices: readonly Slice[]): readonly string[] {
  return slices.flatMap(slice => {
    const inSlice = elements.filter(it => listCodes(it, 'type').includes(slice.code))
    const faults = inSlice.flatMap(it => [
      ...(slice.needs ?? []).filter(path => get(it, path) === undefined).map(path => `no ${path}`),
      ...(slice.forbids ?? []).filter(path => get(it, path) !== undefined).map(path => `has ${path}`),
      ...Object.entries(slice.equals ?? {}).flatMap(([path, value]) =>
        get(it, path) === value ? [] : [path],
      ),
      ...(slice.roles && !slice.roles.includes(String(get(it, 'role.code'))) ? ['role'] : []),
    ])
    const count = inSlice.length < slice.min || inSlice.length > slice.max ? [`${inSlice.length} times`] : []
    return [...count, ...faults].map(fault => `${slice.code}: ${fault}`)
  })
}

interface Event {
  readonly meta: { readonly profile?: readonly string[] }
  readonly type: Element
  readonly subtype: readonly Element[]
  readonly action: string
  readonly outcome: string
  readonly outcomeDesc: string
  readonly agent: readonly Element[]
  readonly entity?: readonly Element[]
}

const PREFIX = 'https://profiles.ihe.net/ITI/BALP/StructureDefinition/IHE.BasicAudit.'
const listNames = ({ meta }: Event) => (meta.profile ?? []).map(url => url.replace(PREFIX, ''))

function checkProfiles(event: Event): readonly string[] {
  return listNames(event).flatMap(name => {
    const profile = PROFILES[name] ?? assert.fail(name)
    const codes = event.subtype.map(({ code }) => String(code))
    const faults = [
      ...(profile.type === undefined || event.type.code === profile.type ? [] : ['type']),
      ...(profile.subtypes && !codes.some(code => profile.subtypes?.includes(code)) ? ['subtype'] : []),
      ...(profile.action === undefined || event.action === profile.action ? [] : ['action']),
      ...(profile.outcome === undefined || event.outcome === profile.outcome ? [] : ['outcome']),
      ...findFaults(event.agent, profile.agents),
      ...findFaults(event.entity ?? [], profile.entities ?? []),
    ]
    return faults.map(fault => `${name}: ${fault}`)
  })
}

const TOKEN = ['OAUTHaccessTokenUse.Comprehensive', 'OAUTHaccessTokenUse.Minimal']
const search = {
  interaction: 'search-type',
  request: 'Condition?patient=juniper',
  resource_id: null,
} as const
const noPatient = { patient_id: null, resource_type: 'Practitioner' } as const
const refused = { allowed: false, status: 403, reason: 'Insufficient scope', patient_id: null } as const
const noToken = { client_id: null, subject: null, fhir_user: null, launch_id: null, token_id: null } as const

/** Each kind of event, and the profiles to which it must conform. */
const EVENTS: Readonly<Record<string, readonly [Partial<KeptRecord>, readonly string[]]>> = {
  'a read about a patient': [{}, ['PatientRead', ...TOKEN]],
  'a read of a version': [{ interaction: 'vread' }, ['PatientRead', ...TOKEN]],
  'a read of a patient': [{ resource_type: 'Patient', resource_id: 'juniper' }, ['PatientRead', ...TOKEN]],
  'a read about no patient': [noPatient, ['Read', ...TOKEN]],
  'a read about two patients': [{ patient_id: null, patients: ' juniper ashlar ' }, ['Read', ...TOKEN]],
  'a search about a patient': [search, ['PatientQuery', ...TOKEN]],
  'a search in a compartment': [{ ...search, interaction: 'search-compartment' }, ['PatientQuery', ...TOKEN]],
  'a search about no patient': [{ ...search, ...noPatient }, ['Query', ...TOKEN]],
  'a search about many patients': [{ ...search, patient_id: null, patients: ' a b * ' }, ['Query', ...TOKEN]],
  'a create about a patient': [
    { interaction: 'create', method: 'POST', status: 201 },
    ['PatientCreate', ...TOKEN],
  ],
  'a create about no patient': [{ ...noPatient, interaction: 'create' }, ['Create', ...TOKEN]],
  'a create of a patient': [
    { interaction: 'create', resource_type: 'Patient', resource_id: 'juniper' },
    ['PatientCreate', ...TOKEN],
  ],
  'an update about a patient': [{ interaction: 'update', method: 'PUT' }, ['PatientUpdate', ...TOKEN]],
  'an update about no patient': [{ ...noPatient, interaction: 'update' }, ['Update', ...TOKEN]],
  'a patch about a patient': [{ interaction: 'patch', method: 'PATCH' }, ['PatientUpdate', ...TOKEN]],
  'a delete about a patient': [{ interaction: 'delete', method: 'DELETE' }, ['PatientDelete', ...TOKEN]],
  'a delete about no patient': [{ ...noPatient, interaction: 'delete' }, ['Delete', ...TOKEN]],
  'a read of a backend service': [
    { client_id: 'nightly', subject: 'nightly', fhir_user: null },
    ['PatientRead', 'OAUTHaccessTokenUse.Comprehensive'],
  ],
  'an operation': [{ interaction: 'operation', request: 'Patient/juniper/$everything' }, TOKEN],
  'a history': [{ interaction: 'history-instance' }, TOKEN],
  'a refused read': [refused, TOKEN],
  'a refused write': [{ ...refused, interaction: 'update' }, TOKEN],
  'a failed read': [{ status: 503 }, TOKEN],
  'a refused request without a token': [{ ...refused, ...noToken, status: 401 }, []],
  'metadata without a token': [{ ...noToken, interaction: 'capabilities', request: 'metadata' }, []],
}

describe('AuditEvents and IHE BALP', () => {
  for (const [title, [more, profiles]] of Object.entries(EVENTS))
    it(`conform: ${title} (AUDIT-18)`, () => {
      const resource = toAuditEvent({ ...readRecord, ...more }, { fhirBaseUrl: 'http://fhir.test/fhir', ids })
      const event = resource as unknown as Event
      assert.deepEqual(listNames(event), profiles)
      assert.deepEqual(checkProfiles(event), [])
      assert.deepEqual(validate(resource), [])
    })

  it('have outcome 4 and the reason if the request was refused (AUDIT-18)', () => {
    const { outcome, outcomeDesc } = toAuditEvent({ ...readRecord, ...refused }, { fhirBaseUrl: '', ids })
    assert.deepEqual([outcome, outcomeDesc], ['4', 'Refused (403): Insufficient scope'])
  })

  it('have the jti of the token, for a backend service at its client (AUDIT-18)', () => {
    const event = (more: Partial<KeptRecord>) =>
      JSON.stringify(toAuditEvent({ ...readRecord, ...more }, { fhirBaseUrl: '', ids }).agent)
    assert.match(event({}), /"policy":\["urn:ietf:params:oauth:jti:l-1.t-1"\]/)
    assert.match(event({ launch_id: null }), /"policy":\["urn:ietf:params:oauth:jti:t-1"\]/)
    const service = { client_id: 'nightly', subject: 'nightly', fhir_user: null }
    assert.match(event(service), /"policy":\["urn:ietf:params:oauth:jti:l-1.t-1","patient\/Condition.rs"\]/)
  })

  it('have absolute references for readers outside the FHIR server', () => {
    const text = JSON.stringify(
      toAuditEvent(readRecord, { fhirBaseUrl: 'http://fhir.test/fhir', ids, absolute: true }),
    )
    const references = [...text.matchAll(/"reference":"([^"]*)"/g)].map(([, reference]) => reference)
    assert.deepEqual(references, [
      'http://fhir.test/fhir/Practitioner/p-1',
      'http://fhir.test/fhir/Patient/juniper',
      'http://fhir.test/fhir/Condition/1',
    ])
  })

  it('have the purpose “patient requested” if a patient or a relative uses the app (AUDIT-18)', () => {
    const purpose = (user: string) =>
      /PATRQT/.test(
        JSON.stringify(toAuditEvent({ ...readRecord, fhir_user: user }, { fhirBaseUrl: '', ids })),
      )
    assert.deepEqual(['Patient/juniper', 'RelatedPerson/r', 'Practitioner/p'].map(purpose), [
      true,
      true,
      false,
    ])
  })

  it('have the interaction that another server reports, whatever it is', () => {
    const event = toAuditEvent({ ...readRecord, interaction: 'constructor' }, { fhirBaseUrl: '', ids })
    assert.match(JSON.stringify(event.subtype), /"code":"constructor"/)
    assert.equal(event.action, 'E')
  })
})
