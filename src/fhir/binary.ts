import type { IncomingHttpHeaders } from 'node:http'
import type { Interaction } from './interaction.ts'
import { parseReference } from './reference.ts'
import { parseMediaType } from './request.ts'
import { isRecord } from './resource.ts'

/** The content of a Binary, which is sent instead of the resource (R4 binary.html#rest). */
export interface NativeContent {
  readonly contentType: string
  readonly bytes: Buffer
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

/** The Binary for content that was sent; `X-Security-Context` becomes `securityContext` (R4 binary.html#security-context). */
export function readBinary(
  interaction: Interaction,
  headers: IncomingHttpHeaders,
  bytes: Uint8Array,
): object {
  const context = headers['x-security-context']
  return {
    resourceType: 'Binary',
    ...('id' in interaction && { id: interaction.id }),
    contentType: headers['content-type'],
    ...(context !== undefined && { securityContext: { reference: String(context) } }),
    data: Buffer.from(bytes).toString('base64'),
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
