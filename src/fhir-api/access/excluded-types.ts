import type { Interaction } from '../../fhir/index.ts'

/** The excluded type that an interaction names: its own, one of `_type`, or one that it includes. */
export function findExcludedType(
  interaction: Interaction,
  excluded: ReadonlySet<string>,
): string | undefined {
  if ('type' in interaction && interaction.type !== undefined && excluded.has(interaction.type))
    return interaction.type
  if (!('params' in interaction)) return undefined
  return interaction.params
    .filter(([name]) => name === '_type' || /^_(?:rev)?include(?::|$)/.test(name))
    .flatMap(([, value]) => value.split(/[,:]/))
    .find(word => excluded.has(word))
}
