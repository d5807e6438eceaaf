import { findSearchParameter, type IncludeRule, type Params } from '../../../fhir/index.ts'
import type { Access, Permission } from '../../../smart/index.ts'
import { EXCLUDED_TYPES } from '../excluded-types.ts'

/** The includes that can bring something that the caller reaches, each to those types alone; a star as it is. */
export function narrowIncludes(rules: readonly IncludeRule[], access: Access): Params {
  const star: Params = rules.some(rule => rule.isOfStar && hasAccess(access, rule.source, 's'))
    ? [['_revinclude', '*']]
    : []
  const named = rules.filter(rule => !rule.isOfStar)
  const params = named.flatMap(rule =>
    rule.parameters.flatMap(code =>
      rule.direction === 'forward' ? forward(rule, code, access) : reverse(rule, code, access),
    ),
  )
  return [...params, ...star]
}

/** Along a reference a resource is read (`r`). */
function forward(rule: IncludeRule, code: string, access: Access): Params {
  const { source, target } = rule
  const possible = target === undefined ? findSearchParameter(source, code)?.target : [target]
  if (possible === undefined) return [[nameOf(rule), `${source}:${code}`]]
  const reached = possible.filter(type => hasAccess(access, type, 'r'))
  if (target === undefined && reached.length === possible.length) return [[nameOf(rule), `${source}:${code}`]]
  return reached.map(type => [nameOf(rule), `${source}:${code}:${type}`] as const)
}

/** Against a reference it is searched (`s`). */
function reverse(rule: IncludeRule, code: string, access: Access): Params {
  const { source, target } = rule
  if (!hasAccess(access, source, 's')) return []
  return [[nameOf(rule), target === undefined ? `${source}:${code}` : `${source}:${code}:${target}`]]
}

function nameOf({ direction, iterate }: IncludeRule): string {
  const name = direction === 'forward' ? '_include' : '_revinclude'
  return iterate ? `${name}:iterate` : name
}

export function hasAccess(access: Access, type: string, permission: Permission): boolean {
  return access.filterFor(type, permission).length > 0 && !EXCLUDED_TYPES.has(type)
}
