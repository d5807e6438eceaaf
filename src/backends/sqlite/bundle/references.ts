import { fail, isResourceType, parseParams, parseReference } from '../../../fhir/index.ts'
import type { Call, Context } from '../call.ts'
import { matchOf } from '../interactions/match.ts'
import { isProblem, type Problem } from '../problem.ts'
import type { Step } from './identify.ts'

// Texts that are no addresses even where they look like one: `Identifier.value` may be a `urn:uuid:`.
const NOT_ADDRESSES = new Set(['value', 'system', 'id', 'div', 'data'])

const CONDITIONAL = /^([A-Z][A-Za-z]+)\?(.+)$/

// No valid resource is deeper; a deeper one need not be understood to be refused.
const MAX_DEPTH = 100

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
    const body = step.answer
      ? step.call.body
      : link({ context, call: step.call, identities }, step.call.body, '', 0)
    if (body instanceof Unlinked) return fail({ problem: 'entry-failed', entry: at, cause: body.cause })
    linked.push({ ...step, call: { ...step.call, body } })
  }
  return linked
}

interface Place {
  readonly context: Context
  readonly call: Call
  /** `fullUrl` of an entry, and `Type/id` of what it writes. */
  readonly identities: ReadonlyMap<string, string>
}

/** A part of a body that cannot be linked; apart from every value that JSON can have. */
class Unlinked {
  readonly cause: Problem
  constructor(cause: Problem) {
    this.cause = cause
  }
}

function link(place: Place, value: unknown, key: string, depth: number): unknown {
  if (typeof value === 'string') return linkText(place, value, key)
  if (typeof value !== 'object' || value === null) return value
  if (depth > MAX_DEPTH)
    return new Unlinked(
      fail({
        problem: 'malformed-body',
        text: `Cannot read resource: it is nested more than ${MAX_DEPTH} levels deep`,
      }),
    )
  return Array.isArray(value) ? linkItems(place, value, key, depth) : linkMembers(place, value, depth)
}

function linkItems(place: Place, items: readonly unknown[], key: string, depth: number): unknown {
  const linked = items.map(item => link(place, item, key, depth + 1))
  return linked.find(item => item instanceof Unlinked) ?? linked
}

function linkMembers(place: Place, members: object, depth: number): unknown {
  const linked = Object.entries(members).map(
    ([name, value]) => [name, link(place, value, name, depth + 1)] as const,
  )
  return linked.find(([, value]) => value instanceof Unlinked)?.[1] ?? Object.fromEntries(linked)
}

function linkText(place: Place, text: string, key: string): string | Unlinked {
  if (key === 'reference') return linkReference(place, text)
  if (!text.startsWith('urn:') || NOT_ADDRESSES.has(key)) return text
  return place.identities.get(text) ?? text
}

function linkReference({ context, call, identities }: Place, text: string): string | Unlinked {
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
  return new Unlinked(match ?? fail({ problem: 'no-match', type }))
}
