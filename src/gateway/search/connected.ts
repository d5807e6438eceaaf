import { type IncludeRule, indexEntries, type Resource } from '../../fhir/index.ts'
import type { Released } from './fetch-page.ts'

/**
 * The included resources that the rules bring along from what is shown. The upstream may have come to others through
 * what the caller does not reach, and that it did is not to be told.
 */
export function connected(
  matches: readonly Released[],
  candidates: readonly Released[],
  rules: readonly IncludeRule[],
  baseUrl: string,
): readonly Released[] {
  const included: Released[] = []
  let left = distinct(matches, candidates)
  let from = matches
  let active = rules
  while (from.length > 0 && left.length > 0 && active.length > 0) {
    const fresh = broughtBy(active, from, left, baseUrl)
    for (const it of fresh) included.push(it)
    const taken = new Set(fresh)
    left = left.filter(it => !taken.has(it))
    from = fresh
    active = rules.filter(rule => rule.iterate)
  }
  return included
}

/** Each once, though several pages bring it, and not what is a match. */
function distinct(matches: readonly Released[], candidates: readonly Released[]): readonly Released[] {
  const shown = new Set(matches.map(it => addressOf(it.resource)))
  return candidates.filter(({ resource }) => {
    const address = addressOf(resource)
    return !shown.has(address) && shown.add(address)
  })
}

function broughtBy(
  rules: readonly IncludeRule[],
  from: readonly Released[],
  candidates: readonly Released[],
  baseUrl: string,
): readonly Released[] {
  const shown = new Set(from.map(it => addressOf(it.resource)))
  const along = rules.filter(rule => rule.direction === 'forward')
  const against = rules.filter(rule => rule.direction === 'reverse')
  const pointedTo = new Set(from.flatMap(it => referencesBy(along, it.resource, baseUrl)))
  return candidates.filter(
    ({ resource }) =>
      pointedTo.has(addressOf(resource)) ||
      referencesBy(against, resource, baseUrl).some(address => shown.has(address)),
  )
}

/** What a resource refers to by the parameters of the rules. */
function referencesBy(rules: readonly IncludeRule[], resource: Resource, baseUrl: string): readonly string[] {
  const own = rules.filter(rule => rule.source === resource.resourceType)
  if (own.length === 0) return []
  return indexEntries(resource, baseUrl).flatMap(entry =>
    entry.kind === 'reference' && own.some(rule => follows(rule, entry.parameter, entry.type))
      ? [`${entry.type}/${entry.id}`]
      : [],
  )
}

function follows({ parameters, target }: IncludeRule, parameter: string, type: string | undefined): boolean {
  return type !== undefined && parameters.includes(parameter) && (target === undefined || target === type)
}

function addressOf({ resourceType, id }: Resource): string {
  return `${resourceType}/${id}`
}
