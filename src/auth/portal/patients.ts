import type { Resource } from '../../fhir/index.ts'
import { type Person, personOf } from '../../web/index.ts'
import { LIMITS } from '../limits.ts'
import { type FhirReader, isResource } from './fhir-reader.ts'

/** Service.md 8. */
export const PATIENTS_LISTED = 20

export interface PatientList {
  readonly kind: 'list'
  /** By family name, at most 20. */
  readonly patients: readonly Person[]
  /** How many there are in all, where the server tells. */
  readonly total: number | undefined
  /** Whether the server has more than these: it need not tell how many. */
  readonly hasMore: boolean
}

export interface Away {
  readonly kind: 'away'
  readonly reason: string
}

/** Why a search is too long; undefined when it is not. */
export function findSearchFault(search: string | undefined): string | undefined {
  if (search === undefined) return undefined
  const { searchCharacters, searchWords } = LIMITS
  return search.length > searchCharacters || wordsOf(search).length > searchWords
    ? `A search for patients has at most ${searchCharacters} characters and ${searchWords} words.`
    : undefined
}

function wordsOf(search: string): readonly string[] {
  return search.split(/[\s,]+/).filter(word => word !== '')
}

/** The patients of the list, or those whose name or number matches (service.md 4.1, rules 3 and 4). */
export async function findPatients(
  read: FhirReader,
  search: string | undefined,
): Promise<PatientList | Away> {
  if (search === undefined) return listOf(await read(`Patient?_count=${PATIENTS_LISTED}`))
  const words = wordsOf(search)
  // A server compares each part of a name by itself: "Alba Juniper" is found as "Alba" and "Juniper". Also where the
  // whole text finds somebody: in another order of the words it would find whoever could be taken for them.
  const [whole, more] = await Promise.all([
    findByName(read, [search]),
    words.length < 2 ? findByNumber(read, search) : findByName(read, words),
  ])
  if (whole.kind === 'away' || more === undefined) return whole
  return more.kind === 'away' ? more : both(whole, more)
}

/** By MRN or any other identifier, whole; not every server searches so. Without a digit it is a name. */
async function findByNumber(read: FhirReader, text: string): Promise<PatientList | undefined> {
  if (!/\d/.test(text)) return undefined
  const identifier = encodeURIComponent(escapeValue(text))
  const found = listOf(await read(`Patient?identifier=${identifier}&_count=${PATIENTS_LISTED}`))
  return found.kind === 'away' ? undefined : found
}

/** Whoever is in one of them. How many that are in all nobody tells where each has more. */
function both(one: PatientList, other: PatientList): PatientList {
  if (one.patients.length === 0) return other
  const known = new Set(one.patients.map(({ id }) => id))
  const added = other.patients.filter(({ id }) => !known.has(id))
  if (added.length === 0 && !other.hasMore) return one
  const patients = [...one.patients, ...added].toSorted(byFamilyName)
  const hasMore = one.hasMore || other.hasMore || patients.length > PATIENTS_LISTED
  return { kind: 'list', patients: patients.slice(0, PATIENTS_LISTED), total: undefined, hasMore }
}

/** The first by family name; a server that cannot sort so (FHIR R4, 3.1.1.5.1) gives the first as it has them. */
async function findByName(read: FhirReader, names: readonly string[]): Promise<PatientList | Away> {
  const query = names.map(name => `name=${encodeURIComponent(escapeValue(name))}`).join('&')
  const path = `Patient?${query}&_count=${PATIENTS_LISTED}`
  const sorted = await read(`${path}&_sort=family`)
  return listOf(sorted.kind === 'away' && sorted.status === 400 ? await read(path) : sorted)
}

// FHIR R4, 3.1.1.3.2: what separates values is escaped inside of one.
function escapeValue(text: string): string {
  return text.replace(/[\\,|$]/g, '\\$&')
}

function listOf(answer: Awaited<ReturnType<FhirReader>>): PatientList | Away {
  switch (answer.kind) {
    case 'away':
      return answer
    case 'absent':
      return { kind: 'list', patients: [], total: undefined, hasMore: false }
    case 'found': {
      const patients = resourcesOf(answer.resource, 'Patient').slice(0, PATIENTS_LISTED).map(personOf)
      const total = typeof answer.resource.total === 'number' ? answer.resource.total : undefined
      return {
        kind: 'list',
        patients: patients.toSorted(byFamilyName),
        total,
        hasMore: total === undefined ? hasNextPage(answer.resource) : total > patients.length,
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

/** The resources of one type in a Bundle, each with an id. */
export function resourcesOf(bundle: Resource, type: string): readonly Resource[] {
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

function byFamilyName(a: Person, b: Person): number {
  return (
    names.compare(a.name.family ?? '\u{10ffff}', b.name.family ?? '\u{10ffff}') ||
    names.compare(a.name.given ?? '', b.name.given ?? '') ||
    names.compare(a.id, b.id)
  )
}
