import { impliedKeys, queryKey, type ResourceScope, type Scope } from '../../smart/index.ts'

/**
 * A collection of scopes that tells in constant time whether they cover another one: every scope is filed under what
 * it reaches, and a scope looks for itself under everything that is wider.
 */
export class ScopeIndex {
  readonly #counts = new Map<string, number>()

  constructor(scopes: Iterable<Scope> = []) {
    for (const scope of scopes) this.add(scope)
  }

  add(scope: Scope): void {
    this.#count(scope, 1)
  }

  /** Takes out one that was added. */
  remove(scope: Scope): void {
    this.#count(scope, -1)
  }

  /** Whether the scopes together cover all of this one. */
  covers(scope: Scope): boolean {
    return scope.kind === 'plain'
      ? this.#has(scope.text)
      : this.coveredLetters(scope).size === scope.permissions.size
  }

  /** The permissions of a scope that the others cover for all that it reaches. */
  coveredLetters(scope: ResourceScope): ResourceScope['permissions'] {
    const wider = widerReaches(scope)
    return new Set(
      [...scope.permissions].filter(permission => wider.some(reach => this.#has(permission + reach))),
    )
  }

  #count(scope: Scope, by: 1 | -1): void {
    for (const key of keysOf(scope)) this.#counts.set(key, (this.#counts.get(key) ?? 0) + by)
  }

  #has(key: string): boolean {
    return (this.#counts.get(key) ?? 0) > 0
  }
}

function keysOf(scope: Scope): readonly string[] {
  if (scope.kind === 'plain') return [scope.text]
  const reach = reachKey(scope, scope.type, queryKey(scope.query))
  return [...scope.permissions].map(permission => permission + reach)
}

/** What the scope reaches, and all that contains it: the wildcard instead of the type, fewer search parameters. */
function widerReaches(scope: ResourceScope): readonly string[] {
  const types = scope.type === '*' ? ['*'] : [scope.type, '*']
  return impliedKeys(scope.query).flatMap(query => types.map(type => reachKey(scope, type, query)))
}

// The space keeps it apart from plain scopes, which have none.
function reachKey({ context }: ResourceScope, type: string, query: string): string {
  return ` ${context}/${type.toLowerCase()}?${query}`
}
