import type { StructureSource } from './structures.ts'

interface Concept {
  readonly code: string
  readonly concept?: readonly Concept[]
}

interface CodeSystemSource {
  readonly url: string
  readonly content?: string
  readonly concept?: readonly Concept[]
}

interface Inclusion {
  readonly system?: string
  readonly concept?: readonly Concept[]
  readonly filter?: readonly unknown[]
  readonly valueSet?: readonly string[]
}

interface ValueSetSource {
  readonly url: string
  readonly compose?: { readonly include: readonly Inclusion[]; readonly exclude?: readonly Inclusion[] }
}

export interface Terminology {
  readonly codeSystems: ReadonlyMap<string, CodeSystemSource>
  readonly valueSets: ReadonlyMap<string, ValueSetSource>
}

/** The codes of each system: `[[system, code, code, …], …]`. */
export type CompiledCodes = readonly (readonly string[])[]

/** Value sets that an element must take its code from. */
export function requiredBindings(structures: readonly StructureSource[]): string[] {
  const urls = structures
    .flatMap(it => it.snapshot.element)
    .filter(it => it.binding?.strength === 'required')
    .map(it => (it.binding?.valueSet ?? '').replace(/\|.*$/, ''))
  return [...new Set(urls)].toSorted()
}

/** Undefined where the codes are not listed in the definitions (media types, currencies, UCUM) or not as a list. */
export function compileCodes(url: string, terminology: Terminology): CompiledCodes | undefined {
  const compose = terminology.valueSets.get(url)?.compose
  if (compose === undefined || compose.exclude !== undefined) return undefined
  const groups = compose.include.map(it => codesOf(it, terminology))
  return groups.every(it => it !== undefined) ? groups.flat() : undefined
}

function codesOf(inclusion: Inclusion, terminology: Terminology): CompiledCodes | undefined {
  if (inclusion.filter !== undefined) return undefined
  if (inclusion.valueSet !== undefined) return codesOfValueSets(inclusion, terminology)
  if (inclusion.system === undefined) return undefined
  if (inclusion.concept !== undefined) return [[inclusion.system, ...inclusion.concept.map(it => it.code)]]
  const system = terminology.codeSystems.get(inclusion.system)
  if (system?.content !== 'complete' || system.concept === undefined) return undefined
  return [[inclusion.system, ...flatten(system.concept)]]
}

function codesOfValueSets(inclusion: Inclusion, terminology: Terminology): CompiledCodes | undefined {
  if (inclusion.system !== undefined || inclusion.valueSet?.length !== 1) return undefined
  return compileCodes(inclusion.valueSet[0]?.replace(/\|.*$/, '') ?? '', terminology)
}

function flatten(concepts: readonly Concept[]): string[] {
  return concepts.flatMap(it => [it.code, ...flatten(it.concept ?? [])])
}
