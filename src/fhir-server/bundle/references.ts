import { isResourceType, parseParams, parseReference } from '../../fhir/index.ts'
import type { Call, Context } from '../call.ts'
import { matchOf } from '../interactions/match.ts'
import { isProblem, type Problem } from '../problem.ts'
import type { Step } from './identify.ts'

// Texts that are no addresses even where they look like one: `Identifier.value` may be a `urn:uuid:`.
const NOT_ADDRESSES = new Set(['value', 'system', 'id', 'div', 'data'])

const CONDITIONAL = /^([A-Z][A-Za-z]+)\?(.+)$/

/**
 * Puts real references in the place of those that only hold inside the Bundle (`urn:uuid:…` and other `fullUrl`s)
 * and of conditional ones (`Patient?identifier=…`), before the resources are judged (R4 http.html#trules).
 */
export function linkReferences(context: Context, steps: readonly Step[]): readonly Step[] | Problem {
  const identities = new Map<string, string>()
  for (const { fullUrl, identity } of steps)
    if (fullUrl !== undefined && identity !== undefined) identities.set(fullUrl, identity)
  const linked: Step[] = []
  for (const [at, step] of steps.entries()) {
    const body = step.answer ? step.call.body : link(context, step.call, identities, step.call.body, '')
    if (body instanceof Unresolved) return { problem: 'entry-failed', entry: at, cause: body.cause }
    linked.push({ ...step, call: { ...step.call, body } })
  }
  return linked
}

class Unresolved {
  readonly cause: Problem
  constructor(cause: Problem) {
    this.cause = cause
  }
}

function link(
  context: Context,
  call: Call,
  identities: ReadonlyMap<string, string>,
  value: unknown,
  key: string,
): unknown {
  if (typeof value === 'string') return linkText(context, call, identities, value, key)
  if (typeof value !== 'object' || value === null) return value
  const entries = Array.isArray(value) ? value.entries() : Object.entries(value)
  const copy: [string, unknown][] = []
  for (const [name, item] of entries) {
    const linked = link(context, call, identities, item, Array.isArray(value) ? key : String(name))
    if (linked instanceof Unresolved) return linked
    copy.push([String(name), linked])
  }
  return Array.isArray(value) ? copy.map(([, item]) => item) : Object.fromEntries(copy)
}

function linkText(
  context: Context,
  call: Call,
  identities: ReadonlyMap<string, string>,
  text: string,
  key: string,
): string | Unresolved {
  if (key === 'reference') return linkReference(context, call, identities, text)
  if (!text.startsWith('urn:') || NOT_ADDRESSES.has(key)) return text
  return identities.get(text) ?? text
}

function linkReference(
  context: Context,
  call: Call,
  identities: ReadonlyMap<string, string>,
  text: string,
): string | Unresolved {
  const inside = identities.get(text)
  if (inside !== undefined) return inside
  // `Patient/1` of an entry whose fullUrl is that address below the base.
  const local = parseReference(text, context.baseUrl)
  const under = local && identities.get(`${context.baseUrl}/${local.type}/${local.id}`)
  if (under !== undefined) return under
  const [, type = '', query = ''] = CONDITIONAL.exec(text) ?? []
  if (!isResourceType(type)) return text
  const params = parseParams(query)
  const match = params && matchOf(context, call, type, params)
  if (match && !isProblem(match)) return `${type}/${match.id}`
  return new Unresolved(match ?? { problem: 'no-match', type })
}
