import type { AuditKind } from '../record.ts'
import type { EventKind } from '../trail/terms.ts'
import { type Coding, DICOM } from './balp.ts'

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
const authentication = dicom('110114', 'User Authentication')
const application = dicom('110100', 'Application Activity')

/** AuditEvent.type and subtype of events other than FHIR requests. */
const EVENTS: Readonly<Record<Exclude<AuditKind, 'fhir'>, readonly [type: Coding, subtype: Coding]>> = {
  login: [authentication, dicom('110122', 'Login')],
  logout: [authentication, dicom('110123', 'Logout')],
  launch: [application, own('launch', 'App launched for a patient')],
  authorize: [authentication, own('authorize', 'App requested access')],
  token: [authentication, own('token', 'Tokens issued')],
  refresh: [authentication, own('refresh', 'Tokens renewed')],
  introspect: [authentication, own('introspect', 'Token introspected')],
  revoke: [authentication, own('revoke', 'Access of an app revoked')],
  register: [application, own('register', 'App registered')],
  admin: [application, own('admin', 'Administrator command')],
  'session-open': [application, dicom('110120', 'Application Start')],
  'session-renew': [application, own('session-renew', 'Session renewed')],
  'session-end': [application, dicom('110121', 'Application Stop')],
  seal: [application, own('seal', 'Audit trail sealed')],
  api: [restful, own('api', 'Session API request')],
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
  ...[...Object.keys(INTERACTIONS), 'bundle', 'smart-configuration', 'misunderstood', null].map(
    interaction => ({
      kind: 'fhir',
      interaction,
    }),
  ),
]

export function findEventType(kind: string, interaction: string | null): readonly [Coding, Coding] {
  if (kind !== 'fhir') return EVENTS[kind as Exclude<AuditKind, 'fhir'>] ?? [application, own(kind, kind)]
  const code = INTERACTIONS[interaction ?? '']
  return [restful, code === undefined ? own(interaction ?? 'fhir', interaction ?? 'fhir') : rest(code)]
}

export function findAction(kind: string, interaction: string | null): 'C' | 'R' | 'U' | 'D' | 'E' {
  if (kind === 'api') return 'R'
  if (kind !== 'fhir') return 'E'
  switch (INTERACTIONS[interaction ?? '']) {
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

function dicom(code: string, display: string): Coding {
  return { system: DICOM, code, display }
}

function own(code: string, display: string): Coding {
  return { system: OWN_SYSTEMS.events, code, display }
}

function rest(code: string): Coding {
  return { system: REST, code, display: code }
}
