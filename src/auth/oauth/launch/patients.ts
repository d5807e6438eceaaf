import { type Person, readPerson } from '../../../web/index.ts'
import {
  type FhirReader,
  type FhirReadResult,
  listResources,
  type Unavailable,
} from '../../base/fhir-reader.ts'
import {
  buildNumberQuery,
  buildPartOfNumberQuery,
  buildPatientQueries,
  completeNumber,
  isNumber,
} from './patient-queries.ts'

export const PATIENTS_LISTED = 20

export interface PatientQuery {
  readonly search: string | undefined
  /** The position of a later page, from the list before. */
  readonly page: string | undefined
  /** The ids of the patients that this user opened last. */
  readonly recent: readonly string[]
}

export interface PatientList {
  readonly kind: 'list'
  /** The patients that this user opened last, on the first page without a search. */
  readonly recent: readonly Person[]
  /** The other patients, by family name. */
  readonly patients: readonly Person[]
  /** Undefined if the server does not return it. */
  readonly total: number | undefined
  /** Whether the server has more patients. */
  readonly hasMore: boolean
  /** Whether the server sorted them: then the list has no gaps. */
  readonly isSorted: boolean
  /** The positions of the pages before and after this one. */
  readonly next?: string
  readonly previous?: string
}

/** Finds a page of all patients, or of those whose name, birth date or number matches. */
export async function findPatients(
  read: FhirReader,
  query: PatientQuery,
): Promise<PatientList | Unavailable> {
  const { search, page } = query
  const later = page === undefined ? undefined : await read.page(page, 'Patient')
  // A position that the server no longer knows leads to the first page.
  if (later?.kind === 'found') return toPatientList(later, true)
  if (search === undefined) return findFirst(read, query.recent)
  const found = await findAny(read, buildPatientQueries(search))
  if (found.kind === 'unavailable' || countListed(found) > 0 || !isNumber(search)) return found
  const partial = await findByPartOfNumber(read, search)
  return partial.kind === 'list' ? partial : found
}

/** Only the embedded server searches for a part of an MRN. Elsewhere digits are completed to an MRN like others. */
async function findByPartOfNumber(read: FhirReader, part: string): Promise<PatientList | Unavailable> {
  const partial = await findSorted(read, buildPartOfNumberQuery(part))
  if (partial.kind === 'list' && countListed(partial) > 0) return partial
  const examples = await findSorted(read, '')
  const example =
    examples.kind === 'list' ? examples.patients.find(({ mrn }) => mrn !== undefined) : undefined
  const whole = completeNumber(part, example?.mrn)
  return whole === undefined ? partial : findSorted(read, buildNumberQuery(whole))
}

/** The first page: recent patients, then the first ones by family name. */
async function findFirst(read: FhirReader, recent: readonly string[]): Promise<PatientList | Unavailable> {
  // In this order: a gateway can use the list's lookup of the clinician's patients for the recent ones.
  const [list, opened] = await Promise.all([
    findSorted(read, '', PATIENTS_LISTED - recent.length),
    findByIds(read, recent),
  ])
  if (list.kind === 'unavailable') return list
  return { ...list, recent: opened, patients: list.patients.filter(({ id }) => !recent.includes(id)) }
}

/** The patients with these ids that the user may see, in this order. */
export async function findByIds(read: FhirReader, ids: readonly string[]): Promise<readonly Person[]> {
  if (ids.length === 0) return []
  const response = await read(`Patient?_id=${ids.join(',')}&_count=${ids.length}`)
  const found = response.kind === 'found' ? listResources(response.resource, 'Patient').map(readPerson) : []
  return ids.flatMap(id => found.find(person => person.id === id) ?? [])
}

/** Finds the patients that any of the queries finds. A server need not support all of them. */
async function findAny(read: FhirReader, queries: readonly string[]): Promise<PatientList | Unavailable> {
  const responses = await Promise.all(queries.map(query => findSorted(read, query)))
  const outage = responses.find(it => it.kind === 'unavailable' && it.status !== 400)
  const lists = responses.filter(it => it.kind === 'list')
  const [first, ...others] = lists.filter(list => countListed(list) > 0)
  if (outage) return outage
  return first ? others.reduce(mergeLists, first) : (lists[0] ?? responses[0] ?? EMPTY)
}

const EMPTY: PatientList = {
  kind: 'list',
  recent: [],
  patients: [],
  total: undefined,
  hasMore: false,
  isSorted: true,
}

/** Merges two lists, which have no common next page. The total is unknown if one has more. */
function mergeLists(list: PatientList, other: PatientList): PatientList {
  const known = new Set(list.patients.map(({ id }) => id))
  const added = other.patients.filter(({ id }) => !known.has(id))
  if (added.length === 0 && !other.hasMore) return list
  const patients = [...list.patients, ...added].toSorted(compareFamilyNames)
  const hasMore = list.hasMore || other.hasMore || patients.length > PATIENTS_LISTED
  return { ...EMPTY, patients: patients.slice(0, PATIENTS_LISTED), hasMore }
}

/** From the best order to none: a server need not support sorting (FHIR R4, 3.1.1.5.1). */
const ORDERS = ['&_sort=family,given', '&_sort=family', '']

async function findSorted(
  read: FhirReader,
  query: string,
  count = PATIENTS_LISTED,
  [order = '', ...others]: readonly string[] = ORDERS,
): Promise<PatientList | Unavailable> {
  const found = await read(`Patient?${query}${query === '' ? '' : '&'}_count=${count}${order}`)
  return isBadRequest(found) && others.length > 0
    ? findSorted(read, query, count, others)
    : toPatientList(found, order !== '')
}

function isBadRequest(response: FhirReadResult): boolean {
  return response.kind === 'unavailable' && response.status === 400
}

function toPatientList(response: FhirReadResult, isSorted: boolean): PatientList | Unavailable {
  switch (response.kind) {
    case 'unavailable':
      return response
    case 'absent':
      return EMPTY
    case 'found': {
      const { resource, next, previous } = response
      const patients = listResources(resource, 'Patient').slice(0, PATIENTS_LISTED).map(readPerson)
      const total = typeof resource.total === 'number' ? resource.total : undefined
      return {
        kind: 'list',
        recent: [],
        patients: patients.toSorted(compareFamilyNames),
        total,
        hasMore:
          next !== undefined || (previous === undefined && total !== undefined && total > patients.length),
        isSorted,
        ...(next === undefined ? {} : { next }),
        ...(previous === undefined ? {} : { previous }),
      }
    }
  }
}

/** The patients on a page. */
export function listPeople({ recent, patients }: PatientList): readonly Person[] {
  return [...recent, ...patients]
}

function countListed(list: PatientList): number {
  return listPeople(list).length
}

const names = new Intl.Collator('en', { sensitivity: 'base' })

function compareFamilyNames(a: Person, b: Person): number {
  return (
    names.compare(a.name.family ?? '\u{10ffff}', b.name.family ?? '\u{10ffff}') ||
    names.compare(a.name.given ?? '', b.name.given ?? '') ||
    names.compare(a.id, b.id)
  )
}
