import { readFileSync } from 'node:fs'
import type { SearchParameterSource } from './search-parameters.ts'

/** See scripts/pack-us-core.ts. */
export interface UsCore {
  /** The resource type of each profile, by its URL. */
  readonly profiles: Readonly<Record<string, string>>
  readonly search: readonly SearchParameterSource[]
}

export function readUsCore(): UsCore {
  return JSON.parse(readFileSync(new URL('./us-core.json', import.meta.url), 'utf8'))
}

/**
 * What US Core selects of an extension, and what we select: the type of the value, and codes with their system, so that
 * `race=urn:oid:2.16.840.1.113883.6.238|2028-9` finds as much as `race=2028-9`.
 */
const VALUES: readonly (readonly [RegExp, string])[] = [
  [/\.value\.code$/, '.value.ofType(Coding)'],
  [/\.value\.coding\.code$/, '.value.ofType(CodeableConcept)'],
  [/\.value$/, '.value.ofType(dateTime)'],
]

/** The search parameters that R4 does not have. Most of US Core's repeat R4's. */
export function selectAdded(
  { search }: UsCore,
  r4: readonly SearchParameterSource[],
): readonly SearchParameterSource[] {
  const known = new Set(r4.flatMap(({ base = [], code }) => base.map(type => `${type}.${code}`)))
  return search
    .filter(({ base = [], code }) => !['Resource', ...base].some(type => known.has(`${type}.${code}`)))
    .map(it => ({ ...it, expression: selectValues(it.expression ?? '') }))
}

function selectValues(expression: string): string {
  const [published, selected] = VALUES.find(([ending]) => ending.test(expression)) ?? [/$/, '']
  return expression.replace(published, selected)
}

/** The URLs of the profiles of each type. */
export function groupProfiles({ profiles }: UsCore): Record<string, readonly string[]> {
  const byType = Map.groupBy(Object.entries(profiles), ([, type]) => type)
  return Object.fromEntries([...byType].toSorted().map(([type, of]) => [type, of.map(([url]) => url)]))
}
