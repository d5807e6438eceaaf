import type { Interaction, Misunderstood } from '../../fhir/index.ts'
import { OTHERS } from '../record.ts'

const PATIENT_PARAMETER = /^(?:patient|subject)(?::Patient)?(?:\._id)?$/
const PATIENT_VALUE = /^(?:(?:.*\/)?Patient\/)?([A-Za-z0-9.-]{1,64})$/

/** The patients whom a request names, whatever came of it; `OTHERS` where it names resources whose patients it does not. */
export function findNamedPatients(interaction: Interaction | Misunderstood): readonly string[] {
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
