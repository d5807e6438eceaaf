import { copyText, LruMap } from '../../cache/index.ts'
import {
  findCompartmentPatients,
  type Interaction,
  isRecord,
  isResourceType,
  isWriting,
  listCompartmentParameters,
  type Misunderstood,
  parseReference,
  type Refused,
  type Resource,
} from '../../fhir/index.ts'
import type { Grant } from '../../smart/index.ts'
import { OTHERS } from '../record.ts'

/** Returns a stored resource, even if deleted; undefined if unknown. */
export type FindStored = (type: string, id: string, version?: string) => Resource | undefined

interface PatientLookup {
  readonly fhirBaseUrl: string
  readonly findStored?: FindStored | undefined
}

const LONGEST_READ = 64 * 1024 * 1024

/** `OTHERS` if the patients cannot be determined. */
function findPatientsInText(place: string, text: string, lookup: PatientLookup): readonly string[] {
  if (text.length > LONGEST_READ) return [OTHERS]
  try {
    return findPatientsAgain(place, text, () => JSON.parse(text), lookup)
  } catch {
    return [OTHERS]
  }
}

/** A resource or body as it was sent last, with its patients. Apps read the same few resources over and over. */
interface SentText {
  readonly text: string
  readonly patients: readonly string[]
}

const LONGEST_REMEMBERED = 4096
const sent = new LruMap<SentText>(2000)

/** Does not parse the text if it is the one that was sent last at this place. */
function findPatientsAgain(
  place: string,
  text: string,
  parse: () => unknown,
  lookup: PatientLookup,
): readonly string[] {
  const key = `${lookup.fhirBaseUrl}/${place}`
  const known = sent.get(key)
  if (known?.text === text) return known.patients
  const value = parse()
  const patients = findPatientsIn(value, lookup)
  if (key.length + text.length <= LONGEST_REMEMBERED && isLasting(value, lookup))
    sent.set(key, { text: copyText(text), patients })
  return patients
}

/** The patients of a subset, or of a deletion in a history, depend on stored data if the server has it. */
function isLasting(value: unknown, { findStored }: PatientLookup): boolean {
  return !findStored || (isRecord(value) && value.resourceType !== 'Bundle' && !isSubset(value as Resource))
}

function findPatientsIn(value: unknown, lookup: PatientLookup): readonly string[] {
  if (!isRecord(value) || typeof value.resourceType !== 'string' || !isResourceType(value.resourceType))
    return []
  if (value.resourceType === 'Bundle')
    return Array.isArray(value.entry) ? value.entry.flatMap(entry => findPatientsInEntry(entry, lookup)) : []
  const resource = value as Resource
  return isSubset(resource)
    ? findPatientsOfSubset(resource, lookup)
    : [...findCompartmentPatients(resource, lookup.fhirBaseUrl)]
}

/** The patients of a resource and, for a write, of its previous version: `Condition/1/_history/2`. */
function findPatientsAt(address: string, lookup: PatientLookup): readonly string[] {
  const { fhirBaseUrl, findStored } = lookup
  const version = /\/_history\/(\d{1,15})$/.exec(address)?.[1]
  const place = parseReference(address, fhirBaseUrl)
  if (!place) return [OTHERS]
  const versions = version === undefined ? [undefined] : [version, String(Number(version) - 1)]
  const resources = versions.flatMap(it => findStored?.(place.type, place.id, it) ?? [])
  const own = place.type === 'Patient' ? [place.id] : []
  if (resources.length === 0 && own.length === 0) return isOfPatients(place.type) ? [OTHERS] : []
  return [...own, ...resources.flatMap(it => [...findCompartmentPatients(it, fhirBaseUrl)])]
}

function findPatientsInEntry(entry: unknown, lookup: PatientLookup): readonly string[] {
  if (!isRecord(entry)) return []
  if (entry.resource !== undefined) return findPatientsIn(entry.resource, lookup)
  // A deletion in a history has no content.
  const { request } = entry
  return isRecord(request) && typeof request.url === 'string' ? findPatientsAt(request.url, lookup) : []
}

/** The omitted elements may be the ones that reference the patient. */
function findPatientsOfSubset(
  resource: Resource,
  { fhirBaseUrl, findStored }: PatientLookup,
): readonly string[] {
  const { resourceType: type, id, meta } = resource
  const version = typeof meta?.versionId === 'string' ? meta.versionId : undefined
  const whole = id === undefined ? undefined : findStored?.(type, id, version)
  if (whole) return [...findCompartmentPatients(whole, fhirBaseUrl)]
  const known = [...findCompartmentPatients(resource, fhirBaseUrl)]
  return type === 'Patient' || !isOfPatients(type) ? known : [...known, OTHERS]
}

function isOfPatients(type: string): boolean {
  return type === 'Patient' || type === 'Binary' || listCompartmentParameters(type).length > 0
}

function isSubset({ meta }: Resource): boolean {
  const tags: unknown = meta?.tag
  return Array.isArray(tags) && tags.some(tag => isRecord(tag) && tag.code === 'SUBSETTED')
}

/** A resource of a response. */
export interface SentContent {
  readonly type: string
  readonly id: string
  readonly text: string
  parse(): unknown
}

/** A request to a FHIR server, or an entry of a Bundle, with its decision and its response. */
export interface AuditedRequest {
  readonly at: number
  readonly method: string
  readonly interaction: Interaction | Misunderstood
  /** Raw, below the base. If it is not a FHIR interaction, only the parts that look like FHIR are stored. */
  readonly address?: string | undefined
  /** The grant of the token, if the token is valid or was valid before. */
  readonly grant?: Grant | undefined
  readonly anonymous?: boolean | undefined
  readonly by?: string | undefined
  /** The reason for a refusal. Undefined: the request was allowed. */
  readonly refusal?: Refused | string | undefined
  readonly status: number
  /** The JSON response: its resources show which patients it concerns. */
  readonly body?: string | undefined
  /** The resources in `body`, if the server has them: then `body` is not parsed. */
  readonly contents?: readonly SentContent[] | undefined
  readonly resource?: unknown
  readonly requestBody?: unknown
  /** The version that was written, or the resource that was deleted: `Condition/1/_history/2`. */
  readonly location?: string | undefined
  /** The resource before a write, if the server has it. */
  readonly before?: Resource | undefined
  readonly findStored?: FindStored | undefined
  readonly requestId?: string | undefined
  readonly clientAddress?: string | undefined
}

const PATIENT_PARAMETER = /^(?:patient|subject)(?::Patient)?(?:\._id)?$/
const PATIENT_VALUE = /^(?:(?:.*\/)?Patient\/)?([A-Za-z0-9.-]{1,64})$/

/** The patients that a request names, whatever its outcome; `OTHERS` if it names resources but not their patients. */
function findNamedPatients(interaction: Interaction | Misunderstood): readonly string[] {
  if ('compartment' in interaction) return [interaction.id, ...findPatientsInParams(interaction)]
  if ('id' in interaction && 'type' in interaction && interaction.type === 'Patient')
    return interaction.id === undefined ? [] : [interaction.id]
  return findPatientsInParams(interaction)
}

function findPatientsInParams(interaction: Interaction | Misunderstood): readonly string[] {
  if (!('params' in interaction)) return []
  const ofPatients = 'type' in interaction && interaction.type === 'Patient'
  return interaction.params.flatMap(([name, value]) => {
    const values = value.split(',')
    if (name === '_id' && !ofPatients) return values.length > 1 ? [OTHERS] : []
    if (name !== '_id' && !PATIENT_PARAMETER.test(name)) return []
    return values.flatMap(it => PATIENT_VALUE.exec(it)?.[1] ?? [])
  })
}

const MOST = 100

/**
 * An event is filed under the patients whose data the response contained or the request changed, never under the
 * launched patient. A request without effect is filed under the token's patient, if it asked for that patient.
 */
export function findPatients(request: AuditedRequest, fhirBaseUrl: string): readonly string[] {
  const { grant, by, interaction, refusal, status } = request
  if (by === 'public') return []
  const named = findNamedPatients(interaction)
  const only = grant && by !== 'fhirUser' ? findOnlyPatient(grant) : undefined
  // The request line would reveal which other patients the app asked for.
  if (only !== undefined) return named.every(it => it === only) ? [only] : [only, OTHERS]
  const isDone = refusal === undefined && (status < 400 || isUncertain(request))
  const touched = isDone ? findTouchedPatients(request, { fhirBaseUrl, findStored: request.findStored }) : []
  if (touched.length === 0)
    return named.length > 0 && named.every(it => it === grant?.patient) ? named.slice(0, 1) : []
  return limitPatients(named.every(it => touched.includes(it)) ? touched : [...touched, OTHERS])
}

/** Whether a failed request may have changed data: the response of an upstream can be lost. */
function isUncertain({ interaction, status }: AuditedRequest): boolean {
  return status >= 500 && interaction.kind !== 'misunderstood' && isWriting(interaction)
}

/** Without duplicates, limited, and with `OTHERS` last. */
export function limitPatients(patients: readonly string[]): readonly string[] {
  const all = new Set(patients)
  const hasOthers = all.delete(OTHERS)
  const list = [...all]
  return hasOthers || list.length > MOST ? [...list.slice(0, MOST), OTHERS] : list
}

/** A token with only `patient/` scopes has no access to other patients (PATIENT-1). */
function findOnlyPatient({ patient, scopes }: Grant): string | undefined {
  return scopes.every(it => it.kind === 'plain' || it.context === 'patient') ? patient : undefined
}

function findCarriedPatients(
  { address = '', body, contents, resource }: AuditedRequest,
  lookup: PatientLookup,
): readonly string[] {
  if (contents)
    return contents.flatMap(it => findPatientsAgain(`${it.type}/${it.id}`, it.text, () => it.parse(), lookup))
  return body === undefined ? findPatientsIn(resource, lookup) : findPatientsInText(address, body, lookup)
}

function findTouchedPatients(request: AuditedRequest, lookup: PatientLookup): readonly string[] {
  const { interaction, body, resource, status } = request
  const isEmpty = body === undefined && resource === undefined
  const carried = findCarriedPatients(request, lookup)
  switch (interaction.kind) {
    case 'create':
    case 'update':
    case 'update-conditional':
      // With If-None-Exist, the sent resource may not have been written.
      return interaction.kind === 'create' && status === 200
        ? [...carried, ...findWrittenPatients(request, lookup, carried.length > 0)]
        : [...carried, ...findSentPatients(request, lookup), ...findWrittenPatients(request, lookup, true)]
    case 'patch':
    case 'patch-conditional':
      return [...carried, ...findWrittenPatients(request, lookup, carried.length > 0)]
    case 'delete':
    case 'delete-conditional':
      return findWrittenPatients(request, lookup, false)
    case 'read':
    case 'vread':
      return isEmpty ? findPatientsAt(`${interaction.type}/${interaction.id}`, lookup) : carried
    case 'misunderstood':
    case 'bundle':
      return carried
    default:
      return isEmpty ? [OTHERS] : carried
  }
}

function findSentPatients(
  { requestBody, interaction }: AuditedRequest,
  lookup: PatientLookup,
): readonly string[] {
  const id = 'id' in interaction ? { id: interaction.id } : {}
  return isRecord(requestBody) ? findPatientsIn({ ...requestBody, ...id }, lookup) : []
}

function findWrittenPatients(
  request: AuditedRequest,
  lookup: PatientLookup,
  isKnown: boolean,
): readonly string[] {
  const { interaction, location, before } = request
  const own =
    'id' in interaction && 'type' in interaction ? `${interaction.type}/${interaction.id}` : undefined
  const reference = location ?? own
  const found = reference === undefined ? [OTHERS] : findPatientsAt(reference, lookup)
  const earlier = findPatientsIn(before, lookup)
  return isKnown || before ? [...earlier, ...found.filter(it => it !== OTHERS)] : found
}
