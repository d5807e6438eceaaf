import { isId, parseReference } from '../../../fhir/index.ts'
import type { Search } from '../../../fhir-api/index.ts'

const OF_PATIENT = /^(?:patient|subject)(?::Patient)?$/

/** The patients whom a search is for by its own words; undefined where it names none, or not by their ids alone. */
export function findNamedPatients(
  search: Search,
  type: string,
  baseUrl: string,
): readonly string[] | undefined {
  if (search.kind === 'search-compartment') return [search.id]
  const isNaming = (name: string) => (type === 'Patient' ? name === '_id' : OF_PATIENT.test(name))
  const value = search.params.find(([name]) => isNaming(name))?.[1]
  const ids = value?.split(',').map(text => patientIn(text, baseUrl))
  return ids?.every(id => id !== undefined) ? ids : undefined
}

function patientIn(text: string, baseUrl: string): string | undefined {
  if (isId(text)) return text
  const reference = parseReference(text, baseUrl)
  return reference?.type === 'Patient' ? reference.id : undefined
}
