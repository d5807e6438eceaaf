import type { Resource } from './r4.ts'

/** A JSON object, as opposed to an array, a primitive or null. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** JSON that says what resource type it is; nothing else of it is known. */
export function isResource(value: unknown): value is Resource {
  return isRecord(value) && typeof value.resourceType === 'string'
}
