import type { Params } from './interaction.ts'
import { SEARCH_CHARACTERS, SEARCH_VALUES } from './limits.ts'

// Parameters that shape an answer and choose nothing (R4 http.html#parameters, search.html#modifyingresults).
const GENERAL = new Set(['_format', '_pretty', '_summary', '_elements'])
const RESULT = new Set([
  ...GENERAL,
  '_sort',
  '_count',
  '_include',
  '_revinclude',
  '_include:iterate',
  '_revinclude:iterate',
  '_include:recurse',
  '_revinclude:recurse',
  '_total',
  '_contained',
  '_containedType',
])

/** Says why a query or a form is too long to be read; undefined when it is not. */
export function findSearchExcess(text: string): string | undefined {
  if (text.length > SEARCH_CHARACTERS) return `it has more than ${SEARCH_CHARACTERS} characters`
  const separators = text.match(/[&,]|%2c/gi)?.length ?? 0
  return separators >= SEARCH_VALUES ? `it has more than ${SEARCH_VALUES} parameters and values` : undefined
}

/**
 * The parameters of a query or a form (`application/x-www-form-urlencoded`), or undefined when it is malformed or too
 * long.
 */
export function parseParams(text: string): Params | undefined {
  if (text === '') return []
  if (findSearchExcess(text)) return undefined
  const params: [string, string][] = []
  for (const part of text.split('&')) {
    if (part === '') continue
    const at = part.indexOf('=')
    const name = decode(at < 0 ? part : part.slice(0, at))
    const value = decode(at < 0 ? '' : part.slice(at + 1))
    if (!name || value === undefined) return undefined
    params.push([name, value])
  }
  return params
}

/** Whether every parameter only shapes the answer to an interaction on one resource. */
export function areGeneral(params: Params): boolean {
  return params.every(([name]) => GENERAL.has(name))
}

/** Whether a parameter chooses among resources, as every conditional interaction must. */
export function haveCriteria(params: Params): boolean {
  return params.some(([name, value]) => !RESULT.has(name) && value !== '')
}

function decode(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '))
    // Half a character, which only the JSON of a Bundle can hold, could not be written into an address again.
    return decoded.includes('\0') || !decoded.isWellFormed() ? undefined : decoded
  } catch {
    return undefined
  }
}
