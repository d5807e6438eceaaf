import { findSearchParameter } from './definitions.ts'
import { fail } from './failure.ts'
import type { Params } from './interaction.ts'
import { LAST_N_SHOWN } from './limits.ts'
import { isRecord, type Resource } from './resource.ts'
import { indexParameter } from './search/index-entries.ts'
import type { BadSearch } from './search/parse-query.ts'

/** The parameters of `Observation/$lastn`. */
export interface LastN {
  /** How many Observations of each code. */
  readonly max: number
  /** The search parameters that choose the Observations. */
  readonly criteria: Params
}

const FORMATS: ReadonlySet<string> = new Set(['_format', '_pretty'])
const RESULT = /^_(?:sort|count|summary|elements|total|contained|(?:rev)?include)(?::|$)/

export function parseLastN(params: Params): LastN | BadSearch {
  const given = params.filter(([name]) => name === 'max').map(([, value]) => value)
  const [max = '1', another] = given
  if (another !== undefined || !/^\d{1,4}$/.test(max) || Number(max) < 1 || Number(max) > LAST_N_SHOWN)
    return createBadSearch('invalid', `Cannot read max: expected one number from 1 to ${LAST_N_SHOWN}`)
  const unknown = params.find(([name]) => RESULT.test(name))
  if (unknown) return createBadSearch('not-supported', `Cannot use ${unknown[0]} with $lastn`)
  const criteria = params.filter(([name]) => name !== 'max' && !FORMATS.has(name))
  return { max: Number(max), criteria }
}

/**
 * The most recent Observations of each code, newest first (R4 observation-operation-lastn.html). Observations that
 * share a coding have the same code; those without a coding are compared by their text.
 */
export function selectLastN<T>(
  observations: readonly T[],
  resourceOf: (observation: T) => Resource,
  max: number,
  baseUrl: string,
): readonly T[] {
  const dated = observations.map(it => ({ it, at: findTime(resourceOf(it), baseUrl) }))
  dated.sort((a, b) => b.at - a.at)
  const groups = new Map<string, { readonly members: T[] }>()
  for (const { it } of dated) {
    const keys = listKeys(resourceOf(it))
    const known = keys.map(key => groups.get(key)).find(group => group !== undefined)
    const group = known ?? { members: [] }
    for (const key of keys) if (!groups.has(key)) groups.set(key, group)
    if (group.members.length < max) group.members.push(it)
  }
  return [...new Set(groups.values())].flatMap(group => group.members)
}

function findTime(observation: Resource, baseUrl: string): number {
  const date = findSearchParameter('Observation', 'date')
  const times = date
    ? indexParameter(observation, date, baseUrl).flatMap(entry => (entry.kind === 'date' ? [entry.low] : []))
    : []
  return Math.max(Number.NEGATIVE_INFINITY, ...times)
}

function listKeys({ code }: Resource): readonly string[] {
  if (!isRecord(code)) return ['']
  const codings = Array.isArray(code.coding) ? code.coding.filter(isRecord) : []
  if (codings.length > 0) return codings.map(({ system, code: value }) => JSON.stringify([system, value]))
  return [String(code.text ?? '')]
}

function createBadSearch(code: BadSearch['code'], text: string): BadSearch {
  return fail({ problem: 'bad-search', code, text })
}
