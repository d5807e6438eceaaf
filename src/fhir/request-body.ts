import type { IncomingHttpHeaders } from 'node:http'
import { readBinary, sendsContent } from './binary.ts'
import { parseExact } from './exact-json.ts'
import { fail } from './failure.ts'
import type { Interaction } from './interaction.ts'
import { findJsonExcess } from './json-excess.ts'
import { parseMediaType } from './media-type.ts'
import { isFhirPathPatch } from './patch/operations.ts'
import { type FhirProblem, isProblem } from './problem.ts'

const JSON_TYPES = ['application/fhir+json', 'application/json'] as const
const JSON_PATCH_TYPE = 'application/json-patch+json'
// A FHIRPath Patch is a resource.
const PATCH_TYPES = [JSON_PATCH_TYPE, ...JSON_TYPES] as const
const FORM_TYPE = 'application/x-www-form-urlencoded'

const decoder = new TextDecoder('utf-8', { fatal: true })

/** What kind of body an interaction takes. */
function listTypes(interaction: Interaction): readonly string[] {
  switch (interaction.kind) {
    case 'create':
    case 'update':
    case 'update-conditional':
    case 'bundle':
      return JSON_TYPES
    case 'patch':
    case 'patch-conditional':
      return PATCH_TYPES
    case 'operation':
      return interaction.posted ? JSON_TYPES : []
    default:
      return []
  }
}

/** A body as exact JSON (`parseExact`); undefined where there was none. */
export interface ReadBody {
  readonly body: unknown
}

/** The parsed body, where the interaction takes one. */
export function readBody(
  interaction: Interaction,
  headers: IncomingHttpHeaders,
  bytes: Uint8Array | undefined,
): ReadBody | FhirProblem {
  const contentType = headers['content-type']
  const expected = listTypes(interaction)
  const isPatch = interaction.kind === 'patch' || interaction.kind === 'patch-conditional'
  if (expected.length === 0) return { body: undefined }
  if (!bytes || bytes.length === 0)
    return interaction.kind === 'operation'
      ? { body: undefined }
      : fail({ problem: 'malformed-body', text: 'Cannot read body: it is empty' })
  if (sendsContent(interaction, contentType ?? '')) return { body: readBinary(interaction, headers, bytes) }
  if (!expected.includes(parseMediaType(contentType ?? '')) || !isUtf8(contentType ?? ''))
    return fail({ problem: 'wrong-content-type', expected, isPatch })
  const read = parse(bytes)
  if (isProblem(read) || !isPatch) return read
  const typed = isFhirPathPatch(read.body) ? JSON_TYPES : [JSON_PATCH_TYPE]
  return typed.some(it => it === parseMediaType(contentType ?? ''))
    ? read
    : fail({ problem: 'wrong-content-type', expected: typed, isPatch })
}

/** The text of a form, whose parameters are part of the search. */
export function formatAsForm(
  contentType: string | undefined,
  bytes: Uint8Array | undefined,
): string | undefined {
  if (!bytes || parseMediaType(contentType ?? '') !== FORM_TYPE) return undefined
  try {
    return decoder.decode(bytes)
  } catch {
    // A malformed percent sign, so that the form is refused like any other that cannot be read.
    return '%'
  }
}

function parse(bytes: Uint8Array): ReadBody | FhirProblem {
  try {
    const text = decoder.decode(bytes)
    const excess = findJsonExcess(text)
    if (excess) return fail({ problem: 'too-costly', text: `Cannot read body: ${excess}` })
    return { body: parseExact(text) }
  } catch {
    return fail({ problem: 'malformed-body', text: 'Cannot read body: it is not valid JSON in UTF-8' })
  }
}

function isUtf8(contentType: string): boolean {
  const charset = /;\s*charset="?([^";\s]+)"?/i.exec(contentType)?.[1]
  return charset === undefined || /^utf-?8$/i.test(charset)
}
