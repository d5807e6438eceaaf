import { isRecord, isWriting, parseReference } from '../../fhir/index.ts'
import type { Grant } from '../../smart/index.ts'
import { type AuditRecord, fileUnder } from '../record.ts'
import { type AuditedRequest, findPatients } from './find-patients.ts'
import { formatRequest } from './format-request.ts'

export function createRecord(request: AuditedRequest, fhirBaseUrl: string): AuditRecord {
  const { interaction, grant, refusal } = request
  return {
    at: request.at,
    server: 'fhir',
    kind: 'fhir',
    interaction: nameInteraction(request),
    allowed: refusal === undefined,
    status: request.status,
    method: request.method,
    request: formatRequest(interaction, request.address),
    type: 'type' in interaction ? interaction.type : undefined,
    id: findId(request, fhirBaseUrl),
    ...fileUnder(findPatients(request, fhirBaseUrl)),
    client: grant?.clientId,
    subject: grant?.subject,
    fhirUser: grant?.fhirUser && `${grant.fhirUser.type}/${grant.fhirUser.id}`,
    by: request.by ?? (typeof refusal === 'object' ? refusal.by : undefined),
    reason: describeReason(refusal),
    launch: grant && findLaunchId(grant),
    requestId: request.requestId,
    address: request.clientAddress,
    anonymous: request.anonymous,
  }
}

/** The requested id; for a create or a conditional change, the id of the written resource. */
function findId(
  { interaction, location, status, body }: AuditedRequest,
  fhirBaseUrl: string,
): string | undefined {
  if ('id' in interaction && !('compartment' in interaction)) return interaction.id
  if (!('type' in interaction) || !isWriting(interaction) || status >= 300) return undefined
  const named = location === undefined ? undefined : parseReference(location, fhirBaseUrl)
  if (named) return named.id
  // An upstream may omit Location and return the resource.
  const { resourceType, id } = readJsonObject(body)
  return resourceType === interaction.type && typeof id === 'string' ? id : undefined
}

function readJsonObject(text: string | undefined): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = text === undefined ? undefined : JSON.parse(text)
    return isRecord(value) ? value : {}
  } catch {
    return {}
  }
}

function nameInteraction({ interaction, requestBody }: AuditedRequest): string {
  const type = interaction.kind === 'bundle' && isRecord(requestBody) ? requestBody.type : undefined
  return type === 'batch' || type === 'transaction' ? type : interaction.kind
}

function describeReason(refusal: AuditedRequest['refusal']): string | undefined {
  if (refusal === undefined || typeof refusal === 'string') return refusal
  const [issue] = refusal.outcome.issue
  if (refusal.why !== undefined) return `The token is not accepted: ${refusal.why}`
  return refusal.by === undefined ? issue?.details.text : (refusal.hint ?? issue?.details.text)
}

/** A token's `jti` is the grant's id, a dot and a unique suffix. */
function findLaunchId({ tokenId }: Pick<Grant, 'tokenId'>): string | undefined {
  const dot = tokenId?.indexOf('.') ?? -1
  return dot > 0 ? tokenId?.slice(0, dot) : undefined
}
