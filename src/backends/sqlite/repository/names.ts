import { findSearchParameter, listSearchParameters, resourceTypes } from '../../../fhir/index.ts'
import type { Database } from './database.ts'

/** The numbers of resource types and of their search parameters in `fhir.db`. */
export interface Names {
  typeId(type: string): number
  typeOf(tid: number): string
  parameterId(type: string, code: string): number
}

/**
 * The words of names without that by which a resource is sorted (`findOtherWords`): an index of its own, beside those of
 * search parameters.
 */
export const OTHER_WORDS = 'name-other-words'

/** Whether resources of a type are searched by `name` and sorted by `family`. */
export function hasFamilyName(type: string): boolean {
  return ['name', 'family'].every(code => findSearchParameter(type, code)?.type === 'string')
}

/** Reads the numbers, and assigns one to each type and parameter without one. */
export function openNames(database: Database): Names {
  const numbers = readNumbers(database)
  const missing = listNames().filter(([type, code]) => !numbers.get(type)?.has(code))
  if (missing.length > 0) {
    addNumbers(database, missing)
    return openNames(database)
  }
  const types = new Map([...numbers].map(([type, codes]) => [codes.get('') ?? 0, type]))
  const findId = (type: string, code: string) => numbers.get(type)?.get(code) ?? failUnknown(type, code)
  return {
    typeId: type => findId(type, ''),
    typeOf: tid => types.get(tid) ?? failUnknown(String(tid), ''),
    parameterId: findId,
  }
}

function readNumbers(database: Database): Map<string, Map<string, number>> {
  const numbers = new Map<string, Map<string, number>>()
  for (const [nid, type, code] of database.rows('SELECT nid, type, code FROM name', [])) {
    const codes = numbers.get(String(type)) ?? new Map<string, number>()
    numbers.set(String(type), codes.set(String(code), Number(nid)))
  }
  return numbers
}

function listNames(): (readonly [type: string, code: string])[] {
  return [...resourceTypes].flatMap(type => [
    [type, ''] as const,
    ...listSearchParameters(type).map(({ code }) => [type, code] as const),
    ...(hasFamilyName(type) ? [[type, OTHER_WORDS] as const] : []),
  ])
}

function addNumbers(database: Database, names: readonly (readonly [string, string])[]): void {
  const insert = database.prepare('INSERT OR IGNORE INTO name (type, code) VALUES (?, ?)')
  database.transaction(() => {
    for (const [type, code] of names) insert.run(type, code)
  })
}

function failUnknown(type: string, code: string): never {
  throw new Error(`Cannot number ${type} ${code}: it is not in the R4 definitions`)
}
