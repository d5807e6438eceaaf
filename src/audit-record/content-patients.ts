import { copyText, LruMap } from '../cache/index.ts'
import { isRecord, toRecords } from '../core/index.ts'
import {
  findContentPatients,
  isResource,
  isResourceType,
  listCompartmentParameters,
  namesOtherPatient,
  parseReference,
  type Resource,
} from '../fhir/index.ts'
import { OTHERS } from './record.ts'

const MAX_READ = 64 * 1024 * 1024

/** `OTHERS` if the patients cannot be determined. */
export function findPatientsInText(place: string, text: string, baseUrl: string): readonly string[] {
  if (text.length > MAX_READ) return [OTHERS]
  try {
    return findPatientsAgain(place, text, () => JSON.parse(text), baseUrl)
  } catch {
    return [OTHERS]
  }
}

/** A resource or body as it was sent last, with its patients. Apps read the same few resources over and over. */
interface SentText {
  readonly text: string
  readonly patients: readonly string[]
}

const MAX_REMEMBERED = 4096
const sent = new LruMap<SentText>(2000)

/** Does not parse the text if it is the one that was sent last at this place. */
function findPatientsAgain(
  place: string,
  text: string,
  parse: () => unknown,
  baseUrl: string,
): readonly string[] {
  const key = `${baseUrl}/${place}`
  const known = sent.get(key)
  if (known?.text === text) return known.patients
  const content = parse()
  // A response to GraphQL, for example, has data of patients in any form.
  const patients = isResource(content) ? findPatientsIn(content, baseUrl) : [OTHERS]
  if (key.length + text.length <= MAX_REMEMBERED) sent.set(key, { text: copyText(text), patients })
  return patients
}

/** The patients of a resource, and of the resources in a Bundle or in Parameters. */
export function findPatientsIn(value: unknown, baseUrl: string): readonly string[] {
  if (!isResource(value) || !isResourceType(value.resourceType)) return []
  switch (value.resourceType) {
    case 'Bundle':
      return toRecords(value.entry).flatMap(entry => findPatientsInEntry(entry, baseUrl))
    case 'Parameters':
      return findPatientsInParameters(value.parameter, baseUrl)
    default:
      return nameUnknown(value.resourceType, [...findContentPatients(value, baseUrl)], isSubset(value))
  }
}

function findPatientsInEntry(
  { resource, request }: Readonly<Record<string, unknown>>,
  baseUrl: string,
): readonly string[] {
  if (resource !== undefined) return findPatientsIn(resource, baseUrl)
  // A deletion in a history has no content.
  return isRecord(request) && typeof request.url === 'string' ? findPatientsAt(request.url, baseUrl) : []
}

function findPatientsInParameters(parameters: unknown, baseUrl: string): readonly string[] {
  return toRecords(parameters).flatMap(({ resource, part }) => [
    ...findPatientsIn(resource, baseUrl),
    ...findPatientsInParameters(part, baseUrl),
  ])
}

/**
 * Adds `OTHERS` if the content does not show its patients: the elements that a subset omits may be the ones that refer to
 * them, and a Binary may belong to the patient of a document.
 */
function nameUnknown(type: string, patients: readonly string[], isPartial = false): readonly string[] {
  if (type === 'Patient') return patients
  const isUnknown = isPartial ? isOfPatients(type) : type === 'Binary' && patients.length === 0
  return isUnknown ? [...patients, OTHERS] : patients
}

/** The patients of a resource of which only the URL is known: `Condition/1/_history/2`. */
export function findPatientsAt(url: string, baseUrl: string): readonly string[] {
  const place = parseReference(url, baseUrl)
  if (place?.type === 'Patient') return [place.id]
  return !place || isOfPatients(place.type) ? [OTHERS] : []
}

export function isOfPatients(type: string): boolean {
  return type === 'Patient' || type === 'Binary' || listCompartmentParameters(type).length > 0
}

function isSubset({ meta }: Resource): boolean {
  const tags: unknown = meta?.tag
  return Array.isArray(tags) && tags.some(tag => isRecord(tag) && tag.code === 'SUBSETTED')
}

/** A resource of a response, or one that a request changed. */
export interface SentContent {
  readonly type: string
  readonly id: string
  /** As stored. Undefined if only the content that was written is known. */
  readonly text: string | undefined
  parse(): unknown
  /** The patients, if the server knows them without parsing the content. */
  findPatients?(): readonly string[] | undefined
}

export function findPatientsOf(contents: readonly SentContent[], baseUrl: string): readonly string[] {
  return contents.flatMap(content => {
    const { type, id, text } = content
    const known = content.findPatients?.()
    if (known) return nameUnknown(type, known)
    const parse = () => content.parse()
    return text === undefined
      ? findSentPatients(parse(), id, baseUrl)
      : findPatientsAgain(`${type}/${id}`, text, parse, baseUrl)
  })
}

/**
 * The patients of a resource that a client sent. The client does not know the id of a new resource, and may leave references
 * for the server to resolve.
 */
export function findSentPatients(body: unknown, id: string | undefined, baseUrl: string): readonly string[] {
  if (!isResource(body)) return []
  const { id: _, ...rest } = body
  const resource = { ...rest, ...(id !== undefined && { id }) }
  const isResolved = !namesOtherPatient(resource, () => true, baseUrl)
  return [...findPatientsIn(resource, baseUrl), ...(isResolved ? [] : [OTHERS])]
}
