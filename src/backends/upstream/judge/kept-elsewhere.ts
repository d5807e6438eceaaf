import type { Interaction } from '../../../fhir/index.ts'

/** Contract 5.8: what is never taken from an upstream. */
export const KEPT_ELSEWHERE: ReadonlySet<string> = new Set(['AuditEvent'])

/** Whether an interaction names something that is kept elsewhere, itself or by what it brings along. */
export function isKeptElsewhere(interaction: Interaction): boolean {
  if ('type' in interaction && interaction.type !== undefined && KEPT_ELSEWHERE.has(interaction.type))
    return true
  return (
    'params' in interaction &&
    interaction.params.some(([name, value]) => isChoice(name) && namesOne(value.split(/[,:]/)))
  )
}

function isChoice(name: string): boolean {
  return name === '_type' || /^_(?:rev)?include(?::|$)/.test(name)
}

function namesOne(words: readonly string[]): boolean {
  return words.some(word => KEPT_ELSEWHERE.has(word))
}
