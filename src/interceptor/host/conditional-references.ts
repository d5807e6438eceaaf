import { isJsonObject } from '../decision/json.ts'

const CONDITIONAL = /^([A-Za-z]+)\?/

/** The types that the conditional references of a body search (`Patient?identifier=…`, R4 http.html#trules). */
export function conditionalTypes(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(conditionalTypes)
  if (!isJsonObject(value)) return []
  return Object.entries(value).flatMap(([name, item]) => {
    if (name !== 'reference' || typeof item !== 'string') return conditionalTypes(item)
    return CONDITIONAL.exec(item)?.[1] ?? []
  })
}
