import { getImpliedKeys, getQueryKey, type ResourceScope, type Scope } from '../../smart/index.ts'

/**
 * A set of scopes that can tell in constant time whether they cover another scope. Each scope is indexed by its target;
 * a lookup tries every wider target.
 */
export class ScopeIndex {
  readonly #counts = new Map<string, number>()

  constructor(scopes: Iterable<Scope> = []) {
    for (const scope of scopes) this.add(scope)
  }

  add(scope: Scope): void {
    this.#count(scope, 1)
  }

  /** Removes a scope that was added before. */
  remove(scope: Scope): void {
    this.#count(scope, -1)
  }

  /** Whether the scopes together cover all of this one. */
  covers(scope: Scope): boolean {
    return scope.kind === 'plain'
      ? this.#has(scope.text)
      : this.findCoveredPermissions(scope).size === scope.permissions.size
  }

  /** The permissions of a scope that the set covers completely. */
  findCoveredPermissions(scope: ResourceScope): ResourceScope['permissions'] {
    const wider = listWiderKeys(scope)
    return new Set(
      [...scope.permissions].filter(permission => wider.some(key => this.#has(permission + key))),
    )
  }

  #count(scope: Scope, by: 1 | -1): void {
    for (const key of listKeys(scope)) this.#counts.set(key, (this.#counts.get(key) ?? 0) + by)
  }

  #has(key: string): boolean {
    return (this.#counts.get(key) ?? 0) > 0
  }
}

function listKeys(scope: Scope): readonly string[] {
  if (scope.kind === 'plain') return [scope.text]
  const key = makeKey(scope, scope.type, getQueryKey(scope.query))
  return [...scope.permissions].map(permission => permission + key)
}

/** The keys of the scope's target and of all wider ones: the wildcard type, fewer search parameters. */
function listWiderKeys(scope: ResourceScope): readonly string[] {
  const types = scope.type === '*' ? ['*'] : [scope.type, '*']
  return getImpliedKeys(scope.query).flatMap(query => types.map(type => makeKey(scope, type, query)))
}

// The leading space distinguishes it from plain scopes.
function makeKey({ context }: ResourceScope, type: string, query: string): string {
  return ` ${context}/${type.toLowerCase()}?${query}`
}
