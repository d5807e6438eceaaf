import { isRecord } from '../record.ts'
import { parseReference } from '../reference.ts'
import type { ExtractedValue, ReferenceEntry } from './entry.ts'

/** `#contained` points to nothing that could be found: it has no entry. */
export function indexReference(found: ExtractedValue): readonly ReferenceEntry[] {
  const { value } = found
  if (found.type === 'canonical' || found.type === 'uri') {
    return typeof value === 'string' ? indexAddress(found, value) : []
  }
  if (!isRecord(value)) return []
  if (found.type === 'Resource') return indexContained(found, value)
  if (found.type !== 'Reference') return []
  const identified = indexIdentifier(found, value.identifier)
  return typeof value.reference === 'string'
    ? [...indexAddress(found, value.reference), ...identified]
    : identified
}

function indexAddress(found: ExtractedValue, address: string): readonly ReferenceEntry[] {
  if (address.startsWith('#') || address === '') return []
  const local = parseReference(address, found.baseUrl)
  if (local !== undefined) return [entry(found, { type: local.type, id: local.id })]
  const [canonical, version] = address.split('|')
  const whole = entry(found, { url: address })
  return version === undefined ? [whole] : [whole, entry(found, { url: canonical })]
}

/** `Bundle.entry[0].resource`: the resource itself stands where a reference would. */
function indexContained(
  found: ExtractedValue,
  resource: Readonly<Record<string, unknown>>,
): readonly ReferenceEntry[] {
  const { resourceType, id } = resource
  return typeof resourceType === 'string' && typeof id === 'string'
    ? [entry(found, { type: resourceType, id })]
    : []
}

function indexIdentifier(found: ExtractedValue, identifier: unknown): readonly ReferenceEntry[] {
  if (!isRecord(identifier) || typeof identifier.value !== 'string') return []
  const system = typeof identifier.system === 'string' ? identifier.system : undefined
  return [entry(found, { identifierSystem: system, identifierValue: identifier.value })]
}

type Parts = { readonly [K in Exclude<keyof ReferenceEntry, 'kind' | 'parameter'>]?: string | undefined }

function entry(found: ExtractedValue, parts: Parts): ReferenceEntry {
  return {
    kind: 'reference',
    parameter: found.parameter,
    type: parts.type,
    id: parts.id,
    url: parts.url,
    identifierSystem: parts.identifierSystem,
    identifierValue: parts.identifierValue,
  }
}
