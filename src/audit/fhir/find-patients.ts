import { type Interaction, isRecord, type Misunderstood } from '../../fhir/index.ts'
import type { Grant } from '../../smart/index.ts'
import { OTHERS } from '../record.ts'
import type { AuditedRequest } from './audited-request.ts'
import { findPatientsAt, findPatientsIn, findPatientsInText, type PatientLookup } from './patients-in.ts'

const PATIENT_PARAMETER = /^(?:patient|subject)(?::Patient)?(?:\._id)?$/
const PATIENT_VALUE = /^(?:(?:.*\/)?Patient\/)?([A-Za-z0-9.-]{1,64})$/

/** The patients whom a request names, whatever came of it; `OTHERS` where it names resources whose patients it does not. */
function findNamedPatients(interaction: Interaction | Misunderstood): readonly string[] {
  if ('compartment' in interaction) return [interaction.id, ...inParams(interaction)]
  if ('id' in interaction && 'type' in interaction && interaction.type === 'Patient')
    return interaction.id === undefined ? [] : [interaction.id]
  return inParams(interaction)
}

function inParams(interaction: Interaction | Misunderstood): readonly string[] {
  if (!('params' in interaction)) return []
  const ofPatients = 'type' in interaction && interaction.type === 'Patient'
  return interaction.params.flatMap(([name, value]) => {
    const values = value.split(',')
    if (name === '_id' && !ofPatients) return values.length > 1 ? [OTHERS] : []
    if (name !== '_id' && !PATIENT_PARAMETER.test(name)) return []
    return values.flatMap(it => PATIENT_VALUE.exec(it)?.[1] ?? [])
  })
}

/** How many patients an event names; of more it says that there are others. */
const MOST = 100

/**
 * The patients whose data an exchange carried or changed: an event is filed under these, never under whom the token was
 * launched for. A request that came to nothing is filed under the token's own patient, where it asked for that one.
 */
export function findPatients(exchange: AuditedRequest, fhirBaseUrl: string): readonly string[] {
  const { grant, by, interaction, refusal, status } = exchange
  if (by === 'public') return []
  const named = findNamedPatients(interaction)
  const only = grant && by !== 'fhirUser' ? onlyPatientOf(grant) : undefined
  // The request line would tell who may read the trail of this patient whom else the app asked for.
  if (only !== undefined) return named.every(it => it === only) ? [only] : [only, OTHERS]
  const isDone = refusal === undefined && status < 400
  const touched = isDone ? touchedBy(exchange, { fhirBaseUrl, kept: exchange.kept }) : []
  if (touched.length === 0)
    return named.length > 0 && named.every(it => it === grant?.patient) ? named.slice(0, 1) : []
  return limitPatients(named.every(it => touched.includes(it)) ? touched : [...touched, OTHERS])
}

/** Each once, not too many, and `OTHERS` last. */
export function limitPatients(patients: readonly string[]): readonly string[] {
  const all = new Set(patients)
  const hasOthers = all.delete(OTHERS)
  const list = [...all]
  return hasOthers || list.length > MOST ? [...list.slice(0, MOST), OTHERS] : list
}

/** A token with only `patient/` scopes reaches no data of another patient (PATIENT-1). */
function onlyPatientOf({ patient, scopes }: Grant): string | undefined {
  return scopes.every(it => it.kind === 'plain' || it.context === 'patient') ? patient : undefined
}

function touchedBy(exchange: AuditedRequest, ground: PatientLookup): readonly string[] {
  const { interaction, body, resource, status } = exchange
  const isEmpty = body === undefined && resource === undefined
  const carried = body === undefined ? findPatientsIn(resource, ground) : findPatientsInText(body, ground)
  switch (interaction.kind) {
    case 'create':
    case 'update':
    case 'update-conditional':
      // With If-None-Exist what was sent may not have been written.
      return interaction.kind === 'create' && status !== 201
        ? [...carried, ...placesOf(exchange, ground, carried.length > 0)]
        : [...carried, ...sentBy(exchange, ground), ...placesOf(exchange, ground, true)]
    case 'patch':
    case 'patch-conditional':
      return [...carried, ...placesOf(exchange, ground, carried.length > 0)]
    case 'delete':
    case 'delete-conditional':
      return placesOf(exchange, ground, false)
    case 'read':
    case 'vread':
      return isEmpty ? findPatientsAt(`${interaction.type}/${interaction.id}`, ground) : carried
    case 'misunderstood':
    case 'bundle':
      return carried
    default:
      return isEmpty ? [OTHERS] : carried
  }
}

function sentBy({ sent, interaction }: AuditedRequest, ground: PatientLookup): readonly string[] {
  const id = 'id' in interaction ? { id: interaction.id } : {}
  return isRecord(sent) ? findPatientsIn({ ...sent, ...id }, ground) : []
}

/** Whose the resource is that was written, and was before; where that is told already, it need not be found again. */
function placesOf(exchange: AuditedRequest, ground: PatientLookup, isTold: boolean): readonly string[] {
  const { interaction, location, before } = exchange
  const own =
    'id' in interaction && 'type' in interaction ? `${interaction.type}/${interaction.id}` : undefined
  const address = location ?? own
  const found = address === undefined ? [OTHERS] : findPatientsAt(address, ground)
  const earlier = findPatientsIn(before, ground)
  return isTold || before ? [...earlier, ...found.filter(it => it !== OTHERS)] : found
}
