import {
  findSearchParameter,
  type IncludeRule,
  indexResource,
  limits,
  listCompartmentParameters,
  type Params,
  type Resource,
} from '../../../fhir/index.ts'
import type { Access } from '../../../smart/index.ts'
import type { CheckedResource } from '../paging.ts'
import { hasAccess } from '../read/access.ts'

/**
 * The reverse includes for which the gateway searches itself: the upstream would return everything that refers to a match,
 * and might end before it comes to what the caller may see. Includes of included resources are left to the upstream.
 */
export function listOwnIncludes(
  rules: readonly IncludeRule[],
  types: readonly string[],
  access: Access,
): readonly IncludeRule[] {
  return rules.some(({ iterate }) => iterate) ? [] : rules.filter(isSearchedHere)

  function isSearchedHere({ direction, source, parameters, isOfStar }: IncludeRule): boolean {
    const filter = access.filterFor(source, 's')
    if (direction === 'forward' || isOfStar || filter === 'everything' || filter.length === 0) return false
    const isOfPatients =
      types.every(it => it === 'Patient') &&
      parameters.every(code => code === 'patient' || listCompartmentParameters(source).includes(code))
    return !isOfPatients || filter.some(({ query }) => query)
  }
}

/** The includes with targets that the caller may see, each limited to their types; a star is sent as it is. */
export function narrowIncludes(rules: readonly IncludeRule[], access: Access): Params {
  const star: Params = rules.some(rule => rule.isOfStar && hasAccess(access, rule.source, 's'))
    ? [['_revinclude', '*']]
    : []
  const named = rules.filter(rule => !rule.isOfStar)
  const params = named.flatMap(rule =>
    rule.parameters.flatMap(code =>
      rule.direction === 'forward' ? narrowForward(rule, code, access) : narrowReverse(rule, code, access),
    ),
  )
  return [...params, ...star]
}

/** Along a reference a resource is read (`r`). */
function narrowForward(rule: IncludeRule, code: string, access: Access): Params {
  const { source, target } = rule
  const possible = target === undefined ? findSearchParameter(source, code)?.target : [target]
  if (possible === undefined) return [[formatName(rule), `${source}:${code}`]]
  const visible = possible.filter(type => hasAccess(access, type, 'r'))
  if (target === undefined && visible.length === possible.length)
    return [[formatName(rule), `${source}:${code}`]]
  return visible.map(type => [formatName(rule), `${source}:${code}:${type}`] as const)
}

/** Against a reference it is searched (`s`). */
function narrowReverse(rule: IncludeRule, code: string, access: Access): Params {
  const { source, target } = rule
  if (!hasAccess(access, source, 's')) return []
  return [[formatName(rule), target === undefined ? `${source}:${code}` : `${source}:${code}:${target}`]]
}

function formatName({ direction, iterate }: IncludeRule): string {
  const name = direction === 'forward' ? '_include' : '_revinclude'
  return iterate ? `${name}:iterate` : name
}

/**
 * The candidates that the shown matches include by the rules. The upstream may have found others through resources that
 * the caller must not see, which would reveal their references. Each resource is indexed once.
 */
export function findIncludes(
  matches: readonly CheckedResource[],
  candidates: readonly CheckedResource[],
  rules: readonly IncludeRule[],
  baseUrl: string,
): readonly CheckedResource[] {
  if (candidates.length === 0) return candidates
  const left = new Map(dropDuplicates(matches, candidates).map(it => [formatKey(it.resource), it]))
  const forward = rules.filter(rule => rule.direction === 'forward')
  const reverse = indexReferrers(
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
      for (const key of [
        ...listReferences(forward.filter(isActive), resource, baseUrl).map(it => it.target),
        ...(reverse.get(formatKey(resource)) ?? []).filter(it => isActive(it.rule)).map(it => it.key),
      ]) {
        const found = left.get(key)
        if (found && left.delete(key)) fresh.push(found)
      }
    for (const it of fresh) included.push(it)
    from = fresh
  }
  return included
}

/** Each candidate once, without the matches. */
function dropDuplicates(
  matches: readonly CheckedResource[],
  candidates: readonly CheckedResource[],
): readonly CheckedResource[] {
  const shown = new Set(matches.map(it => formatKey(it.resource)))
  return candidates.filter(({ resource }) => {
    const key = formatKey(resource)
    return !shown.has(key) && shown.add(key)
  })
}

interface Referrer {
  readonly rule: IncludeRule
  /** `Type/id` of the resource with the reference. */
  readonly key: string
}

/** The resources with a reference by one of the rules, by the key of its target. */
function indexReferrers(
  resources: readonly CheckedResource[],
  rules: readonly IncludeRule[],
  baseUrl: string,
): ReadonlyMap<string, readonly Referrer[]> {
  const found = new Map<string, Referrer[]>()
  for (const { resource } of resources)
    for (const { rule, target } of listReferences(rules, resource, baseUrl)) {
      const referrers = found.get(target) ?? []
      referrers.push({ rule, key: formatKey(resource) })
      found.set(target, referrers)
    }
  return found
}

/** The references of a resource by the parameters of the rules. */
function listReferences(rules: readonly IncludeRule[], resource: Resource, baseUrl: string) {
  const own = rules.filter(rule => rule.source === resource.resourceType)
  if (own.length === 0) return []
  return indexResource(resource, baseUrl).flatMap(entry => {
    if (entry.kind !== 'reference') return []
    const { parameter, type, id } = entry
    return own
      .filter(rule => matchesRule(rule, parameter, type))
      .map(rule => ({ rule, target: `${type}/${id}` }))
  })
}

function matchesRule(
  { parameters, target }: IncludeRule,
  parameter: string,
  type: string | undefined,
): boolean {
  return type !== undefined && parameters.includes(parameter) && (target === undefined || target === type)
}

function formatKey({ resourceType, id }: Resource): string {
  return `${resourceType}/${id}`
}
