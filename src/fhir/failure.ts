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

export function isFailure<Value>(value: Value): value is Extract<Value, Failed> {
  return typeof value === 'object' && value !== null && FAILURE in value
}
