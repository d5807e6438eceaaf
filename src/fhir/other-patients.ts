import { compartmentParameters } from './compartment.ts'
import { searchParameter } from './definitions.ts'
import type { Resource } from './r4.ts'
import type { IndexEntry } from './search/entry.ts'
import { entriesOf } from './search/index-entries.ts'

// The address of a resource on another server, with its type.
const ADDRESS = /^https?:\/\/.*\/([A-Z][A-Za-z]+)\/[A-Za-z0-9\-.]{1,64}(?:\/_history\/[A-Za-z0-9\-.]{1,64})?$/

/**
 * Whether a reference that puts the resource into a compartment is to another patient, here or elsewhere, or cannot
 * be told (`urn:uuid:…`, `Patient?identifier=…`). Such a resource is not one patient's alone (contract 5.3).
 */
export function namesOtherPatient(
  resource: Resource,
  patient: string | ((id: string) => boolean),
  baseUrl: string,
): boolean {
  const isOurs = typeof patient === 'string' ? (id: string) => id === patient : patient
  return compartmentParameters(resource.resourceType).some(code => {
    const parameter = searchParameter(resource.resourceType, code)
    return (
      parameter !== undefined && entriesOf(resource, parameter, baseUrl).some(entry => isOther(entry, isOurs))
    )
  })
}

function isOther(entry: IndexEntry, isOurs: (id: string) => boolean): boolean {
  if (entry.kind !== 'reference') return false
  if (entry.type === 'Patient') return entry.id === undefined || !isOurs(entry.id)
  if (entry.url === undefined) return false
  const type = ADDRESS.exec(entry.url)?.[1]
  return type === undefined || type === 'Patient'
}
