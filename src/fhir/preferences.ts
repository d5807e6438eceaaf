import type { IncomingHttpHeaders } from 'node:http'
import type { Interaction, Params } from './interaction.ts'
import { parseMediaType } from './media-type.ts'
import type { Preconditions } from './request.ts'

/** `Prefer` (R4 http.html#ops). */
export interface Preferences {
  readonly answer: 'representation' | 'minimal' | 'OperationOutcome'
  /** Unknown search parameters are ignored. */
  readonly lenient: boolean
  /** The response may come later, from another address (R4 async.html). */
  readonly respondAsync?: true
  /** The content of a Binary is asked for, not the resource (`wantsContent`). */
  readonly content?: true
}

const NONE: Preferences = { answer: 'representation', lenient: false }
const ANSWERS = ['minimal', 'representation', 'OperationOutcome'] as const
const JSON_FORMATS = new Set([
  'json',
  'application/json',
  'application/fhir+json',
  'text/json',
  '*/*',
  'application/*',
])

/** `Prefer: return=minimal, handling=lenient` (RFC 7240, R4 http.html#ops). What is not known is ignored. */
export function readPreferences(headers: IncomingHttpHeaders): Preferences {
  if (headers.prefer === undefined) return NONE
  const preferred = String(headers.prefer)
    .split(/[,;]/)
    .map(it => it.trim())
  return {
    answer: ANSWERS.find(it => preferred.includes(`return=${it}`)) ?? 'representation',
    lenient: preferred.includes('handling=lenient'),
    ...(preferred.includes('respond-async') && { respondAsync: true }),
  }
}

export function readPreconditions(headers: IncomingHttpHeaders): Preconditions {
  return {
    ifMatch: headers['if-match'],
    ifNoneMatch: headers['if-none-match'],
    ifModifiedSince: headers['if-modified-since'],
  }
}

/**
 * Whether JSON will do: by `_format`, which goes before Accept (R4 http.html#parameters). The SMART configuration is
 * JSON whatever is accepted (SMART 2.2, conformance).
 */
export function acceptsJson(headers: IncomingHttpHeaders, interaction: Interaction): boolean {
  if (interaction.kind === 'smart-configuration') return true
  const params: Params = 'params' in interaction ? interaction.params : []
  const format = params.findLast(([name]) => name === '_format')?.[1]
  // A plus sign that was not encoded has become a space.
  if (format !== undefined) return JSON_FORMATS.has(parseMediaType(format).replace(' ', '+'))
  const accepted = headers.accept
  return !accepted || accepted.split(',').some(it => JSON_FORMATS.has(parseMediaType(it)))
}
