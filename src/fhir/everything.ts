import { toPlain } from './exact-json.ts'
import { fail } from './failure.ts'
import type { Params } from './interaction.ts'
import { type FhirProblem, isProblem } from './problem.ts'
import { isRecord } from './record.ts'
import { careRangeIn } from './search/care-dates.ts'

const VALUE = /^value[A-Z]/
const TAKEN = {
  Patient: ['start', 'end', '_since', '_type', '_count'],
  Encounter: ['_type', '_count'],
} as const satisfies Readonly<Record<string, readonly string[]>>

/** The types that have `$everything`. */
export type EverythingType = keyof typeof TAKEN

/** What is wrong with the parameters of `$everything`: one that it does not take is refused, wherever it was given. */
export function findEverythingProblem(type: EverythingType, params: Params): FhirProblem | undefined {
  const taken: readonly string[] = TAKEN[type]
  const unknown = params.find(([name]) => !taken.includes(name) && name !== '_format' && name !== '_pretty')
  if (unknown)
    return fail({
      problem: 'bad-search',
      code: 'not-supported',
      text: `Cannot use ${unknown[0]} with $everything: on ${type} it takes ${taken.join(', ')}`,
    })
  const range = careRangeIn(params)
  return range && isProblem(range) ? range : undefined
}

/** The parameters of a Parameters resource, as an address would say them; none where there is no body. */
export function readPostedParams(body: unknown): Params | FhirProblem {
  if (body === undefined) return []
  const posted = toPlain(body)
  const { resourceType, parameter = [] } = isRecord(posted) ? posted : {}
  if (resourceType !== 'Parameters' || !Array.isArray(parameter)) return unreadable
  const params: (readonly [string, string])[] = []
  for (const it of parameter) {
    const param = paramOf(it)
    if (!param) return unreadable
    params.push(param)
  }
  return params
}

function paramOf(parameter: unknown): readonly [string, string] | undefined {
  if (!isRecord(parameter)) return undefined
  const { name, ...rest } = parameter
  const [member, ...others] = Object.entries(rest)
  if (typeof name !== 'string' || !member || others.length > 0) return undefined
  const [type, value] = member
  const isPlain = typeof value === 'string' || typeof value === 'number'
  return VALUE.test(type) && isPlain ? [name, String(value)] : undefined
}

const unreadable: FhirProblem = fail({
  problem: 'malformed-body',
  text: 'Cannot read body: expected Parameters with a value each',
})
