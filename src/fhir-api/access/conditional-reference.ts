import { isRecord, isResourceType, type Params, parseParams, parseSearch } from '../../fhir/index.ts'
import type { Access } from '../../smart/index.ts'
import { seesAll } from './access-check.ts'

const CONDITIONAL = /^([A-Z][A-Za-z]+)\?(.+)$/

export interface ConditionalReference {
  readonly type: string
  readonly params: Params
}

/** `Practitioner?identifier=…` (R4 http.html#trules); undefined for any other reference, and for an invalid one. */
export function parseConditionalReference(reference: string): ConditionalReference | undefined {
  const [, type = '', query = ''] = CONDITIONAL.exec(reference) ?? []
  const params = isResourceType(type) ? parseParams(query) : undefined
  return params && { type, params }
}

/** Whether parameters depend on the type alone. A chain depends on other resources, and so may a parameter that R4 does not define. */
export function dependsOnTypeAlone(type: string, params: Params, baseUrl: string): boolean {
  return params.every(
    ([name, value]) => !['error', 'chain', 'has'].includes(parseSearch(type, name, value, baseUrl).kind),
  )
}

/** Whether an upstream server may resolve a conditional reference: the caller may search all that it depends on. */
export function isUnrestricted(
  { type, params }: ConditionalReference,
  access: Access,
  baseUrl: string,
): boolean {
  return access.filterFor(type, 's') === 'everything' && dependsOnTypeAlone(type, params, baseUrl)
}

/**
 * Whether new content makes the server search where the caller may not: the result would reveal stored data. Servers also
 * resolve references with a base URL, or with a slash before the question mark (`Patient/?name=…`), so that every
 * reference with a question mark counts as conditional.
 */
export function hidesSearch(content: unknown, access: Access, baseUrl: string): boolean {
  return !seesAll(access) && hides(content)

  function hides(value: unknown): boolean {
    if (Array.isArray(value)) return value.some(hides)
    if (!isRecord(value)) return false
    return Object.entries(value).some(([name, item]) =>
      name === 'reference' && typeof item === 'string' ? isHidden(item) : hides(item),
    )
  }

  function isHidden(reference: string): boolean {
    if (!reference.includes('?')) return false
    const conditional = parseConditionalReference(reference)
    return !conditional || !isUnrestricted(conditional, access, baseUrl)
  }
}
