import { parseExact } from '../../../fhir/index.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** What bytes say as exact JSON (`parseExact`), or why they say nothing. The reason never quotes them. */
export function parseJson(bytes: Uint8Array): { readonly value: unknown } | { readonly fault: string } {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return { fault: 'Not UTF-8 text' }
  }
  try {
    return { value: parseExact(text) }
  } catch {
    return { fault: 'Not JSON' }
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
