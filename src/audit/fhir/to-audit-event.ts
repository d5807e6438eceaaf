import { OUTCOME_UNKNOWN, readFiledPatients, type TargetType } from '../../audit-record/index.ts'
import { findOwn } from '../../core/index.ts'
import { isResourceType, type Resource } from '../../fhir/index.ts'
import type { EventIds } from '../trail/event-ids.ts'
import type { KeptRecord } from '../trail/find.ts'
import {
  APPLICATION,
  type Coding,
  createCoding,
  findAction,
  findEventType,
  findPattern,
  formatTokenId,
  listProfiles,
  OWN_SYSTEMS,
  type Pattern,
  REQUEST_ID,
  TOKEN_USER,
} from './event-type.ts'

export interface AuditEventOptions {
  readonly fhirBaseUrl: string
  readonly ids: Pick<EventIds, 'format'>
  /** For readers outside the FHIR server, for whom a relative reference would be to a resource of their own. */
  readonly absolute?: boolean
}

export function toAuditEvent(record: KeptRecord, options: AuditEventOptions): Resource {
  const [type, subtype] = findEventType(record.kind, record.interaction)
  const instant = new Date(record.at).toISOString()
  const pattern = record.kind === 'fhir' ? findPattern(subtype.code) : undefined
  const refer = (reference: string) => (options.absolute ? `${options.fhirBaseUrl}/${reference}` : reference)
  const entity = createEntities(record, pattern, refer)
  const profile = pattern ? listProfiles(describeConformance(record, pattern)) : []
  return {
    resourceType: 'AuditEvent',
    id: options.ids.format(record),
    meta: { lastUpdated: instant, ...(profile.length > 0 && { profile }) },
    type,
    subtype: [subtype],
    action: findAction(record.kind, record.interaction),
    recorded: instant,
    outcome: chooseOutcome(record),
    outcomeDesc: describeOutcome(record),
    agent: pattern
      ? createFhirAgents(record, pattern, options.fhirBaseUrl, refer)
      : createAgents(record, refer),
    source: { observer: createObserver(record), type: [SOURCE] },
    ...(entity.length > 0 && { entity }),
  }
}

type Refer = (reference: string) => string

function describeConformance(record: KeptRecord, pattern: Pattern) {
  const { patients, hasOthers } = readFiledPatients(record)
  const isFound = pattern.profile === 'Query' ? record.request !== null : findTarget(record) !== undefined
  const isKnown = record.client_id !== null && record.address !== null && record.repeats === null
  const user = identifyUser(record, it => it)
  const isOfToken =
    record.token_id !== null && record.client_id !== null && (user === undefined || record.subject !== null)
  return {
    pattern,
    isComplete: chooseOutcome(record) === '0' && isKnown && isFound,
    isOfPatient: patients.length === 1 && !hasOthers,
    token: isOfToken ? (user === undefined ? 'of client' : 'of user') : undefined,
  } as const
}

function findTokenId({ launch_id: launch, token_id: token }: KeptRecord): string | undefined {
  return token === null ? undefined : formatTokenId(launch === null ? token : `${launch}.${token}`)
}

/** Another FHIR server that reported its own request is named as the client that it is. */
function createObserver({ server, kind, details }: KeptRecord): object {
  const { reportedBy } = kind === 'fhir' && details !== null ? JSON.parse(details) : {}
  if (typeof reportedBy === 'string')
    return { identifier: { system: OWN_SYSTEMS.client, value: reportedBy }, display: 'Another FHIR server' }
  return { identifier: { system: OWN_SYSTEMS.server, value: server }, display: SERVERS[server] }
}

const SERVERS = { auth: 'Auth server', fhir: 'FHIR server', app: 'App server' } as const

const SOURCE: Coding = {
  system: 'http://terminology.hl7.org/CodeSystem/security-source-type',
  code: '4',
  display: 'Application Server',
}

// R4 AuditEventOutcome: 0 success, 4 minor failure, 8 serious failure.
function chooseOutcome({ allowed, status }: KeptRecord): '0' | '4' | '8' {
  if (status >= 500 || status === OUTCOME_UNKNOWN) return '8'
  return allowed && status < 400 ? '0' : '4'
}

function describeOutcome({ allowed, status, reason, repeats }: KeptRecord): string {
  if (status === OUTCOME_UNKNOWN) return reason ?? 'Outcome unknown'
  const word = allowed ? 'Allowed' : 'Refused'
  const text = reason === null ? `${word} (${status})` : `${word} (${status}): ${reason}`
  return repeats === null ? text : `${text} (${formatRepeats(repeats)} within a minute)`
}

/** User, client and server, with the roles of the pattern. */
function createFhirAgents(
  record: KeptRecord,
  pattern: Pattern,
  fhirBaseUrl: string,
  refer: Refer,
): readonly object[] {
  const user = identifyUser(record, refer)
  const tokenId = findTokenId(record)
  const roles = [pattern.client, ...(record.client_id === null ? [] : [APPLICATION])]
  return [
    ...(user ? [createUser(record, pattern, user, tokenId)] : []),
    {
      type: { coding: [...new Set(roles)] },
      ...createClient(record, user ? undefined : tokenId),
      requestor: user === undefined,
    },
    {
      type: { coding: [pattern.server] },
      who: createObserver(record),
      requestor: false,
      network: { address: fhirBaseUrl, type: '5' },
    },
  ]
}

function createUser(record: KeptRecord, pattern: Pattern, who: object, tokenId: string | undefined): object {
  return {
    type: { coding: [pattern.user, ...(tokenId === undefined ? [] : [TOKEN_USER])] },
    who,
    requestor: true,
    ...(tokenId !== undefined && { policy: [tokenId] }),
    ...(PATIENT_USER.test(record.fhir_user ?? '') && { purposeOfUse: [{ coding: [PATIENT_REQUEST] }] }),
  }
}

const PATIENT_USER = /^(Patient|RelatedPerson)\//

const PATIENT_REQUEST = createCoding(
  'http://terminology.hl7.org/CodeSystem/v3-ActReason',
  'PATRQT',
  'patient requested',
)

function createClient({ client_id: id, address, decided_by: by }: KeptRecord, tokenId?: string): object {
  const policy = [...(tokenId === undefined ? [] : [tokenId]), ...(by?.split(' ') ?? [])]
  return {
    ...(id !== null && { who: { identifier: { system: OWN_SYSTEMS.client, value: id } } }),
    ...(policy.length > 0 && { policy }),
    ...(address !== null && locate(address)),
  }
}

/** An IP address; for a command, the user of the operating system and the host: `alice@ward-3`. */
function locate(address: string): object {
  const at = address.lastIndexOf('@')
  return at < 0
    ? { network: { address, type: '2' } }
    : { altId: address.slice(0, at), network: { address: address.slice(at + 1), type: '1' } }
}

function createAgents(record: KeptRecord, refer: Refer): readonly object[] {
  const user = identifyUser(record, refer)
  const isUsers = user !== undefined && !isOfAppAlone(record)
  const client = createClient(record)
  if (record.client_id === null && isUsers) return [{ ...client, who: user, requestor: true }]
  const app = {
    ...(record.client_id !== null && { type: { coding: [APPLICATION] } }),
    ...client,
    requestor: !isUsers,
  }
  return user ? [{ who: user, requestor: isUsers }, app] : [app]
}

/** True for token endpoint events: the app acts, and the user is only the owner of the grant. */
function isOfAppAlone({ kind, reason }: KeptRecord): boolean {
  return (
    kind === 'token' || kind === 'refresh' || kind === 'introspect' || (kind === 'revoke' && reason !== null)
  )
}

/** The subject of a backend service's token is the client itself. */
function identifyUser({ subject, fhir_user, client_id }: KeptRecord, refer: Refer): object | undefined {
  if (fhir_user === null && (subject === null || subject === client_id)) return undefined
  return {
    ...(fhir_user !== null && { reference: refer(fhir_user) }),
    ...(subject !== null && { identifier: { system: OWN_SYSTEMS.clinician, value: subject } }),
  }
}

function createEntities(record: KeptRecord, pattern: Pattern | undefined, refer: Refer): readonly object[] {
  const { patients, hasOthers } = readFiledPatients(record)
  const person = { type: ENTITY_TYPES.person, role: ENTITY_ROLES.patient }
  const entities: object[] = patients.map(it => ({ what: { reference: refer(`Patient/${it}`) }, ...person }))
  if (hasOthers) entities.push({ ...person, description: 'Other patients' })
  const target = findTarget(record)
  if (target !== undefined)
    entities.push({
      what: { reference: refer(target) },
      type: ENTITY_TYPES.object,
      role: ENTITY_ROLES.domain,
    })
  const system = record.resource_type === null ? undefined : findOwn(TARGET_SYSTEMS, record.resource_type)
  if (system !== undefined && record.resource_id !== null)
    entities.push(createEntity(system, record.resource_id))
  if (record.request !== null) entities.push(requestEntity(record, pattern))
  if (record.repeats !== null) entities.push(countEntity(record.repeats))
  if (record.kind === 'admin' && record.details !== null) entities.push(...listChanges(record.details))
  if (record.launch_id !== null) entities.push(createEntity(OWN_SYSTEMS.launch, record.launch_id))
  if (record.request_id !== null)
    entities.push({ ...createEntity(OWN_SYSTEMS.request, record.request_id), type: REQUEST_ID })
  return entities
}

const TARGET_SYSTEMS: Readonly<Record<TargetType, string>> = {
  account: OWN_SYSTEMS.clinician,
  client: OWN_SYSTEMS.client,
  grant: OWN_SYSTEMS.launch,
}

/** The resource of the request. A reference to another Patient would put the event into that patient's compartment. */
function findTarget(record: KeptRecord): string | undefined {
  const { resource_type: type, resource_id: id } = record
  if (type === null || id === null || !isResourceType(type)) return undefined
  if (type === 'Patient' && !readFiledPatients(record).patients.includes(id)) return undefined
  return `${type}/${id}`
}

/** BALP allows one System Object: the search, or the resource. */
function requestEntity({ method, request }: KeptRecord, pattern: Pattern | undefined): object {
  const text = `${method ?? 'GET'} ${request ?? ''}`.trim()
  const isOther = pattern?.profile !== undefined && pattern.profile !== 'Query'
  return {
    type: isOther ? ENTITY_TYPES.other : ENTITY_TYPES.object,
    role: ENTITY_ROLES.query,
    query: Buffer.from(text, 'utf8').toString('base64'),
  }
}

export function formatRepeats(repeats: number): string {
  return repeats === 1 ? '1 more like it' : `${repeats} more like it`
}

function countEntity(repeats: number): object {
  return { type: ENTITY_TYPES.other, detail: [{ type: 'repeats', valueString: String(repeats) }] }
}

/** The values before and after an administrator's change, each as JSON. */
function listChanges(details: string): readonly object[] {
  const { before, after }: { readonly before?: object; readonly after?: object } = JSON.parse(details)
  const detail = Object.entries({ before, after }).flatMap(([type, value]) =>
    value === undefined ? [] : [{ type, valueString: JSON.stringify(value) }],
  )
  return detail.length === 0 ? [] : [{ type: ENTITY_TYPES.other, detail }]
}

function createEntity(system: string, value: string): object {
  return {
    what: { identifier: { system, value } },
    type: ENTITY_TYPES.other,
  }
}

const TYPES = 'http://terminology.hl7.org/CodeSystem/audit-entity-type'
const ROLES = 'http://terminology.hl7.org/CodeSystem/object-role'

const ENTITY_TYPES = {
  person: createCoding(TYPES, '1', 'Person'),
  object: createCoding(TYPES, '2', 'System Object'),
  other: createCoding(TYPES, '4', 'Other'),
}

const ENTITY_ROLES = {
  patient: createCoding(ROLES, '1', 'Patient'),
  domain: createCoding(ROLES, '4', 'Domain Resource'),
  query: createCoding(ROLES, '24', 'Query'),
}
