/** The value of a table for a key that others chose. Every object also has keys that are not its own, such as `constructor`. */
export function findOwn<Value>(table: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined
}
