import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findCompartmentPatients, matches, validate } from '../../fhir/index.ts'
import type { KeptRecord } from '../index.ts'
import { readRecord } from '../testing/records.ts'
import { createEventIds } from '../trail/event-ids.ts'
import { findAction, findEventType } from './event-type.ts'
import { toAuditEvent as convert } from './to-audit-event.ts'

const ids = createEventIds(Buffer.alloc(32))

const BASE = 'http://fhir.test/fhir'

const toAuditEvent = (record: KeptRecord) => convert(record, { fhirBaseUrl: BASE, ids })

const full: KeptRecord = {
  ...readRecord,
  client_id: 'sallyport-app',
  decided_by: 'patient/Observation.rs?category=http://x|y',
}

const bare: KeptRecord = {
  ...full,
  interaction: null,
  method: null,
  request: null,
  resource_type: null,
  resource_id: null,
  patient_id: null,
  client_id: null,
  subject: null,
  fhir_user: null,
  decided_by: null,
  launch_id: null,
  request_id: null,
  address: null,
}

const patientRead = { request: 'Patient/juniper', resource_type: 'Patient', resource_id: 'juniper' } as const

const KINDS = [
  'login',
  'logout',
  'launch',
  'authorize',
  'token',
  'refresh',
  'revoke',
  'register',
  'admin',
  'session-open',
  'session-renew',
  'session-end',
  'api',
]
const INTERACTIONS = [
  'capabilities',
  'smart-configuration',
  'read',
  'vread',
  'history-instance',
  'history-type',
  'history-system',
  'search-type',
  'search-system',
  'search-compartment',
  'create',
  'update',
  'update-conditional',
  'patch',
  'patch-conditional',
  'delete',
  'delete-conditional',
  'bundle',
  'batch',
  'transaction',
  'operation',
  'misunderstood',
]

describe('toAuditEvent', () => {
  for (const interaction of INTERACTIONS) {
    it(`converts ${interaction} to a valid AuditEvent (AUDIT-15)`, () => {
      assert.deepEqual(validate(toAuditEvent({ ...full, interaction })), [])
      assert.deepEqual(validate(toAuditEvent({ ...bare, interaction, allowed: false, status: 401 })), [])
      assert.deepEqual(validate(toAuditEvent({ ...bare, interaction, repeats: 7 })), [])
    })
  }
  for (const kind of KINDS) {
    it(`converts ${kind} to a valid AuditEvent`, () => {
      assert.deepEqual(validate(toAuditEvent({ ...full, kind })), [])
      assert.deepEqual(validate(toAuditEvent({ ...bare, kind })), [])
      assert.deepEqual(validate(toAuditEvent({ ...full, kind, client_id: null, reason: 'Why' })), [])
    })
  }

  it('is found by its subject, and only in the compartment of its patient', () => {
    const event = toAuditEvent(full)
    assert.deepEqual([...findCompartmentPatients(event, BASE)], ['juniper'])
    assert.deepEqual(
      [...findCompartmentPatients(toAuditEvent({ ...full, ...patientRead, resource_id: 'ashlar' }), BASE)],
      ['juniper'],
    )
    const found: readonly (readonly [string, string])[] = [
      ['date', 'ge2026-11-13'],
      ['patient', 'juniper'],
      ['entity', 'Condition/1'],
      ['entity:identifier', 'urn:sallyport:launch-id|l-1'],
      ['agent', 'Practitioner/p-1'],
      ['agent:identifier', 'urn:sallyport:client-id|sallyport-app'],
      ['action', 'R'],
      ['outcome', '0'],
      ['type', 'rest'],
      ['subtype', 'read'],
      ['address', '127.0.0.1'],
    ]
    for (const [name, value] of found) assert.equal(matches(event, name, value, BASE), true, name)
    assert.equal(matches(event, 'patient', 'ashlar', BASE), false)
  })

  it('names the actor as requestor: for tokens the app or the sender, never the user', () => {
    const requestors = (record: Partial<KeptRecord>) => {
      const { agent } = toAuditEvent({ ...full, ...record }) as unknown as {
        agent: { requestor: boolean; who?: { identifier: { value: string } }; network?: object }[]
      }
      assert.equal(agent.filter(it => it.requestor).length, 1)
      return agent.map(it => `${it.who?.identifier.value} ${it.requestor} ${it.network !== undefined}`)
    }
    const server = 'fhir false true'
    const byUser = ['c-1 true false', 'sallyport-app false true']
    const byApp = ['c-1 false false', 'sallyport-app true true']
    assert.deepEqual(requestors({}), [...byUser, server])
    assert.deepEqual(requestors({ kind: 'revoke' }), byUser)
    assert.deepEqual(requestors({ kind: 'revoke', reason: 'A used code was sent again' }), byApp)
    for (const kind of ['token', 'refresh']) {
      assert.deepEqual(requestors({ kind }), byApp)
      assert.deepEqual(requestors({ kind, client_id: null }), ['c-1 false false', 'undefined true true'])
    }
    assert.deepEqual(requestors({ kind: 'login', client_id: null }), ['c-1 true true'])
    assert.deepEqual(requestors({ ...bare, address: '127.0.0.1' }), ['undefined true true', server])
  })

  it('names the user of the operating system and the host of a command', () => {
    const command = { ...bare, kind: 'admin', server: 'auth', address: 'alice as root@ward-3' } as const
    const { agent } = toAuditEvent({ ...full, ...command })
    assert.deepEqual(agent, [
      { altId: 'alice as root', network: { address: 'ward-3', type: '1' }, requestor: true },
    ])
  })

  it('names another FHIR server that reported its request as the source (AUDIT-24)', () => {
    const event = toAuditEvent({ ...full, kind: 'fhir', details: '{"reportedBy":"my-server"}' })
    assert.partialDeepStrictEqual(event.source, {
      observer: { identifier: { system: 'urn:sallyport:client-id', value: 'my-server' } },
    })
  })

  it('names a backend service as an app, not as a clinician (AUDIT-15)', () => {
    const service = { client_id: 'nightly', subject: 'nightly', fhir_user: null }
    for (const kind of ['token', 'fhir']) {
      const { agent, subtype } = toAuditEvent({ ...full, ...service, kind }) as unknown as {
        agent: readonly { requestor: boolean; who: object }[]
        subtype: readonly { display: string }[]
      }
      assert.deepEqual(
        agent.filter(it => it.requestor).map(it => [it.requestor, it.who]),
        [[true, { identifier: { system: 'urn:sallyport:client-id', value: 'nightly' } }]],
      )
      assert.doesNotMatch(subtype[0]?.display ?? '', /code/)
    }
  })

  it('uses only roles of the object-role code system of R4 (AUDIT-15)', () => {
    for (const record of [full, { ...full, patients: ' juniper * ', repeats: 7 }]) {
      const { entity } = toAuditEvent(record) as unknown as { entity: readonly { role?: { code: string } }[] }
      for (const { role } of entity) assert.ok(role === undefined || Number(role.code) <= 24)
    }
  })

  it('names each of several patients, and that there are others', () => {
    const event = toAuditEvent({ ...full, patient_id: null, patients: ' juniper ashlar * ' })
    assert.deepEqual([...findCompartmentPatients(event, BASE)].sort(), ['ashlar', 'juniper'])
    assert.match(JSON.stringify(event.entity), /Other patients/)
    assert.deepEqual(validate(event), [])
  })

  it('names the account, app or grant that an administrator changed (ADMIN-3)', () => {
    const SYSTEMS = { account: 'clinician-id', client: 'client-id', grant: 'launch-id' }
    for (const [type, system] of Object.entries(SYSTEMS)) {
      const event = toAuditEvent({ ...bare, kind: 'admin', resource_type: type, resource_id: 'x1' })
      assert.deepEqual(validate(event), [])
      const [entity] = event.entity as readonly { readonly what: object }[]
      assert.deepEqual(entity?.what, { identifier: { system: `urn:sallyport:${system}`, value: 'x1' } })
    }
  })

  it('states the outcome', () => {
    const outcome = (allowed: boolean, status: number) => toAuditEvent({ ...full, allowed, status }).outcome
    assert.equal(outcome(true, 200), '0')
    assert.equal(outcome(true, 404), '4')
    assert.equal(outcome(false, 403), '4')
    assert.equal(outcome(true, 503), '8')
    const refused = toAuditEvent({ ...full, allowed: false, status: 403, reason: 'No granted scope' })
    assert.equal(refused.outcomeDesc, 'Refused (403): No granted scope')
  })
})

describe('findAction', () => {
  const actions = {
    create: 'C',
    read: 'R',
    update: 'U',
    patch: 'U',
    delete: 'D',
    'search-type': 'E',
    batch: 'E',
  }
  for (const [interaction, action] of Object.entries(actions)) {
    it(`is ${action} for ${interaction}`, () => assert.equal(findAction('fhir', interaction), action))
  }
  it('is execute for a login', () => assert.equal(findAction('login', null), 'E'))
})

describe('findEventType', () => {
  it('uses the DICOM code for a login', () => {
    const [type, subtype] = findEventType('login', null)
    assert.deepEqual([type.code, subtype.code], ['110114', '110122'])
  })

  it('distinguishes a batch from a transaction', () => {
    assert.equal(findEventType('fhir', 'batch')[1].code, 'batch')
    assert.equal(findEventType('fhir', 'transaction')[1].code, 'transaction')
  })
})
