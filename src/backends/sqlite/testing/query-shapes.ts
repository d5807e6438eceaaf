/**
 * Every kind of access filter, and requests of every shape that queries the database. The data have two panels, `few` and
 * `many`: patients managed by the organization of that name, in care teams of the practitioner of that name.
 */
import { isFailure } from '../../../core/index.ts'
import {
  type Access,
  computeAccess,
  createUserFilter,
  parsePolicy,
  parseScopes,
} from '../../../smart/index.ts'
import { BASE } from './fhir.ts'

const RULES = {
  rules: [
    { clinicians: ['Practitioner/few', 'Practitioner/many'], careTeams: 'own' },
    { clinicians: ['PractitionerRole/few'], organizations: ['few'] },
    { clinicians: ['PractitionerRole/many'], organizations: ['many'] },
    {
      clinicians: ['Practitioner/all'],
      patients: ['p0'],
      organizations: ['few', 'many'],
      careTeams: ['t0', 't2'],
    },
    { clinicians: ['Practitioner/all'], careTeams: 'own' },
    { clinicians: ['Practitioner/named'], patients: ['p0', 'p2'] },
  ],
}

/** Callers by name. The patients of `many` are p2 and others; p0 is the patient of all other callers. */
export const CALLERS: Readonly<Record<string, Access>> = {
  system: createAccess('system/*.cruds'),
  patient: createAccess('patient/*.rs'),
  'patient, granular': createAccess(
    'patient/Observation.rs?category=vital-signs patient/Observation.rs?code=8480-6 patient/Patient.rs patient/Condition.rs',
  ),
  'system, granular': createAccess('system/Observation.rs?category=vital-signs system/Patient.rs'),
  'named patients': createAccess('user/*.cruds', 'Practitioner/named'),
  'few by organization': createAccess('user/*.cruds', 'PractitionerRole/few'),
  'many by organization': createAccess('user/*.cruds', 'PractitionerRole/many'),
  'few by care team': createAccess('user/*.cruds', 'Practitioner/few'),
  'many by care team': createAccess('user/*.cruds', 'Practitioner/many'),
  'many by all': createAccess('user/*.cruds', 'Practitioner/all'),
  'many, granular': createAccess(
    'user/Observation.rs?category=vital-signs user/Patient.rs',
    'PractitionerRole/many',
  ),
}

/** Requests that every caller may send, with the caller's patient in place of PATIENT. */
export const READS: readonly string[] = [
  'Patient/PATIENT',
  'Patient?name=smithson&_sort=family&_count=5',
  'Patient?_sort=family,given&_count=5',
  'Patient?_sort=-_lastUpdated&_count=5',
  'Patient?_id=PATIENT',
  'Patient?_has:Observation:patient:code=8480-6&_count=5',
  'Observation?_sort=-date&_count=5',
  'Observation?code=8480-6&_sort=-date&_count=5',
  'Observation?code=8480-6&date=ge2019&_sort=-date&_count=5',
  'Observation?date=ge2020&_sort=date&_count=5',
  'Observation?date=le2020&_sort=-date&_count=5',
  'Observation?value-quantity=ge120&_sort=value-quantity&_count=5',
  'Observation?patient=PATIENT&_sort=-date&_count=5',
  'Patient?family=jones1,jones3,jones5&_total=none&_count=200',
  'Observation?patient.family=smith&_count=5',
  'Observation?code=8480-6&_include=Observation:patient&_count=5',
  'Observation?patient=PATIENT&_summary=count',
  'Patient?_revinclude=Observation:patient&_id=PATIENT',
  'Patient/PATIENT/$everything?_count=5',
  'Patient/PATIENT/_history?_count=5',
  'Patient/_history?_count=5',
  'Observation/_history?_count=5',
  '_history?_count=5',
]

/**
 * Their cost grows with the number of resources that one of their conditions matches, or of all resources of the type if
 * no index finds the matches: rare combinations, parts of texts, and counts.
 */
export const GROWING: readonly string[] = [
  'Patient?name=smith&_sort=family,given&_count=5',
  'Patient?name:contains=zzz&_sort=family&_count=5',
  'Patient?identifier:contains=zzz&_count=5',
  'Observation?patient.gender=male&_count=5',
  'Observation?code:text=blood&_count=5',
  'Observation?code=http://other.example|&_count=5',
  'Observation?value-quantity=gt1|http://other.example|x&_count=5',
  'Observation?subject:identifier=http://other.example|x&_count=5',
  'Observation?code=8480-6&category=laboratory&_sort=-date&_count=5',
  'Observation?category=laboratory&code=8481-6&_sort=-date&_count=5',
  'Observation?_summary=count',
  'Observation?code=8480-6&_summary=count',
  'Observation?code=8480-6&_total=accurate&_count=5',
]

export function choosePatient(caller: string): string {
  return caller.startsWith('many') ? 'p2' : 'p0'
}

function createAccess(scopes: string, user?: string): Access {
  const rules = parsePolicy(RULES)
  if (isFailure(rules)) throw new Error(rules.problem)
  const [type = '', id = ''] = user?.split('/') ?? []
  return computeAccess(
    { scopes: parseScopes(scopes), patient: 'p0', ...(user !== undefined && { fhirUser: { type, id } }) },
    {
      fhirBaseUrl: BASE,
      contexts: ['patient', 'user', 'system'],
      searchPermission: 's',
      userFilter: createUserFilter(rules),
    },
  )
}
