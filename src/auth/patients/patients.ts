import { isFailure } from '../../core/index.ts'
import { saysIncomplete } from '../../fhir/index.ts'
import { type Person, readPerson } from '../../web/person/index.ts'
import { type FhirReader, type FhirReadResult, listResources, type Unavailable } from '../base/fhir-reader.ts'
import { compareNames, findSimilar, type SimilarNames } from './namesakes.ts'
import {
  buildNumberQuery,
  buildOtherQueries,
  buildPartQuery,
  buildPatientQueries,
  dropLabels,
} from './queries.ts'
import { completeNumber, hasNumber } from './record-number.ts'

const PATIENTS_LISTED = 20

export interface PatientQuery {
  readonly search: string | undefined
  /** The position of a later page, from the list before. */
  readonly page: string | undefined
  /** The ids of the patients that this user opened last. */
  readonly recent: readonly string[]
}

export interface PatientList extends PatientPage {
  readonly similar: SimilarNames
}

export interface PatientPage {
  readonly kind: 'list'
  /** The patients that this user opened last, on the first page without a search. They are in the list as well. */
  readonly recent: readonly Person[]
  /** The patients of this page, by family name. */
  readonly patients: readonly Person[]
  /** The place of the first one among all, from 1; undefined if it is not known. */
  readonly from: number | undefined
  /** Undefined if the server does not return it. */
  readonly total: number | undefined
  /** Whether the server has more patients. */
  readonly hasMore: boolean
  /** Whether the server says that it did not return all of them. */
  readonly isCut: boolean
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
  const page = await findPage(read, query)
  if (page.kind === 'unavailable') return page
  const people = listPeople(page)
  const isWhole = query.search === undefined && page.from === 1 && page.total === page.patients.length
  return { ...page, similar: isWhole ? compareNames(people) : await findSimilar(read, people) }
}

async function findPage(read: FhirReader, query: PatientQuery): Promise<PatientPage | Unavailable> {
  const { search, page } = query
  const { position, place } = parsePage(page)
  const later = position === undefined ? undefined : await read.page(position, 'Patient')
  // A position that the server no longer knows leads to the first page.
  if (later?.kind === 'found') return toPatientPage(later, { isSorted: true, place })
  return search === undefined ? findFirst(read, query.recent) : searchPatients(read, search)
}

type Search = (query: string) => Promise<FhirReadResult>

/** Finds the first patients whose name, birth date or number matches. */
export async function searchPatients(read: Search, search: string): Promise<PatientPage | Unavailable> {
  const text = dropLabels(search)
  const found = await findAny(read, buildPatientQueries(text))
  if (found.kind === 'unavailable' || found.patients.length > 0) return found
  const other = await findByOtherNumber(read, text)
  if (other?.kind === 'list' && other.patients.length > 0) return other
  const byPart = await findByPartOfName(read, text)
  return byPart?.kind === 'list' ? byPart : found
}

/**
 * Finds a later part of a double-barrelled name, which most servers find only by its beginning. One request, without an order:
 * a server need not support the search.
 */
async function findByPartOfName(read: Search, text: string) {
  const query = buildPartQuery(text)
  return query === undefined ? undefined : findSorted(read, query, [''])
}

/** `21.Patient?…` begins with the 21st patient, `-20.Patient?…` ends with the 20th. */
function parsePage(page = '') {
  const [, place, position = page] = /^(-?[1-9]\d{0,8})\.(.+)$/s.exec(page) ?? []
  return { position: position || undefined, place: place === undefined ? undefined : Number(place) }
}

/**
 * Finds a FHIR id or a part of an MRN, which only the embedded server can search. Elsewhere the number is completed to an MRN
 * like others.
 */
async function findByOtherNumber(read: Search, text: string) {
  const queries = buildOtherQueries(text)
  if (queries.length === 0) return undefined
  const other = await findAny(read, queries)
  if (!hasNumber(text) || (other.kind === 'list' && other.patients.length > 0)) return other
  const examples = await findSorted(read, '')
  const example =
    examples.kind === 'list' ? examples.patients.find(({ mrn }) => mrn !== undefined) : undefined
  const whole = completeNumber(text, example?.mrn)
  return whole === undefined ? other : findSorted(read, buildNumberQuery([whole]))
}

/** The first page: recent patients, and the first ones by family name. */
async function findFirst(read: FhirReader, recent: readonly string[]): Promise<PatientPage | Unavailable> {
  // In this order: a gateway can use the list's lookup of the clinician's patients for the recent ones.
  const [list, opened] = await Promise.all([findSorted(read, ''), findByIds(read, recent)])
  if (list.kind === 'unavailable') return list
  return { ...list, recent: opened }
}

/** The patients with these ids that the user may see, in this order. */
export async function findByIds(read: FhirReader, ids: readonly string[]): Promise<readonly Person[]> {
  const found = await lookUpByIds(read, ids)
  return isFailure(found) ? [] : found
}

/** Like `findByIds`, but says whether the server could be asked. */
export async function lookUpByIds(
  read: FhirReader,
  ids: readonly string[],
): Promise<readonly Person[] | Unavailable> {
  if (ids.length === 0) return []
  const response = await read(`Patient?_id=${ids.join(',')}&_count=${ids.length}`)
  if (response.kind === 'unavailable') return response
  const found = response.kind === 'found' ? listResources(response.resource, 'Patient').map(readPerson) : []
  return ids.flatMap(id => found.find(person => person.id === id) ?? [])
}

/** Finds the patients that any of the queries finds. A server need not support all of them. */
async function findAny(read: Search, queries: readonly string[]): Promise<PatientPage | Unavailable> {
  const responses = await Promise.all(queries.map(query => findSorted(read, query)))
  const outage = responses.find(it => it.kind === 'unavailable' && it.status !== 400)
  const lists = responses.filter(it => it.kind === 'list')
  const [first, ...others] = lists.filter(list => list.patients.length > 0)
  if (outage) return outage
  return first ? others.reduce(mergeLists, first) : (lists[0] ?? responses[0] ?? EMPTY)
}

const EMPTY: PatientPage = {
  kind: 'list',
  recent: [],
  patients: [],
  from: undefined,
  total: undefined,
  hasMore: false,
  isCut: false,
  isSorted: true,
}

/** Merges two lists, which have no common next page. The total is unknown if one has more. */
function mergeLists(list: PatientPage, other: PatientPage): PatientPage {
  const known = new Set(list.patients.map(({ id }) => id))
  const added = other.patients.filter(({ id }) => !known.has(id))
  if (added.length === 0 && !other.hasMore) return list
  const isCut = list.isCut || other.isCut
  const patients = [...list.patients, ...added].toSorted(compareFamilyNames)
  const hasMore = list.hasMore || other.hasMore || patients.length > PATIENTS_LISTED
  return { ...EMPTY, patients: patients.slice(0, PATIENTS_LISTED), hasMore, isCut }
}

/** From the best order to none: a server need not support sorting (FHIR R4, 3.1.1.5.1). */
const ORDERS = ['&_sort=family,given', '&_sort=family', '']

async function findSorted(
  read: Search,
  query: string,
  [order = '', ...others]: readonly string[] = ORDERS,
): Promise<PatientPage | Unavailable> {
  const found = await read(`Patient?${query}${query === '' ? '' : '&'}_count=${PATIENTS_LISTED}${order}`)
  return isBadRequest(found) && others.length > 0
    ? findSorted(read, query, others)
    : toPatientPage(found, { isSorted: order !== '', place: 1 })
}

function isBadRequest(response: FhirReadResult): boolean {
  return response.kind === 'unavailable' && response.status === 400
}

function toPatientPage(
  response: FhirReadResult,
  { isSorted, place }: { readonly isSorted: boolean; readonly place: number | undefined },
): PatientPage | Unavailable {
  switch (response.kind) {
    case 'unavailable':
      return response
    case 'absent':
      return EMPTY
    case 'found': {
      const { resource, next, previous } = response
      const received = listResources(resource, 'Patient')
      const patients = received.slice(0, PATIENTS_LISTED).map(readPerson)
      const total = typeof resource.total === 'number' ? resource.total : undefined
      const from = findStart(place, received.length, total)
      const isCut = saysIncomplete(resource)
      return {
        kind: 'list',
        recent: [],
        patients: patients.toSorted(compareFamilyNames),
        from,
        total,
        hasMore:
          isCut ||
          next !== undefined ||
          (previous === undefined && total !== undefined && total > patients.length),
        isCut,
        isSorted,
        ...(next !== undefined && { next: formatPage(next, from && from + received.length) }),
        ...(previous !== undefined && { previous: formatPage(previous, from && 1 - from) }),
      }
    }
  }
}

/** The place of the first patient of a page. Patients who were added or removed since can make it impossible. */
function findStart(place: number | undefined, count: number, total = Number.POSITIVE_INFINITY) {
  if (place === undefined) return undefined
  const from = place > 0 ? place : 1 - place - count
  return from >= 1 && from + count - 1 <= total ? from : undefined
}

function formatPage(position: string, place: number | undefined): string {
  return place ? `${place}.${position}` : position
}

/** The patients on a page, some of them twice. */
export function listPeople({ recent, patients }: PatientPage): readonly Person[] {
  return [...recent, ...patients]
}

const names = new Intl.Collator('en', { sensitivity: 'base' })

function compareFamilyNames(a: Person, b: Person): number {
  return (
    names.compare(a.name.family ?? '\u{10ffff}', b.name.family ?? '\u{10ffff}') ||
    names.compare(a.name.given ?? '', b.name.given ?? '') ||
    names.compare(a.id, b.id)
  )
}
