/**
 * Searches of the embedded FHIR server by every kind of access filter. The panels have 20 patients whatever the size of
 * the data set, or half of all patients.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type Fhir, guardOf, startFhir } from '../../src/backends/sqlite/testing/fhir.ts'
import {
  type Access,
  computeAccess,
  createUserFilter,
  parsePolicy,
  parseScopes,
} from '../../src/smart/index.ts'
import { BASE, fill } from './fhir/fill.ts'
import type { Request, Subject } from './measure.ts'

const RULES = {
  rules: [
    { clinicians: ['Practitioner/few', 'Practitioner/many'], careTeams: 'own' },
    { clinicians: ['PractitionerRole/few'], organizations: ['few'] },
    { clinicians: ['PractitionerRole/many'], organizations: ['many'] },
  ],
}

const ACCESSES: Readonly<Record<string, Access>> = {
  system: createAccess('system/*.cruds'),
  patient: createAccess('patient/*.rs'),
  granular: createAccess(
    'patient/Observation.rs?category=laboratory patient/Patient.rs patient/Condition.rs',
  ),
  'few by organization': createAccess('user/*.cruds', 'PractitionerRole/few'),
  'many by organization': createAccess('user/*.cruds', 'PractitionerRole/many'),
  'few by care team': createAccess('user/*.cruds', 'Practitioner/few'),
  'many by care team': createAccess('user/*.cruds', 'Practitioner/many'),
}

const QUERIES = [
  'Patient?name=smith&_sort=family&_count=5',
  'Patient?_sort=family,given&_count=5',
  'Patient?_sort=-_lastUpdated&_count=5',
  'Observation?code=8480-6&_sort=-date&_count=5',
  'Observation?patient=PATIENT&_sort=-date&_count=5',
  'Condition?patient=PATIENT&_count=5',
  'Patient?_id=PATIENT',
  'Observation?patient.family=smith&_count=5',
  'Patient?_has:Condition:patient:code=38341003&_count=5',
  'Encounter?_sort=date&_include=Encounter:patient&_count=5',
  'Observation?code=8480-6&_summary=count',
  'Patient/PATIENT/$everything?_count=5',
  'Observation/_history?_count=5',
  'Patient/PATIENT/_history?_count=5',
  '_history?_count=5',
  'Patient/PATIENT',
]

export const subject: Subject = {
  size: 200_000,
  limit: 3,
  async open(size, folder) {
    const dataFile = join(folder, `fhir-${size}.db`)
    fill(dataFile, size)
    const fhir = await startFhir({ dataFile, guard: guardOf(ACCESSES) })
    return { requests: listRequests(fhir), close: () => fhir.close() }
  },
}

function listRequests(fhir: Fhir): Readonly<Record<string, Request>> {
  const requests = Object.keys(ACCESSES).flatMap(caller =>
    QUERIES.map(
      query =>
        [
          `${caller}: ${query}`,
          {
            send: () =>
              get(fhir.as(caller), query.replace('PATIENT', caller.startsWith('many') ? 'p2' : 'p0')),
          },
        ] as const,
    ),
  )
  return Object.fromEntries(requests)
}

async function get(fhir: Fhir, query: string): Promise<void> {
  const { status, text } = await fhir(`GET ${query}`)
  assert.equal(status, 200, text)
}

function createAccess(scopes: string, user?: string): Access {
  const rules = parsePolicy(RULES)
  if ('problem' in rules) throw new Error(rules.problem)
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
