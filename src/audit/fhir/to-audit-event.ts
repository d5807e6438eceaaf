import { isResourceType, type Resource } from '../../fhir/index.ts'
import { OUTCOME_UNKNOWN } from '../delivery.ts'
import { readFiledPatients } from '../record.ts'
import type { KeptRecord } from '../trail/find.ts'
import { type Coding, findAction, findEventType, OWN } from './codes.ts'

/** A record as FHIR R4 has it. */
export function toAuditEvent(record: KeptRecord): Resource {
  const [type, subtype] = findEventType(record.kind, record.interaction)
  const instant = new Date(record.at).toISOString()
  const entity = entitiesOf(record)
  return {
    resourceType: 'AuditEvent',
    id: String(record.id),
    meta: { lastUpdated: instant },
    type,
    subtype: [subtype],
    action: findAction(record.kind, record.interaction),
    recorded: instant,
    outcome: outcomeOf(record),
    outcomeDesc: descriptionOf(record),
    agent: agentsOf(record),
    source: {
      observer: { identifier: { system: OWN.server, value: record.server }, display: SERVERS[record.server] },
      type: [SOURCE],
    },
    ...(entity.length > 0 && { entity }),
  }
}

const SERVERS = { auth: 'Auth server', fhir: 'FHIR server', app: 'App server' } as const

const SOURCE: Coding = {
  system: 'http://terminology.hl7.org/CodeSystem/security-source-type',
  code: '4',
  display: 'Application Server',
}

// R4 AuditEventOutcome: 0 success, 4 a failure of the one action, 8 a failure of ours.
function outcomeOf({ allowed, status }: KeptRecord): '0' | '4' | '8' {
  if (status >= 500 || status === OUTCOME_UNKNOWN) return '8'
  return allowed && status < 400 ? '0' : '4'
}

function descriptionOf({ allowed, status, reason, repeats }: KeptRecord): string {
  if (status === OUTCOME_UNKNOWN) return reason ?? 'Outcome unknown'
  const word = allowed ? 'Allowed' : 'Refused'
  const text = reason === null ? `${word} (${status})` : `${word} (${status}): ${reason}`
  return repeats === null ? text : `${text} (${formatRepeats(repeats)} within a minute)`
}

function agentsOf(record: KeptRecord): readonly object[] {
  const network = record.address === null ? {} : { network: { address: record.address, type: '2' } }
  const policy = record.decided_by === null ? {} : { policy: record.decided_by.split(' ') }
  const user = userOf(record)
  const isUsers = user !== undefined && !isOfAppAlone(record)
  if (record.client_id === null && isUsers) return [{ who: user, requestor: true, ...policy, ...network }]
  const client = {
    ...(record.client_id !== null && {
      type: { coding: [coding('http://dicom.nema.org/resources/ontology/DCM', '110150', 'Application')] },
      who: { identifier: { system: OWN.client, value: record.client_id } },
    }),
    requestor: !isUsers,
    ...policy,
    ...network,
  }
  return user ? [{ who: user, requestor: isUsers }, client] : [client]
}

/** What an app, or who has its code or token, does at the token endpoint: the user is whose grant it is about, no more. */
function isOfAppAlone({ kind, reason }: KeptRecord): boolean {
  return kind === 'token' || kind === 'refresh' || (kind === 'revoke' && reason !== null)
}

function userOf({ subject, fhir_user }: KeptRecord): object | undefined {
  if (subject === null && fhir_user === null) return undefined
  return {
    ...(fhir_user !== null && { reference: fhir_user }),
    ...(subject !== null && { identifier: { system: OWN.clinician, value: subject } }),
  }
}

function entitiesOf(record: KeptRecord): readonly object[] {
  const { resource_type: type, resource_id: id } = record
  const { patients, hasOthers } = readFiledPatients(record)
  const person = { type: ENTITY_TYPES.person, role: ENTITY_ROLES.patient }
  const entities: object[] = patients.map(it => ({ what: { reference: `Patient/${it}` }, ...person }))
  if (hasOthers) entities.push({ ...person, description: 'Patients who are not named' })
  // Another Patient than the record's own, which was asked for in vain, would put the event into that one's compartment.
  if (type !== null && id !== null && type !== 'Patient' && isResourceType(type))
    entities.push({
      what: { reference: `${type}/${id}` },
      type: ENTITY_TYPES.object,
      role: ENTITY_ROLES.domain,
    })
  if (record.request !== null) entities.push(requestEntity(record))
  if (record.repeats !== null) entities.push(countEntity(record.repeats))
  if (record.launch_id !== null) entities.push(named(OWN.launch, record.launch_id))
  if (record.request_id !== null) entities.push(named(OWN.request, record.request_id))
  return entities
}

function requestEntity({ method, request }: KeptRecord): object {
  const text = `${method ?? 'GET'} ${request ?? ''}`.trim()
  return {
    type: ENTITY_TYPES.object,
    role: ENTITY_ROLES.query,
    query: Buffer.from(text, 'utf8').toString('base64'),
  }
}

/** Describes how many further requests a record stands for. */
export function formatRepeats(repeats: number): string {
  return repeats === 1 ? '1 more like it' : `${repeats} more like it`
}

function countEntity(repeats: number): object {
  return { type: ENTITY_TYPES.other, detail: [{ type: 'repeats', valueString: String(repeats) }] }
}

function named(system: string, value: string): object {
  return {
    what: { identifier: { system, value } },
    type: ENTITY_TYPES.other,
    role: ENTITY_ROLES.element,
  }
}

const TYPES = 'http://terminology.hl7.org/CodeSystem/audit-entity-type'
const ROLES = 'http://terminology.hl7.org/CodeSystem/object-role'

const ENTITY_TYPES = {
  person: coding(TYPES, '1', 'Person'),
  object: coding(TYPES, '2', 'System Object'),
  other: coding(TYPES, '4', 'Other'),
}

const ENTITY_ROLES = {
  patient: coding(ROLES, '1', 'Patient'),
  domain: coding(ROLES, '4', 'Domain Resource'),
  query: coding(ROLES, '24', 'Query'),
  element: coding(ROLES, '26', 'Processing Element'),
}

function coding(system: string, code: string, display: string): Coding {
  return { system, code, display }
}
