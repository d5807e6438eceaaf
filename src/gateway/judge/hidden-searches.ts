import type { Access } from '../../consent/index.ts'
import { isRecord } from '../../fhir/index.ts'

const CONDITIONAL = /^([A-Z][A-Za-z]+)\?/

/**
 * Whether content that is written asks the upstream to search for it (`Practitioner?identifier=…`, R4
 * http.html#trules) where the caller may not search everything: what it finds, or that it finds nothing, would be told.
 */
export function hidesSearch(content: unknown, access: Access): boolean {
  if (Array.isArray(content)) return content.some(it => hidesSearch(it, access))
  if (!isRecord(content)) return false
  return Object.entries(content).some(([name, value]) => {
    const type = name === 'reference' && typeof value === 'string' ? CONDITIONAL.exec(value)?.[1] : undefined
    return type === undefined ? hidesSearch(value, access) : access.reach(type, 's') !== 'everything'
  })
}
