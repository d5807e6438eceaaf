import {
  findSearchParameter,
  type IncludeRule,
  listCompartmentParameters,
  type Params,
} from '../../../fhir/index.ts'
import type { Access } from '../../../smart/index.ts'
import { hasAccess } from '../access.ts'

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
