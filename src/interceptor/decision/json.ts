import type { Resource } from '../../fhir/index.ts'

export type JsonObject = Readonly<Record<string, unknown>>

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isResource(value: unknown): value is Resource {
  return isJsonObject(value) && typeof value.resourceType === 'string'
}
