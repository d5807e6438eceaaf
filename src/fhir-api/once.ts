import { remember } from '../core/index.ts'

/** Makes a text of an object once, and again only for another object. */
export function createOnce<Value extends object>(make: (value: Value) => string): (value: Value) => string {
  const made = new WeakMap<Value, string>()
  return value => remember(made, value, make)
}
