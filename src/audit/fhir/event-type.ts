import type { AuditKind } from '../../audit-record/index.ts'
import { findOwn } from '../../core/index.ts'
import type { EventKind } from '../trail/terms.ts'

/**
 * The patterns of IHE Basic Audit Log Patterns (BALP) 1.1 for FHIR interactions and for access tokens (IUA). BALP names
 * client and server by the direction in which the data of an interaction flow.
 */
export interface Coding {
  readonly system: string
  readonly code: string
  readonly display: string
}

const DICOM = 'http://dicom.nema.org/resources/ontology/DCM'
const PARTICIPATION = 'http://terminology.hl7.org/CodeSystem/v3-ParticipationType'
const BALP = 'https://profiles.ihe.net/ITI/BALP'

export const APPLICATION = createCoding(DICOM, '110150', 'Application')
const SOURCE = createCoding(DICOM, '110153', 'Source Role ID')
const DESTINATION = createCoding(DICOM, '110152', 'Destination Role ID')
const RECIPIENT = createCoding(PARTICIPATION, 'IRCP', 'information recipient')
const AUTHOR = createCoding(PARTICIPATION, 'AUT', 'author (originator)')
const CUSTODIAN = createCoding(
  'http://terminology.hl7.org/CodeSystem/provenance-participant-type',
  'custodian',
  'Custodian',
)

/** The user of an access token. */
export const TOKEN_USER = { system: `${BALP}/CodeSystem/UserAgentTypes`, code: 'UserOauthAgent' } as const
export const REQUEST_ID = { system: `${BALP}/CodeSystem/BasicAuditEntityType`, code: 'XrequestId' } as const

export function createCoding(system: string, code: string, display: string): Coding {
  return { system, code, display }
}

export interface Pattern {
  /** Undefined if BALP has no profile for the interaction. */
  readonly profile?: 'Read' | 'Query' | 'Create' | 'Update' | 'Delete'
  readonly client: Coding
  readonly server: Coding
  readonly user: Coding
}

const READ: Pattern = { profile: 'Read', client: DESTINATION, server: SOURCE, user: RECIPIENT }
const OTHER: Pattern = { client: SOURCE, server: DESTINATION, user: RECIPIENT }
const QUERY: Pattern = { ...OTHER, profile: 'Query' }
const UPDATE: Pattern = { ...OTHER, profile: 'Update', user: AUTHOR }

const PATTERNS: Readonly<Record<string, Pattern>> = {
  read: READ,
  vread: READ,
  'search-type': QUERY,
  'search-system': QUERY,
  create: { ...UPDATE, profile: 'Create' },
  update: UPDATE,
  patch: UPDATE,
  delete: { profile: 'Delete', client: APPLICATION, server: CUSTODIAN, user: AUTHOR },
}

/** By the code of the interaction. */
export function findPattern(code: string): Pattern {
  return PATTERNS[code] ?? OTHER
}

/** RFC 6755 reserves the prefix; BALP requires it. */
export function formatTokenId(jti: string): string {
  return `urn:ietf:params:oauth:jti:${jti}`
}

interface Conformance {
  readonly pattern: Pattern
  /** Success, with a known client, its address, and the resource or search that BALP requires. */
  readonly isComplete: boolean
  /** About one patient and no other. */
  readonly isOfPatient: boolean
  /** With the id of an access token, its client, and its user if there is one. */
  readonly token: 'of user' | 'of client' | undefined
}

/** The profiles to which an event conforms. */
export function listProfiles({ pattern, isComplete, isOfPatient, token }: Conformance): readonly string[] {
  const names = [
    ...(isComplete && pattern.profile ? [`${isOfPatient ? 'Patient' : ''}${pattern.profile}`] : []),
    ...(token === undefined ? [] : ['OAUTHaccessTokenUse.Comprehensive']),
    ...(token === 'of user' ? ['OAUTHaccessTokenUse.Minimal'] : []),
  ]
  return names.map(name => `${BALP}/StructureDefinition/IHE.BasicAudit.${name}`)
}

const REST = 'http://hl7.org/fhir/restful-interaction'
export const OWN_SYSTEMS = {
  events: 'urn:sallyport:audit-event',
  launch: 'urn:sallyport:launch-id',
  request: 'urn:sallyport:request-id',
  client: 'urn:sallyport:client-id',
  clinician: 'urn:sallyport:clinician-id',
  server: 'urn:sallyport:server',
} as const

const restful: Coding = {
  system: 'http://terminology.hl7.org/CodeSystem/audit-event-type',
  code: 'rest',
  display: 'RESTful Operation',
}
const authentication = createDicomCoding('110114', 'User Authentication')
const application = createDicomCoding('110100', 'Application Activity')

/** AuditEvent.type and subtype of events other than FHIR requests. */
const EVENTS: Readonly<Record<Exclude<AuditKind, 'fhir'>, readonly [type: Coding, subtype: Coding]>> = {
  login: [authentication, createDicomCoding('110122', 'Login')],
  logout: [authentication, createDicomCoding('110123', 'Logout')],
  launch: [application, createOwnCoding('launch', 'App launched for a patient')],
  authorize: [authentication, createOwnCoding('authorize', 'App requested access')],
  token: [authentication, createOwnCoding('token', 'Tokens issued')],
  refresh: [authentication, createOwnCoding('refresh', 'Tokens renewed')],
  introspect: [authentication, createOwnCoding('introspect', 'Token introspected')],
  revoke: [authentication, createOwnCoding('revoke', 'Access of an app revoked')],
  proposal: [application, createOwnCoding('proposal', 'Proposal of an assistant signed or rejected')],
  register: [application, createOwnCoding('register', 'App registered')],
  admin: [application, createOwnCoding('admin', 'Administrator command')],
  'session-open': [application, createDicomCoding('110120', 'Application Start')],
  'session-renew': [application, createOwnCoding('session-renew', 'Session renewed')],
  'session-end': [application, createDicomCoding('110121', 'Application Stop')],
  seal: [application, createOwnCoding('seal', 'Audit trail sealed')],
  api: [restful, createOwnCoding('api', 'Session API request')],
}

const INTERACTIONS: Readonly<Record<string, string>> = {
  read: 'read',
  vread: 'vread',
  'history-instance': 'history-instance',
  'history-type': 'history-type',
  'history-system': 'history-system',
  'search-type': 'search-type',
  'search-system': 'search-system',
  'search-compartment': 'search-type',
  create: 'create',
  update: 'update',
  'update-conditional': 'update',
  patch: 'patch',
  'patch-conditional': 'patch',
  delete: 'delete',
  'delete-conditional': 'delete',
  capabilities: 'capabilities',
  batch: 'batch',
  transaction: 'transaction',
  operation: 'operation',
}

/** Every kind of event that has a type, subtype or action of its own. A count of FHIR requests has no interaction. */
export const EVENT_KINDS: readonly EventKind[] = [
  ...Object.keys(EVENTS).map(kind => ({ kind, interaction: undefined })),
  ...[...Object.keys(INTERACTIONS), 'bundle', 'smart-configuration', 'misunderstood', 'call', null].map(
    interaction => ({
      kind: 'fhir',
      interaction,
    }),
  ),
]

export function findEventType(kind: string, interaction: string | null): readonly [Coding, Coding] {
  if (kind !== 'fhir')
    return EVENTS[kind as Exclude<AuditKind, 'fhir'>] ?? [application, createOwnCoding(kind, kind)]
  const code = findOwn(INTERACTIONS, interaction ?? '')
  return [
    restful,
    code === undefined
      ? createOwnCoding(interaction ?? 'fhir', interaction ?? 'fhir')
      : createRestCoding(code),
  ]
}

export function findAction(kind: string, interaction: string | null): 'C' | 'R' | 'U' | 'D' | 'E' {
  if (kind === 'api') return 'R'
  if (kind !== 'fhir') return 'E'
  switch (findOwn(INTERACTIONS, interaction ?? '')) {
    case 'read':
    case 'vread':
    case 'history-instance':
    case 'capabilities':
      return 'R'
    case 'create':
      return 'C'
    case 'update':
    case 'patch':
      return 'U'
    case 'delete':
      return 'D'
    default:
      return interaction === 'smart-configuration' ? 'R' : 'E'
  }
}

function createDicomCoding(code: string, display: string): Coding {
  return { system: DICOM, code, display }
}

function createOwnCoding(code: string, display: string): Coding {
  return { system: OWN_SYSTEMS.events, code, display }
}

function createRestCoding(code: string): Coding {
  return { system: REST, code, display: code }
}
