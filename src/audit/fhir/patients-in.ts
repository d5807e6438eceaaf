import {
  compartmentParameters,
  isRecord,
  isResourceType,
  parseReference,
  patientsOf,
  type Resource,
} from '../../fhir/index.ts'
import { OTHERS } from '../record.ts'

/** A resource as the server keeps it, a deleted one too; undefined where it cannot tell. */
export type Kept = (type: string, id: string, version?: string) => Resource | undefined

/** Where patients are looked for. */
export interface PatientLookup {
  readonly fhirBaseUrl: string
  readonly kept?: Kept | undefined
}

const LONGEST_READ = 64 * 1024 * 1024

/** The patients whose data a text carries; `OTHERS` where that cannot be told. */
export function findPatientsInText(text: string, ground: PatientLookup): readonly string[] {
  if (text.length > LONGEST_READ) return [OTHERS]
  try {
    return findPatientsIn(JSON.parse(text), ground)
  } catch {
    return [OTHERS]
  }
}

/** The patients in whose compartments a resource is, or the resources of a Bundle. */
export function findPatientsIn(value: unknown, ground: PatientLookup): readonly string[] {
  if (!isRecord(value) || typeof value.resourceType !== 'string' || !isResourceType(value.resourceType))
    return []
  if (value.resourceType === 'Bundle')
    return Array.isArray(value.entry) ? value.entry.flatMap(entry => patientsInEntry(entry, ground)) : []
  const resource = value as Resource
  return isSubset(resource)
    ? patientsOfSubset(resource, ground)
    : [...patientsOf(resource, ground.fhirBaseUrl)]
}

/** The patients of a resource and, of a write, of what was there before: `Condition/1/_history/2`. */
export function findPatientsAt(address: string, ground: PatientLookup): readonly string[] {
  const { fhirBaseUrl, kept } = ground
  const version = /\/_history\/(\d{1,15})$/.exec(address)?.[1]
  const place = parseReference(address, fhirBaseUrl)
  if (!place) return [OTHERS]
  const versions = version === undefined ? [undefined] : [version, String(Number(version) - 1)]
  const resources = versions.flatMap(it => kept?.(place.type, place.id, it) ?? [])
  const own = place.type === 'Patient' ? [place.id] : []
  if (resources.length === 0 && own.length === 0) return isOfPatients(place.type) ? [OTHERS] : []
  return [...own, ...resources.flatMap(it => [...patientsOf(it, fhirBaseUrl)])]
}

function patientsInEntry(entry: unknown, ground: PatientLookup): readonly string[] {
  if (!isRecord(entry)) return []
  if (entry.resource !== undefined) return findPatientsIn(entry.resource, ground)
  // A deletion in a history shows no content.
  const { request } = entry
  return isRecord(request) && typeof request.url === 'string' ? findPatientsAt(request.url, ground) : []
}

/** Elements that were left out may be those that name the patient. */
function patientsOfSubset(resource: Resource, { fhirBaseUrl, kept }: PatientLookup): readonly string[] {
  const { resourceType: type, id, meta } = resource
  const version = typeof meta?.versionId === 'string' ? meta.versionId : undefined
  const whole = id === undefined ? undefined : kept?.(type, id, version)
  if (whole) return [...patientsOf(whole, fhirBaseUrl)]
  const told = [...patientsOf(resource, fhirBaseUrl)]
  return type === 'Patient' || !isOfPatients(type) ? told : [...told, OTHERS]
}

function isOfPatients(type: string): boolean {
  return type === 'Patient' || type === 'Binary' || compartmentParameters(type).length > 0
}

function isSubset({ meta }: Resource): boolean {
  const tags: unknown = meta?.tag
  return Array.isArray(tags) && tags.some(tag => isRecord(tag) && tag.code === 'SUBSETTED')
}
