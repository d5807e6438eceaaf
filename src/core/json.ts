/** A JSON object, as opposed to an array, a primitive or null. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The members of a JSON object. A value that is none has no members. */
export function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {}
}

/** The objects in a list of JSON. */
export function toRecords(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

/** Undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A value of JSON if it is a string. */
export function readText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
