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

/** A failure with methods. */
export abstract class Failing implements Failed {
  readonly [FAILURE] = true
}
