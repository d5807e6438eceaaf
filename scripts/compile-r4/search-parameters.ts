export interface SearchParameterSource {
  readonly id: string
  readonly code: string
  readonly base?: readonly string[]
  readonly type: string
  readonly expression?: string
  readonly target?: readonly string[]
}

/** `[code, type, expression, targets]`; without targets a reference may be to anything. */
export type CompiledParameter = readonly [string, string, string, (readonly string[])?]

/**
 * The parameters that can be indexed, by resource type; those of every type are under `Resource` and
 * `DomainResource`. Composite and special parameters are left out.
 */
export function compileSearchParameters(
  sources: readonly SearchParameterSource[],
  resources: readonly string[],
): Record<string, CompiledParameter[]> {
  const known = new Set(['Resource', 'DomainResource', ...resources])
  const found: Record<string, CompiledParameter[]> = {}
  for (const source of sources) {
    if (source.expression === undefined || !isCompiled(source)) continue
    for (const base of (source.base ?? []).filter(it => known.has(it))) {
      const expression = selectExpression(base, source.expression)
      if (expression === '')
        throw new Error(`Cannot compile ${base}.${source.code}: no expression is for this type`)
      found[base] = [
        ...(found[base] ?? []),
        [source.code, source.type, expression, ...findTargets(source, expression)],
      ]
    }
  }
  return found
}

/** The package also has examples and parameters of extensions, which are no part of R4 itself. */
function isCompiled({ id, type }: SearchParameterSource): boolean {
  return type !== 'composite' && type !== 'special' && !/^example|-extensions-|-genetic-/.test(id)
}

/** Shared parameters list the paths of all their types: only those of this type are kept. One (`name | alias`) lacks the type. */
function selectExpression(type: string, expression: string): string {
  return expression
    .split('|')
    .map(it => it.trim().replace(/^(?=[a-z])/, `${type}.`))
    .filter(it => new RegExp(`^\\(?${type}\\.`).test(it))
    .join(' | ')
}

/** `clinical-patient` lists Group as a target too: what `resolve() is` says is narrower. */
function findTargets(source: SearchParameterSource, expression: string): [] | [readonly string[]] {
  if (source.type !== 'reference') return []
  const only = expression.split('|').map(it => /resolve\(\) is (\w+)\)\s*$/.exec(it)?.[1])
  if (only.every(it => it !== undefined)) return [[...new Set(only)]]
  return source.target === undefined || isAnything(source.target) ? [] : [source.target]
}

/** Some parameters list (nearly) all types where the element says `Reference(Any)`. */
function isAnything(targets: readonly string[]): boolean {
  return targets.length > 100
}
