import { isRecord, isResourceType, type Params, parseParams, parseSearch } from '../../../fhir/index.ts'
import type { Access } from '../../../smart/index.ts'
import { seesAll } from './sees-all.ts'

const CONDITIONAL = /^([A-Z][A-Za-z]+)\?(.+)$/

/** A reference that is a search for what it refers to. */
export interface Conditional {
  readonly type: string
  readonly params: Params
}

/** `Practitioner?identifier=…` (R4 http.html#trules); undefined for what is none, or cannot be read. */
export function conditionalOf(reference: string): Conditional | undefined {
  const [, type = '', query = ''] = CONDITIONAL.exec(reference) ?? []
  const params = isResourceType(type) ? parseParams(query) : undefined
  return params && { type, params }
}

/**
 * Whether a conditional reference can be left to the upstream: it may look everywhere among what the caller may search
 * everywhere, by what that tells of itself. A chain would look into the rest, and so may what R4 does not know.
 */
export function isOpen({ type, params }: Conditional, access: Access, baseUrl: string): boolean {
  const isOwn = ([name, value]: readonly [string, string]) =>
    !['error', 'chain', 'has'].includes(parseSearch(type, name, value, baseUrl).kind)
  return access.filterFor(type, 's') === 'everything' && params.every(isOwn)
}

/**
 * Whether content that is written asks the upstream to search where the caller may not: what it finds, or that it finds
 * nothing, would be told. Servers also take one with an address before it, or a slash within (`Patient/?name=…`): what
 * has a question mark and cannot be read is one.
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
    const conditional = conditionalOf(reference)
    return !conditional || !isOpen(conditional, access, baseUrl)
  }
}
