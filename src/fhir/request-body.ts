import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { fail, isFailure, isRecord } from '../core/index.ts'
import type { BodyLimits } from './body-limits.ts'
import type { Interaction } from './interaction.ts'
import { findJsonExcess, parseExact, toPlain } from './json.ts'
import { findEntryExcess } from './parse-entries.ts'
import { isFhirPathPatch } from './patch/operations.ts'
import type { FhirProblem } from './problem.ts'
import { failFor } from './reasons/reasons.ts'
import { parseReference } from './reference.ts'
import { parseMediaType } from './request.ts'
import type { ExactResource, ResourceFault } from './resource.ts'
import { validate, validateInSteps } from './validate/validate.ts'

const JSON_TYPES = ['application/fhir+json', 'application/json'] as const
const JSON_PATCH_TYPE = 'application/json-patch+json'
// A FHIRPath Patch is a resource.
const PATCH_TYPES = [JSON_PATCH_TYPE, ...JSON_TYPES] as const
const GRAPHQL_TYPE = 'application/graphql'
const GRAPHQL_TYPES = [...JSON_TYPES, GRAPHQL_TYPE] as const
const FORM_TYPE = 'application/x-www-form-urlencoded'

const decoder = new TextDecoder('utf-8', { fatal: true })

/** The media types of an interaction's body. */
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
      if (!interaction.posted) return []
      return interaction.name === '$graphql' ? GRAPHQL_TYPES : JSON_TYPES
    default:
      return []
  }
}

/** A body as exact JSON (`parseExact`); undefined without a body. */
interface ReadBody {
  readonly body: unknown
}

/** Parses the body if the interaction has one. */
export function readBody(
  interaction: Interaction,
  headers: IncomingHttpHeaders,
  bytes: Uint8Array | undefined,
  bodyLimits: BodyLimits,
): ReadBody | FhirProblem {
  const contentType = headers['content-type']
  const expected = listTypes(interaction)
  const isPatch = interaction.kind === 'patch' || interaction.kind === 'patch-conditional'
  if (expected.length === 0) return { body: undefined }
  if (!bytes || bytes.length === 0)
    return interaction.kind === 'operation' ? { body: undefined } : failFor('body-empty')
  if (sendsContent(interaction, contentType ?? '')) return { body: readBinary(interaction, headers, bytes) }
  if (!expected.includes(parseMediaType(contentType ?? '')) || !isUtf8(contentType ?? ''))
    return failContentType(expected, isPatch)
  const isGraphQl = parseMediaType(contentType ?? '') === GRAPHQL_TYPE
  const read = isGraphQl ? readQuery(bytes) : parseJsonBody(bytes, bodyLimits.values)
  if (isFailure(read)) return read
  if (interaction.kind === 'bundle') return findEntryExcess(read.body, bodyLimits.entries) ?? read
  if (!isPatch) return read
  const typed = isFhirPathPatch(read.body) ? JSON_TYPES : [JSON_PATCH_TYPE]
  return typed.some(it => it === parseMediaType(contentType ?? '')) ? read : failContentType(typed, isPatch)
}

/** RFC 5789, 2.2: the response to a patch names the types of patches. */
function failContentType(types: readonly string[], isPatch: boolean): FhirProblem {
  const failure = failFor('wrong-content-type', { expected: types.join(' or ') })
  return isPatch ? fail({ ...failure, headers: { 'accept-patch': types.join(', ') } }) : failure
}

/** The text of a form, which has parameters of the search. */
export function formatAsForm(
  contentType: string | undefined,
  bytes: Uint8Array | undefined,
): string | undefined {
  if (!bytes || parseMediaType(contentType ?? '') !== FORM_TYPE) return undefined
  try {
    return decoder.decode(bytes)
  } catch {
    // A malformed percent sign: the form is then refused like any other malformed form.
    return '%'
  }
}

function parseJsonBody(bytes: Uint8Array, mostValues: number): ReadBody | FhirProblem {
  try {
    const text = decoder.decode(bytes)
    const excess = findJsonExcess(text, mostValues)
    if (excess) return failFor('body-too-complex', { excess })
    return { body: parseExact(text) }
  } catch {
    return failFor('body-malformed')
  }
}

/** A query of GraphQL as in JSON (R4 graphql.html). */
function readQuery(bytes: Uint8Array): ReadBody | FhirProblem {
  try {
    return { body: { query: decoder.decode(bytes) } }
  } catch {
    return failFor('body-not-utf8')
  }
}

function isUtf8(contentType: string): boolean {
  const charset = /;\s*charset="?([^";\s]+)"?/i.exec(contentType)?.[1]
  return charset === undefined || /^utf-?8$/i.test(charset)
}

/** The body of a write as a valid resource of the type in the URL, or the problem with it. */
export function readResourceBody(body: unknown, type: string): ExactResource | FhirProblem {
  const resource = readResourceOfType(body, type)
  if (isFailure(resource)) return resource
  return toValid(resource, validated.get(resource) ?? validate(toPlain(resource)))
}

/** Reads the body of a write with pauses, and reports R4's recommendations too. */
export function* readRecommendedBody(
  body: unknown,
  type: string,
): Generator<undefined, ExactResource | FhirProblem> {
  const resource = readResourceOfType(body, type)
  if (isFailure(resource)) return resource
  return toValid(resource, yield* validateInSteps(toPlain(resource), { warns: true }))
}

function toValid(resource: ExactResource, faults: readonly ResourceFault[]): ExactResource | FhirProblem {
  return faults.length > 0 ? fail({ ...failFor('invalid-resource'), faults }) : resource
}

const validated = new WeakMap<object, readonly ResourceFault[]>()

/** Validates the body of a write with pauses, before a change is planned that nothing may interrupt. */
export function* validateAhead(body: unknown): Generator<undefined, void> {
  if (isRecord(body) && !validated.has(body)) validated.set(body, yield* validateInSteps(toPlain(body)))
}

/** Reads the body of a write to a URL with an id, which the body must repeat (R4 http.html#update). */
export function readResourceBodyWithId(body: unknown, type: string, id: string): ExactResource | FhirProblem {
  const resource = readResourceOfType(body, type)
  if (isFailure(resource)) return resource
  if (resource.id !== id) return failFor('body-id-differs', { type, id })
  return readResourceBody(body, type)
}

function readResourceOfType(body: unknown, type: string): ExactResource | FhirProblem {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return failFor('body-not-a-resource', { type })
  const { resourceType } = body as { resourceType?: unknown }
  if (resourceType !== type) return failFor('body-of-another-type', { type })
  return body as ExactResource
}

/** The content of a Binary, which is sent instead of the resource (R4 binary.html#rest). */
export interface NativeContent {
  readonly contentType: string
  readonly bytes: Buffer | Readable
}

const FHIR_JSON: ReadonlySet<string> = new Set(['application/fhir+json', 'application/json', 'text/json'])
const FHIR_XML = 'application/fhir+xml'

// RFC 9110, 8.3.1: a media type with its parameters, and nothing that could end a header.
const TOKEN = "[!#$%&'*+.^_`|~A-Za-z0-9-]{1,100}"
const MEDIA_TYPE = new RegExp(
  `^${TOKEN}/${TOKEN}(?: ?; ?${TOKEN}=(?:${TOKEN}|"[ !#-\\[\\]-~]{0,100}")){0,4}$`,
)

/**
 * Whether a read asks for the content of a Binary instead of the resource: the content, unless Accept names a FHIR
 * format. The parameters `_format`, `_summary` and `_elements` ask for the resource.
 */
export function wantsContent(headers: IncomingHttpHeaders, interaction: Interaction): boolean {
  if (interaction.kind !== 'read' && interaction.kind !== 'vread') return false
  if (interaction.type !== 'Binary' || interaction.params.length > 0) return false
  const accepted = (headers.accept ?? '*/*').split(',').map(parseMediaType)
  return !accepted.some(it => FHIR_JSON.has(it) || it === FHIR_XML)
}

export function readContent(binary: string): NativeContent {
  const { contentType, data } = JSON.parse(binary) as Readonly<Record<string, unknown>>
  return {
    contentType:
      typeof contentType === 'string' && MEDIA_TYPE.test(contentType)
        ? contentType
        : 'application/octet-stream',
    bytes: Buffer.from(typeof data === 'string' ? data : '', 'base64'),
  }
}

/** Whether a write sends the content of a Binary instead of the resource: its media type is not a FHIR format. */
export function sendsContent(interaction: Interaction, contentType: string): boolean {
  const type = parseMediaType(contentType)
  return (
    (interaction.kind === 'create' ||
      interaction.kind === 'update' ||
      interaction.kind === 'update-conditional') &&
    interaction.type === 'Binary' &&
    MEDIA_TYPE.test(contentType) &&
    !FHIR_JSON.has(type) &&
    type !== FHIR_XML
  )
}

/** The Binary for content that was sent, without data if the content still arrives; `X-Security-Context` becomes `securityContext` (R4 binary.html#security-context). */
export function readBinary(
  interaction: Interaction,
  headers: IncomingHttpHeaders,
  bytes?: Uint8Array,
): object {
  const context = headers['x-security-context']
  return {
    resourceType: 'Binary',
    ...('id' in interaction && { id: interaction.id }),
    contentType: headers['content-type'],
    ...(context !== undefined && { securityContext: { reference: String(context) } }),
    ...(bytes && { data: Buffer.from(bytes).toString('base64') }),
  }
}

/** The ids of the Binaries of this server that the attachments of a DocumentReference name. */
export function findNamedBinaries(
  resource: Readonly<Record<string, unknown>>,
  baseUrl: string,
): ReadonlySet<string> {
  const { resourceType, content } = resource
  if (resourceType !== 'DocumentReference' || !Array.isArray(content)) return new Set()
  return new Set(
    content.flatMap(it => {
      const url = isRecord(it) && isRecord(it.attachment) ? it.attachment.url : undefined
      const named = typeof url === 'string' ? parseReference(url, baseUrl) : undefined
      // A read of the Binary shows the current version, not the named one.
      return named?.type === 'Binary' && named.version === undefined ? [named.id] : []
    }),
  )
}
