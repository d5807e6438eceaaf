import { definitions } from '../definitions.ts'
import { isRecord } from '../resource.ts'
import type { ExtractedValue, TokenEntry } from './entry.ts'
import { normalise } from './normalise.ts'

export function indexToken(found: ExtractedValue): readonly TokenEntry[] {
  const { value } = found
  return isRecord(value) ? indexElement(found, value) : indexPrimitive(found, value)
}

function indexPrimitive(found: ExtractedValue, value: unknown): readonly TokenEntry[] {
  switch (found.type) {
    case 'boolean':
      return typeof value === 'boolean' ? [createEntry(found, undefined, String(value), undefined)] : []
    case 'code':
    case 'id':
    case 'string':
    case 'uri':
      return typeof value === 'string'
        ? [createEntry(found, findSystem(found.binding, value), value, undefined)]
        : []
    default:
      return []
  }
}

function indexElement(
  found: ExtractedValue,
  value: Readonly<Record<string, unknown>>,
): readonly TokenEntry[] {
  switch (found.type) {
    case 'CodeableConcept':
      return indexConcept(found, value)
    case 'Coding':
      return createEntries(found, value.system, value.code, value.display)
    case 'Identifier':
      return createEntries(
        found,
        value.system,
        value.value,
        isRecord(value.type) ? value.type.text : undefined,
      )
    case 'ContactPoint':
      return createEntries(found, value.system, value.value, undefined)
    default:
      return []
  }
}

function indexConcept(
  found: ExtractedValue,
  concept: Readonly<Record<string, unknown>>,
): readonly TokenEntry[] {
  const codings = Array.isArray(concept.coding) ? concept.coding.filter(isRecord) : []
  return [
    ...codings.flatMap(it => createEntries(found, it.system, it.code, it.display)),
    ...createEntries(found, undefined, undefined, concept.text),
  ]
}

function createEntries(
  found: ExtractedValue,
  system: unknown,
  code: unknown,
  text: unknown,
): readonly TokenEntry[] {
  const [space, word, words] = [toText(system), toText(code), toText(text)]
  if (space === undefined && word === undefined && words === undefined) return []
  return [createEntry(found, space, word, words === undefined ? undefined : normalise(words))]
}

function createEntry(
  found: ExtractedValue,
  system: string | undefined,
  code: string | undefined,
  text: string | undefined,
): TokenEntry {
  return { kind: 'token', parameter: found.parameter, system, code, text }
}

function toText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** A bare code has the system of its required value set: `gender=http://…/administrative-gender|male`. */
function findSystem(binding: string | undefined, code: string): string | undefined {
  if (binding === undefined) return undefined
  return definitions.codes[binding]?.find(group => group.indexOf(code, 1) > 0)?.[0]
}
