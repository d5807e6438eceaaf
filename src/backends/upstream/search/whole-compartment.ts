import { type AccessFilter, type Constraint, hasCompartment, type Panel } from '../../../smart/index.ts'
import type { Call, Context } from '../call.ts'
import { expandPanels } from '../membership/expand-panels.ts'

/**
 * Whose compartment is looked through for all of one patient's. A caller of one patient's data is shown what is in both
 * compartments, so the own is looked through: how much there is of others takes no time. Undefined for a patient off the
 * panel.
 */
export async function chooseCompartment(
  context: Context,
  call: Call,
  types: readonly string[],
  compartment: string,
): Promise<string | undefined> {
  const limits = types.filter(hasCompartment).flatMap(type => limitsOf(call.access.filterFor(type, 's')))
  const panels = new Set<Panel>()
  const patients = new Set<string | undefined>()
  for (const { panel, patient } of limits)
    if (panel) panels.add(panel)
    else patients.add(patient)
  if (patients.size === 0) {
    const filter = [...panels].map(panel => ({ panel }))
    const spelled = await expandPanels(context, call, '*', filter, [compartment])
    return spelled.length === 0 ? undefined : compartment
  }
  // One of them may be undefined: everybody's data of a type.
  const [single] = panels.size === 0 && patients.size === 1 ? patients : []
  return single ?? compartment
}

function limitsOf(filter: AccessFilter): readonly Constraint[] {
  return filter === 'everything' ? [{}] : filter
}
