import { readFileSync } from 'node:fs'
import type { SearchParameter, SearchParameterType } from './r4.ts'

/** What `scripts/compile-r4.ts` writes. */
interface Definitions {
  readonly resources: readonly string[]
  readonly structures: Readonly<Record<string, StructureText>>
  readonly codes: Readonly<Record<string, readonly (readonly [system: string, ...codes: string[]])[]>>
  readonly search: Readonly<
    Record<string, readonly (readonly [string, SearchParameterType, string, (readonly string[])?])[]>
  >
  readonly patientCompartment: Readonly<Record<string, readonly string[]>>
}

/** A type or backbone element. An element reads `min max types #binding`: `0 1 code #administrative-gender`. */
export interface StructureText {
  readonly base?: string
  readonly elements: Readonly<Record<string, string>>
}

export const definitions: Definitions = JSON.parse(
  readFileSync(new URL('./definitions/r4.json', import.meta.url), 'utf8'),
)

/** The 146 resource types of R4, in alphabetical order. */
export const resourceTypes: readonly string[] = definitions.resources

const known: ReadonlySet<string> = new Set(resourceTypes)

export function isResourceType(text: string): boolean {
  return known.has(text)
}

type Parameters = ReadonlyMap<string, SearchParameter>

const parametersByType = new Map<string, Parameters>()
const listsByType = new Map<string, readonly SearchParameter[]>()

/** Every search parameter of a type that can be searched by, those of all types (`_id`, …) included. */
export function listSearchParameters(type: string): readonly SearchParameter[] {
  const found = listsByType.get(type)
  if (found !== undefined) return found
  const listed = [...parametersOf(type).values()]
  if (known.has(type)) listsByType.set(type, listed)
  return listed
}

export function findSearchParameter(type: string, code: string): SearchParameter | undefined {
  return parametersOf(type).get(code)
}

function parametersOf(type: string): Parameters {
  const found = parametersByType.get(type)
  if (found !== undefined) return found
  if (!known.has(type)) return new Map()
  const read = readParameters(type)
  parametersByType.set(type, read)
  return read
}

function readParameters(type: string): Parameters {
  const rows = [...(definitions.search.Resource ?? []), ...(definitions.search[type] ?? [])]
  return new Map(
    rows.map(([code, kind, expression, target]) => [
      code,
      { code, type: kind, expression, ...(target === undefined ? {} : { target }) },
    ]),
  )
}
