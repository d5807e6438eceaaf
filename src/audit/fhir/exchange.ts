import {
  type Interaction,
  isRecord,
  isWriting,
  type Misunderstood,
  parseReference,
  type Refused,
  type Resource,
} from '../../fhir/index.ts'
import type { Grant } from '../../smart/index.ts'
import { type AuditRecord, filedUnder } from '../record.ts'
import { patientsConcerned } from './concerned.ts'
import { launchIdOf } from './launch-id.ts'
import type { Kept } from './patients-in.ts'
import { requestText } from './request-text.ts'

/** A request to a FHIR server, or an entry of a Bundle, with its decision and its answer. */
export interface Exchange {
  readonly at: number
  readonly method: string
  readonly interaction: Interaction | Misunderstood
  /** Raw, below the base: kept only as far as it looks like FHIR, where the interaction is not understood. */
  readonly address?: string | undefined
  /** Of the token, once it was found good, also where it is so no more. */
  readonly grant?: Grant | undefined
  /** Whether no token was found good, now or before. */
  readonly anonymous?: boolean | undefined
  /** What decided, where it was allowed. */
  readonly by?: string | undefined
  /** Why it was turned away: by the guard, by the stored content, or since it is no FHIR. Undefined: it was allowed. */
  readonly refusal?: Refused | string | undefined
  readonly status: number
  /** JSON that was answered with: tells whose data it carries. */
  readonly body?: string | undefined
  /** The same, parsed, of an entry of a Bundle. */
  readonly resource?: unknown
  /** JSON that was sent, parsed. */
  readonly sent?: unknown
  /** Of the version that was written, or of the resource that was deleted: `Condition/1/_history/2`. */
  readonly location?: string | undefined
  /** Of a write: the resource as it was before, where the server has it in hand. */
  readonly before?: Resource | undefined
  readonly kept?: Kept | undefined
  readonly requestId?: string | undefined
  readonly clientAddress?: string | undefined
}

export function recordOf(exchange: Exchange, fhirBaseUrl: string): AuditRecord {
  const { interaction, grant, refusal } = exchange
  return {
    at: exchange.at,
    server: 'fhir',
    kind: 'fhir',
    interaction: interactionName(exchange),
    allowed: refusal === undefined,
    status: exchange.status,
    method: exchange.method,
    request: requestText(interaction, exchange.address),
    type: 'type' in interaction ? interaction.type : undefined,
    id: idOf(exchange, fhirBaseUrl),
    ...filedUnder(patientsConcerned(exchange, fhirBaseUrl)),
    client: grant?.clientId,
    subject: grant?.subject,
    fhirUser: grant?.fhirUser && `${grant.fhirUser.type}/${grant.fhirUser.id}`,
    by: exchange.by ?? (typeof refusal === 'object' ? refusal.by : undefined),
    reason: reasonOf(refusal),
    launch: grant && launchIdOf(grant),
    requestId: exchange.requestId,
    address: exchange.clientAddress,
    anonymous: exchange.anonymous,
  }
}

/** The id that was asked for; of a create or a conditional change that of the resource that was written. */
function idOf({ interaction, location, status, body }: Exchange, fhirBaseUrl: string): string | undefined {
  if ('id' in interaction && !('compartment' in interaction)) return interaction.id
  if (!('type' in interaction) || !isWriting(interaction) || status >= 300) return undefined
  const named = location === undefined ? undefined : parseReference(location, fhirBaseUrl)
  if (named) return named.id
  // An upstream may leave the Location out, and answer with the resource.
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

/** A Bundle that is sent is called what it says that it is. */
function interactionName({ interaction, sent }: Exchange): string {
  const type = interaction.kind === 'bundle' && isRecord(sent) ? sent.type : undefined
  return type === 'batch' || type === 'transaction' ? type : interaction.kind
}

/** The text that the caller is told; where that says little, what we know besides. */
function reasonOf(refusal: Exchange['refusal']): string | undefined {
  if (refusal === undefined || typeof refusal === 'string') return refusal
  const [issue] = refusal.outcome.issue
  if (refusal.why !== undefined) return `The token is not accepted: ${refusal.why}`
  return refusal.by === undefined ? issue?.details.text : (refusal.hint ?? issue?.details.text)
}
