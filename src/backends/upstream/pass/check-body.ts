import type { SentContent } from '../../../audit/index.ts'
import { isFailure, isRecord } from '../../../core/index.ts'
import { type Interaction, isResource, type Resource, splitBundle } from '../../../fhir/index.ts'
import { type Failure, type FhirRequest, failBroken } from '../../../fhir-api/index.ts'
import type { UpstreamResponse } from '../http/read-response.ts'

/** The resources of a body, where they are known. */
interface CheckedBody {
  readonly contents?: readonly SentContent[]
}

/**
 * Checks that a successful response is what was asked for, although nothing in it is hidden from the caller: a proxy may
 * cut it off, or answer in the place of the upstream.
 */
export async function checkBody(
  request: FhirRequest,
  { text }: Pick<UpstreamResponse, 'text'>,
): Promise<CheckedBody | Failure> {
  const { interaction } = request
  if (text === '') return isAnsweredWithBody(interaction) ? failBroken('it has no body') : {}
  try {
    return isBundle(interaction) ? await checkBundle(request, text) : checkResource(interaction, text)
  } catch {
    return failBroken('its JSON is invalid')
  }
}

function isBundle({ kind }: Interaction): boolean {
  return kind === 'bundle' || kind.startsWith('search-') || kind.startsWith('history-')
}

function isAnsweredWithBody(interaction: Interaction): boolean {
  return isBundle(interaction) || interaction.kind === 'read' || interaction.kind === 'vread'
}

function checkResource(interaction: Interaction, text: string): CheckedBody | Failure {
  const resource: unknown = JSON.parse(text)
  // An operation may return other JSON.
  if (interaction.kind === 'operation') return {}
  if (!isResource(resource)) return failBroken('it is not a resource')
  if (!isExpected(interaction, resource)) return failBroken('it answered with a different resource')
  const { resourceType: type, id = '' } = resource
  return { contents: [{ type, id, text, parse: () => resource }] }
}

function isExpected(interaction: Interaction, { resourceType, id }: Resource): boolean {
  switch (interaction.kind) {
    case 'read':
    case 'vread':
      return resourceType === interaction.type && id === interaction.id
    case 'update':
    case 'patch':
    case 'delete':
      return (
        resourceType === 'OperationOutcome' || (resourceType === interaction.type && id === interaction.id)
      )
    case 'create':
    case 'update-conditional':
    case 'patch-conditional':
      return resourceType === 'OperationOutcome' || resourceType === interaction.type
    default:
      return true
  }
}

/** Parses the resources one by one. Other requests may run in between. */
async function checkBundle(
  { interaction, entries, work }: FhirRequest,
  text: string,
): Promise<CheckedBody | Failure> {
  const split = splitBundle(text, Number.POSITIVE_INFINITY)
  if (typeof split === 'string') return failBroken(split)
  const { bundle, texts } = split
  if (!isResource(bundle) || bundle.resourceType !== 'Bundle') return failBroken('it is not a Bundle')
  const { entry = [] } = bundle
  if (!Array.isArray(entry) || !entry.every(isRecord)) return failBroken('it is not a Bundle')
  const isShort = entries && !isFailure(entries) && entries.entries.length !== entry.length
  if (isShort) return failBroken('it did not answer every entry of a Bundle')
  const contents: SentContent[] = []
  for (const part of texts) {
    const resource: unknown = JSON.parse(part)
    if (!isResource(resource)) return failBroken('it is not a resource')
    contents.push({ type: resource.resourceType, id: resource.id ?? '', text: part, parse: () => resource })
    await work.pause()
  }
  // The audit trail reads the deletions in a history, and the statuses of a Bundle, from the body.
  return interaction.kind.startsWith('search-') ? { contents } : {}
}
