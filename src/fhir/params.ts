import type { Interaction, Params } from './interaction.ts'
import { SEARCH_CHARACTERS, SEARCH_VALUES } from './limits.ts'

// Parameters that format a response and select nothing (R4 http.html#parameters, search.html#modifyingresults).
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

/** Why a query or a form is too long; undefined if it is not. */
export function findSearchExcess(text: string): string | undefined {
  if (text.length > SEARCH_CHARACTERS) return `it has more than ${SEARCH_CHARACTERS} characters`
  const separators = text.match(/[&,]|%2c/gi)?.length ?? 0
  return separators >= SEARCH_VALUES ? `it has more than ${SEARCH_VALUES} parameters and values` : undefined
}

/** The parameters of a query or a form (`application/x-www-form-urlencoded`); undefined if it is malformed or too long. */
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

/** Whether every parameter only formats the response to an interaction on one resource. */
export function areGeneral(params: Params): boolean {
  return params.every(([name]) => GENERAL.has(name))
}

/** Whether a parameter selects resources, as every conditional interaction requires. */
export function haveCriteria(params: Params): boolean {
  return params.some(([name, value]) => !RESULT.has(name) && value !== '')
}

function decode(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '))
    // Half of a surrogate pair, which only the JSON of a Bundle can contain, cannot be encoded in a URL.
    return decoded.includes('\0') || !decoded.isWellFormed() ? undefined : decoded
  } catch {
    return undefined
  }
}

type Paged = Extract<Interaction, { readonly params: Params }>

// `acceptsJson` reads these.
const FORMAT: ReadonlySet<string> = new Set(['_format', '_pretty'])

/**
 * The parameters of a further page: those of the first request, with `_count` and `_total` as the client may have added
 * them to the link. Undefined if it added any other parameter.
 */
export function readPageParams(
  { kind, params }: Paged,
  pageParameter: string,
  first: Params,
): Params | undefined {
  const added = params.filter(([name]) => name !== pageParameter)
  if (params.length - added.length !== 1) return undefined
  if (!added.every(([name]) => FORMAT.has(name) || name === '_count' || name === '_total')) return undefined
  // Only searches have a total.
  const replaced = added.filter(
    ([name]) => name === '_count' || (name === '_total' && kind.startsWith('search-')),
  )
  const names = new Set(replaced.map(([name]) => name))
  return [...first.filter(([name]) => !names.has(name)), ...replaced]
}
