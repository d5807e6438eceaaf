const FAILURE: unique symbol = Symbol('failure')

/**
 * The brand of an expected failure. Only `fail` sets it, so a resource, a Bundle or an upstream response can never be
 * mistaken for a failure, whatever members it has.
 */
export interface Failed {
  readonly [FAILURE]: true
}

export function fail<const Facts extends object>(facts: Facts): Facts & Failed {
  return { ...facts, [FAILURE]: true }
}

/** The failures of `value` follow from its type, unless it depends on a type parameter. */
export function isFailure<Value, Failure extends Value & Failed = Extract<Value, Failed>>(
  value: Value,
): value is Failure {
  return typeof value === 'object' && value !== null && FAILURE in value
}

/** The results of all items, or the first failure. */
export function mapOrFail<Item, Result>(
  items: Iterable<Item>,
  map: (item: Item, index: number) => Result,
): readonly Exclude<Result, Failed>[] | Extract<Result, Failed> {
  const results: Exclude<Result, Failed>[] = []
  for (const item of items) {
    const result = map(item, results.length)
    if (isFailure(result)) return result
    results.push(result as Exclude<Result, Failed>)
  }
  return results
}

/** A failure with methods. */
export abstract class Failing implements Failed {
  readonly [FAILURE] = true
}
