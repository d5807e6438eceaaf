import { type IncludeRule, indexResource, limits, type Resource } from '../../../fhir/index.ts'
import type { CheckedResource } from './fetch-page.ts'

/**
 * The included resources that the rules bring along from what is shown. The upstream may have come to others through
 * what the caller does not reach, and that it did is not to be told. Each resource is read for its references once.
 */
export function findConnected(
  matches: readonly CheckedResource[],
  candidates: readonly CheckedResource[],
  rules: readonly IncludeRule[],
  baseUrl: string,
): readonly CheckedResource[] {
  const left = new Map(distinct(matches, candidates).map(it => [addressOf(it.resource), it]))
  const along = rules.filter(rule => rule.direction === 'forward')
  const against = pointingTo(
    [...left.values()],
    rules.filter(rule => rule.direction === 'reverse'),
    baseUrl,
  )
  const included: CheckedResource[] = []
  let from = matches
  for (let round = 0; round < limits.INCLUDE_ROUNDS && from.length > 0 && left.size > 0; round++) {
    const isActive = ({ iterate }: IncludeRule) => round === 0 || iterate
    const fresh: CheckedResource[] = []
    for (const { resource } of from)
      for (const address of [
        ...referencesBy(along.filter(isActive), resource, baseUrl).map(it => it.target),
        ...(against.get(addressOf(resource)) ?? []).filter(it => isActive(it.rule)).map(it => it.address),
      ]) {
        const found = left.get(address)
        if (found && left.delete(address)) fresh.push(found)
      }
    for (const it of fresh) included.push(it)
    from = fresh
  }
  return included
}

/** Each once, though several pages bring it, and not what is a match. */
function distinct(
  matches: readonly CheckedResource[],
  candidates: readonly CheckedResource[],
): readonly CheckedResource[] {
  const shown = new Set(matches.map(it => addressOf(it.resource)))
  return candidates.filter(({ resource }) => {
    const address = addressOf(resource)
    return !shown.has(address) && shown.add(address)
  })
}

interface Pointing {
  readonly rule: IncludeRule
  /** Of the resource that has the reference. */
  readonly address: string
}

/** Which of the resources refer to an address by one of the rules. */
function pointingTo(
  resources: readonly CheckedResource[],
  rules: readonly IncludeRule[],
  baseUrl: string,
): ReadonlyMap<string, readonly Pointing[]> {
  const found = new Map<string, Pointing[]>()
  for (const { resource } of resources)
    for (const { rule, target } of referencesBy(rules, resource, baseUrl)) {
      const pointing = found.get(target) ?? []
      pointing.push({ rule, address: addressOf(resource) })
      found.set(target, pointing)
    }
  return found
}

/** What a resource refers to by the parameters of the rules. */
function referencesBy(rules: readonly IncludeRule[], resource: Resource, baseUrl: string) {
  const own = rules.filter(rule => rule.source === resource.resourceType)
  if (own.length === 0) return []
  return indexResource(resource, baseUrl).flatMap(entry => {
    if (entry.kind !== 'reference') return []
    const { parameter, type, id } = entry
    return own.filter(rule => follows(rule, parameter, type)).map(rule => ({ rule, target: `${type}/${id}` }))
  })
}

function follows({ parameters, target }: IncludeRule, parameter: string, type: string | undefined): boolean {
  return type !== undefined && parameters.includes(parameter) && (target === undefined || target === type)
}

function addressOf({ resourceType, id }: Resource): string {
  return `${resourceType}/${id}`
}
