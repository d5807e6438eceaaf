/**
 * The patterns of IHE Basic Audit Log Patterns (BALP) 1.1 for FHIR interactions and for access tokens (IUA). BALP names
 * client and server by the direction in which the data of an interaction flow.
 */
export interface Coding {
  readonly system: string
  readonly code: string
  readonly display: string
}

export const DICOM = 'http://dicom.nema.org/resources/ontology/DCM'
const PARTICIPATION = 'http://terminology.hl7.org/CodeSystem/v3-ParticipationType'
const BALP = 'https://profiles.ihe.net/ITI/BALP'

export const APPLICATION = coding(DICOM, '110150', 'Application')
const SOURCE = coding(DICOM, '110153', 'Source Role ID')
const DESTINATION = coding(DICOM, '110152', 'Destination Role ID')
const RECIPIENT = coding(PARTICIPATION, 'IRCP', 'information recipient')
const AUTHOR = coding(PARTICIPATION, 'AUT', 'author (originator)')
const CUSTODIAN = coding(
  'http://terminology.hl7.org/CodeSystem/provenance-participant-type',
  'custodian',
  'Custodian',
)

/** The user of an access token. */
export const TOKEN_USER = { system: `${BALP}/CodeSystem/UserAgentTypes`, code: 'UserOauthAgent' } as const
export const REQUEST_ID = { system: `${BALP}/CodeSystem/BasicAuditEntityType`, code: 'XrequestId' } as const

export function coding(system: string, code: string, display: string): Coding {
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

export interface Conformance {
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
