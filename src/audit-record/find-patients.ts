import {
  type Because,
  type Interaction,
  isId,
  isWriting,
  type Misunderstood,
  parseReference,
  type Refused,
  type WriteInteraction,
} from '../fhir/index.ts'
import type { Grant } from '../smart/index.ts'
import {
  findPatientsAt,
  findPatientsIn,
  findPatientsInText,
  findPatientsOf,
  findSentPatients,
  isOfPatients,
  type SentContent,
} from './content-patients.ts'
import { OTHERS } from './record.ts'

/** A request to a FHIR server, or an entry of a Bundle, with its decision and its response. */
export interface AuditedRequest {
  readonly at: number
  readonly method: string
  readonly tool?: string | undefined
  readonly isTrial?: true | undefined
  readonly isCall?: true | undefined
  readonly interaction: Interaction | Misunderstood
  /** Raw, below the base. If it is not a FHIR interaction, only the parts that look like FHIR are stored. */
  readonly address?: string | undefined
  /** The grant of the token, if the token is valid or was valid before. */
  readonly grant?: Grant | undefined
  readonly anonymous?: boolean | undefined
  readonly by?: string | undefined
  /** The reason for a refusal. Undefined: the request was allowed. */
  readonly refusal?: Refused | Because | undefined
  /** Why an allowed request failed. */
  readonly failure?: Because | undefined
  readonly status: number
  /** The JSON response: its resources show which patients it concerns. */
  readonly body?: string | undefined
  /** The resources in `body`, if the server has them: then `body` is not parsed. */
  readonly contents?: readonly SentContent[] | undefined
  readonly resource?: unknown
  readonly requestBody?: unknown
  /** The version that was written, or the resource that was deleted: `Condition/1/_history/2`. */
  readonly location?: string | undefined
  /** The resource after a change, and before it, if the server has them. */
  readonly after?: SentContent | undefined
  readonly before?: SentContent | undefined
  /** The documents that name the Binary of the response. */
  readonly documents?: readonly SentContent[] | undefined
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

/**
 * An event is filed under all patients whose data the response contained or the request changed, whatever the token, and
 * never under the launched patient alone. A token with only `patient/` scopes is used for its patient, so that each of its
 * requests is filed under that patient too. Another request without effect is filed under the token's patient, if it asked
 * for that patient.
 */
export function findPatients(request: AuditedRequest, fhirBaseUrl: string): readonly string[] {
  const { grant, by, interaction, refusal, status } = request
  if (by === 'public') return []
  const named = findNamedPatients(interaction)
  const isDone = refusal === undefined && (status < 400 || isUncertain(request))
  const touched = new Set(isDone ? findTouchedPatients(request, fhirBaseUrl) : [])
  const only = grant && by !== 'fhirUser' ? findOnlyPatient(grant) : undefined
  if (only === undefined && touched.size === 0)
    return named.length > 0 && named.every(it => it === grant?.patient) ? named.slice(0, 1) : []
  // A limited caller gets only content of that patient: whatever does not show its patients is that patient's.
  if (only !== undefined) touched.delete(OTHERS)
  const all = only === undefined ? touched : new Set([only, ...touched])
  // The request line would reveal which other patients the app asked for.
  return listOnce(named.every(it => all.has(it)) ? all : [...all, OTHERS])
}

/** Whether a failed request may have changed data: the response of an upstream can be lost. */
function isUncertain({ interaction, status }: AuditedRequest): boolean {
  return status >= 500 && interaction.kind !== 'misunderstood' && isWriting(interaction)
}

/** Without duplicates, and with `OTHERS` last. An upstream may send ids that are none. */
export function listOnce(patients: Iterable<string>): readonly string[] {
  const all = new Set(patients)
  const hasOthers = all.delete(OTHERS)
  const list = [...all].filter(isId)
  return hasOthers || list.length < all.size ? [...list, OTHERS] : list
}

/** A token with only `patient/` scopes has no access to other patients (PATIENT-1). */
function findOnlyPatient({ patient, scopes }: Grant): string | undefined {
  return scopes.every(it => it.kind === 'plain' || it.context === 'patient') ? patient : undefined
}

function findCarriedPatients(
  { address = '', body, contents, documents = [], resource }: AuditedRequest,
  baseUrl: string,
): readonly string[] {
  const carried = contents
    ? findPatientsOf(contents, baseUrl)
    : body === undefined
      ? findPatientsIn(resource, baseUrl)
      : findPatientsInText(address, body, baseUrl)
  const ofDocuments = findPatientsOf(documents, baseUrl)
  return ofDocuments.length === 0 ? carried : [...carried.filter(it => it !== OTHERS), ...ofDocuments]
}

function findTouchedPatients(request: AuditedRequest, baseUrl: string): readonly string[] {
  const { interaction, body, contents, resource } = request
  const carried = findCarriedPatients(request, baseUrl)
  const isEmpty = body === undefined && contents === undefined && resource === undefined
  switch (interaction.kind) {
    case 'create':
    case 'update':
    case 'update-conditional':
    case 'patch':
    case 'patch-conditional':
    case 'delete':
    case 'delete-conditional':
      return findChangedPatients(request, interaction, carried, baseUrl)
    case 'read':
    case 'vread':
      return isEmpty ? findPatientsAt(`${interaction.type}/${interaction.id}`, baseUrl) : carried
    case 'misunderstood':
    case 'bundle':
      return carried
    default:
      return isEmpty ? [OTHERS] : carried
  }
}

function findChangedPatients(
  request: AuditedRequest,
  interaction: WriteInteraction,
  carried: readonly string[],
  baseUrl: string,
): readonly string[] {
  const { after, before } = request
  const former = before ? findPatientsOf([before], baseUrl) : []
  if (after) return [...findPatientsOf([after], baseUrl), ...former]
  const isDeletion = interaction.kind === 'delete' || interaction.kind === 'delete-conditional'
  return isDeletion && before
    ? former
    : [...findWrittenPatients(request, interaction, carried, baseUrl), ...former]
}

/** The patients of a write whose content the server does not have: it was passed on, or its outcome is unknown. */
function findWrittenPatients(
  { location, requestBody, status }: AuditedRequest,
  interaction: WriteInteraction,
  carried: readonly string[],
  baseUrl: string,
): readonly string[] {
  const { type } = interaction
  const id = 'id' in interaction ? interaction.id : location && parseReference(location, baseUrl)?.id
  const own = type === 'Patient' && id !== undefined ? [id] : []
  switch (interaction.kind) {
    case 'create':
    case 'update':
    case 'update-conditional': {
      // With If-None-Exist, the sent resource may not have been written.
      if (interaction.kind === 'create' && status === 200)
        return carried.length > 0 ? carried : findPatientsAt(location ?? '', baseUrl)
      const isNamed = type !== 'Patient' || own.length > 0
      const written = carried.length > 0 ? carried : findSentPatients(requestBody, id, baseUrl)
      return [...carried, ...own, ...written, ...(isNamed || carried.length > 0 ? [] : [OTHERS])]
    }
    default: {
      const known = [...carried, ...own]
      return known.length > 0 || !isOfPatients(type) ? known : [OTHERS]
    }
  }
}
