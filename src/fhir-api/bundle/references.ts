import { type ExactResource, fail, isRecord, parseReference } from '../../fhir/index.ts'
import {
  type ConditionalReference,
  isUnrestricted,
  parseConditionalReference,
} from '../access/conditional-reference.ts'
import type { Context } from '../context.ts'
import { type Failure, isFailure } from '../failure.ts'
import { findMatch } from '../interactions/plan-write.ts'
import type { FhirRequest } from '../request.ts'

/** `Type/id` by `fullUrl` or by conditional reference. */
export type Targets = ReadonlyMap<string, string>

// Not references, even if they look like one: `Identifier.value` may be a `urn:uuid:`.
const NOT_REFERENCES = new Set(['value', 'system', 'id', 'div', 'data'])

/**
 * Replaces the references that are valid only inside the Bundle (`urn:uuid:…` and other `fullUrl`s) and conditional
 * references (`Patient?identifier=…`, R4 http.html#trules).
 */
export function linkReferences(content: ExactResource, targets: Targets, baseUrl: string): ExactResource {
  return targets.size === 0 ? content : (link(content, '') as ExactResource)

  function link(value: unknown, key: string): unknown {
    if (typeof value === 'string') return linkText(value, key)
    if (Array.isArray(value)) return value.map(item => link(item, key))
    if (!isRecord(value)) return value
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, link(item, name)]))
  }

  function linkText(text: string, key: string): string {
    if (key === 'reference') return targets.get(text) ?? targets.get(toUrl(text) ?? '') ?? text
    return text.startsWith('urn:') && !NOT_REFERENCES.has(key) ? (targets.get(text) ?? text) : text
  }

  /** `Patient/1` may refer to the entry whose `fullUrl` is that URL below the base. */
  function toUrl(reference: string): string | undefined {
    const local = parseReference(reference, baseUrl)
    return local && `${baseUrl}/${local.type}/${local.id}`
  }
}

/** Finds the targets of the conditional references in content. Each is a search within the caller's access. */
export async function resolveConditionalReferences(
  context: Context,
  request: FhirRequest,
  content: ExactResource,
): Promise<Targets | Failure> {
  const targets = new Map<string, string>()
  for (const reference of collectReferences(content)) {
    const conditional = parseConditionalReference(reference)
    if (!conditional || isLeftToBackend(context, request, conditional)) continue
    const { type, params } = conditional
    const found = await findMatch(context, request, type, params)
    if (!found) return fail({ problem: 'no-match', type })
    if (isFailure(found)) return found
    targets.set(reference, `${type}/${found.id}`)
  }
  return targets
}

function collectReferences(content: unknown): ReadonlySet<string> {
  const references = new Set<string>()
  const collect = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(collect)
    else if (isRecord(value))
      for (const [name, item] of Object.entries(value)) {
        if (name === 'reference' && typeof item === 'string') references.add(item)
        else collect(item)
      }
  }
  collect(content)
  return references
}

/** An upstream may resolve unrestricted references, except those to a Patient, whose target has to be checked. */
function isLeftToBackend(
  { session, baseUrl }: Context,
  { access }: FhirRequest,
  reference: ConditionalReference,
): boolean {
  return !session.local && reference.type !== 'Patient' && isUnrestricted(reference, access, baseUrl)
}
