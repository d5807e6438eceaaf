import type { Location, Medication, Organization, Practitioner, PractitionerRole, Resource } from 'fhir/r4.js'
import { medicines } from '../catalogue/medicines.ts'
import { type LocationKey, locations, type StaffEntry, type StaffKey, staff } from '../catalogue/staff.ts'
import { coded, concept, reference, systems } from '../coding.ts'

export const organizationId = 'organization-1'
const organizationName = 'Sallyport General Hospital'

/** What all patients share: the hospital, its places, its staff, and medicines that are kept as records of their own. */
export function* hospital(): Generator<Resource> {
  yield organization
  for (const key of locationKeys) yield location(key)
  for (const key of staffKeys) yield practitioner(key)
  for (const key of staffKeys) yield practitionerRole(key)
  for (const key of separateMedicines) yield medication(key)
}

const staffKeys = Object.keys(staff).filter((key): key is StaffKey => Object.hasOwn(staff, key))
const locationKeys = Object.keys(locations).filter((key): key is LocationKey => Object.hasOwn(locations, key))
const separateMedicines = ['insulinGlargine', 'insulinLispro'] as const

export const practitionerId = (key: StaffKey) => `practitioner-${staffKeys.indexOf(key) + 1}`
export const locationId = (key: LocationKey) => `location-${locationKeys.indexOf(key) + 1}`
export const medicationId = (key: (typeof separateMedicines)[number]) =>
  `medication-${separateMedicines.indexOf(key) + 1}`

export function practitionerName(key: StaffKey): string {
  const { prefix, given, family }: StaffEntry = staff[key]
  return [prefix, given, family].filter(Boolean).join(' ')
}

export const practitionerReference = (key: StaffKey) =>
  reference('Practitioner', practitionerId(key), practitionerName(key))
export const organizationReference = reference('Organization', organizationId, organizationName)

const organization: Organization = {
  resourceType: 'Organization',
  id: organizationId,
  identifier: [{ system: 'https://hospital.example.org/organization', value: 'SGH' }],
  active: true,
  type: [coded(systems.organizationType, 'prov', 'Healthcare Provider')],
  name: organizationName,
  telecom: [
    { system: 'phone', value: '+1-555-555-0100', use: 'work' },
    { system: 'url', value: 'https://hospital.example.org', use: 'work' },
  ],
  address: [{ line: ['1 Sallyport Gate'], city: 'Harrowmere', postalCode: '00041', country: 'US' }],
}

function location(key: LocationKey): Location {
  return {
    resourceType: 'Location',
    id: locationId(key),
    status: 'active',
    name: locations[key],
    mode: 'instance',
    managingOrganization: organizationReference,
  }
}

function practitioner(key: StaffKey): Practitioner {
  const { prefix, given, family, gender }: StaffEntry = staff[key]
  const nth = staffKeys.indexOf(key) + 1
  return {
    resourceType: 'Practitioner',
    id: practitionerId(key),
    identifier: [{ system: systems.staff, value: `STAFF-${String(nth).padStart(3, '0')}` }],
    active: true,
    name: [{ use: 'official', family, given: [given], ...(prefix !== undefined && { prefix: [prefix] }) }],
    telecom: [{ system: 'phone', value: `+1-555-555-01${String(nth).padStart(2, '0')}`, use: 'work' }],
    gender,
  }
}

function practitionerRole(key: StaffKey): PractitionerRole {
  const { role, location: place }: StaffEntry = staff[key]
  return {
    resourceType: 'PractitionerRole',
    id: practitionerId(key).replace('practitioner', 'practitionerrole'),
    active: true,
    practitioner: practitionerReference(key),
    organization: organizationReference,
    code: [concept(systems.snomed, role[0], role[1])],
    location: [reference('Location', locationId(place), locations[place])],
  }
}

function medication(key: (typeof separateMedicines)[number]): Medication {
  const { rxnorm, display, text } = medicines[key]
  return {
    resourceType: 'Medication',
    id: medicationId(key),
    code: concept(systems.rxnorm, rxnorm, display, text),
    status: 'active',
  }
}
