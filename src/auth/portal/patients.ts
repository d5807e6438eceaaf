import type { Resource } from '../../fhir/index.ts'
import { type Person, readPerson } from '../../web/index.ts'
import { LIMITS } from '../limits.ts'
import { type FhirReader, isResource } from './fhir-reader.ts'

export const PATIENTS_LISTED = 20

export interface PatientList {
  readonly kind: 'list'
  /** By family name. */
  readonly patients: readonly Person[]
  /** Undefined if the server does not return it. */
  readonly total: number | undefined
  /** Whether the server has more patients. */
  readonly hasMore: boolean
}

export interface Unavailable {
  readonly kind: 'unavailable'
  readonly reason: string
}

/** Returns the reason why a search is too long. */
export function findSearchFault(search: string | undefined): string | undefined {
  if (search === undefined) return undefined
  const { searchCharacters, searchWords } = LIMITS
  return search.length > searchCharacters || splitWords(search).length > searchWords
    ? `A search for patients has at most ${searchCharacters} characters and ${searchWords} words.`
    : undefined
}

function splitWords(search: string): readonly string[] {
  return search.split(/[\s,]+/).filter(word => word !== '')
}

/** Finds the first patients, or those whose name or number matches. */
export async function findPatients(
  read: FhirReader,
  search: string | undefined,
): Promise<PatientList | Unavailable> {
  if (search === undefined) return toPatientList(await read(`Patient?_count=${PATIENTS_LISTED}`))
  const words = splitWords(search)
  // A server compares each part of a name separately, so "Alba Juniper" is searched as "Alba" and "Juniper", even if the
  // whole text matches: the words in another order may match a patient with a similar name.
  const [whole, more] = await Promise.all([
    findByName(read, [search]),
    words.length < 2 ? findByNumber(read, search) : findByName(read, words),
  ])
  if (whole.kind === 'unavailable' || more === undefined) return whole
  return more.kind === 'unavailable' ? more : mergeLists(whole, more)
}

/** Searches the exact MRN or another identifier, which not every server supports. Text without a digit is a name. */
async function findByNumber(read: FhirReader, text: string): Promise<PatientList | undefined> {
  if (!/\d/.test(text)) return undefined
  const identifier = encodeURIComponent(escapeValue(text))
  const found = toPatientList(await read(`Patient?identifier=${identifier}&_count=${PATIENTS_LISTED}`))
  return found.kind === 'unavailable' ? undefined : found
}

/** Merges two lists. The total is unknown if both have more. */
function mergeLists(one: PatientList, other: PatientList): PatientList {
  if (one.patients.length === 0) return other
  const known = new Set(one.patients.map(({ id }) => id))
  const added = other.patients.filter(({ id }) => !known.has(id))
  if (added.length === 0 && !other.hasMore) return one
  const patients = [...one.patients, ...added].toSorted(compareFamilyNames)
  const hasMore = one.hasMore || other.hasMore || patients.length > PATIENTS_LISTED
  return { kind: 'list', patients: patients.slice(0, PATIENTS_LISTED), total: undefined, hasMore }
}

/** Sorted by family name, if the server supports it (FHIR R4, 3.1.1.5.1). */
async function findByName(read: FhirReader, names: readonly string[]): Promise<PatientList | Unavailable> {
  const query = names.map(name => `name=${encodeURIComponent(escapeValue(name))}`).join('&')
  const path = `Patient?${query}&_count=${PATIENTS_LISTED}`
  const sorted = await read(`${path}&_sort=family`)
  return toPatientList(sorted.kind === 'unavailable' && sorted.status === 400 ? await read(path) : sorted)
}

// FHIR R4, 3.1.1.3.2: separators are escaped.
function escapeValue(text: string): string {
  return text.replace(/[\\,|$]/g, '\\$&')
}

function toPatientList(response: Awaited<ReturnType<FhirReader>>): PatientList | Unavailable {
  switch (response.kind) {
    case 'unavailable':
      return response
    case 'absent':
      return { kind: 'list', patients: [], total: undefined, hasMore: false }
    case 'found': {
      const patients = listResources(response.resource, 'Patient').slice(0, PATIENTS_LISTED).map(readPerson)
      const total = typeof response.resource.total === 'number' ? response.resource.total : undefined
      return {
        kind: 'list',
        patients: patients.toSorted(compareFamilyNames),
        total,
        hasMore: total === undefined ? hasNextPage(response.resource) : total > patients.length,
      }
    }
  }
}

function hasNextPage({ link }: Resource): boolean {
  return Array.isArray(link) && link.some((each: unknown) => isResourceLink(each) && each.relation === 'next')
}

function isResourceLink(value: unknown): value is { readonly relation: unknown } {
  return typeof value === 'object' && value !== null && 'relation' in value
}

export function listResources(bundle: Resource, type: string): readonly Resource[] {
  const entries: unknown = bundle.entry
  if (!Array.isArray(entries)) return []
  return entries.flatMap((entry: unknown) => {
    const resource: unknown =
      typeof entry === 'object' && entry !== null && 'resource' in entry ? entry.resource : undefined
    return isResource(resource) && resource.resourceType === type && typeof resource.id === 'string'
      ? [resource]
      : []
  })
}

const names = new Intl.Collator('en', { sensitivity: 'base' })

function compareFamilyNames(a: Person, b: Person): number {
  return (
    names.compare(a.name.family ?? '\u{10ffff}', b.name.family ?? '\u{10ffff}') ||
    names.compare(a.name.given ?? '', b.name.given ?? '') ||
    names.compare(a.id, b.id)
  )
}
