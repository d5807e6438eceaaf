import type { Grant } from '../../consent/index.ts'
import {
  type Interaction,
  isRecord,
  type Misunderstood,
  patientsOf,
  type Refused,
  type Resource,
} from '../../fhir/index.ts'
import type { AuditRecord } from '../record.ts'
import { launchIdOf } from './launch-id.ts'
import { requestText } from './request-text.ts'

/** A request to a FHIR server, or an entry of a Bundle, with its decision and its answer. */
export interface Exchange {
  readonly at: number
  readonly method: string
  readonly interaction: Interaction | Misunderstood
  /** Raw, below the base: kept only as far as it looks like FHIR, where the interaction is not understood. */
  readonly address?: string | undefined
  /** Of the token, once it was found good. */
  readonly grant?: Grant | undefined
  /** What decided, where it was allowed. */
  readonly by?: string | undefined
  /** Why it was turned away: by the guard, by the stored content, or since it is no FHIR. Undefined: it was allowed. */
  readonly refusal?: Refused | string | undefined
  readonly status: number
  /** JSON that was answered with: tells whose record it is where the token does not. */
  readonly body?: string | undefined
  readonly requestId?: string | undefined
  readonly clientAddress?: string | undefined
}

export function recordOf(exchange: Exchange, fhirBaseUrl: string): AuditRecord {
  const { interaction, grant, refusal } = exchange
  return {
    at: exchange.at,
    server: 'fhir',
    kind: 'fhir',
    interaction: interaction.kind,
    allowed: refusal === undefined,
    status: exchange.status,
    method: exchange.method,
    request: requestText(interaction, exchange.address),
    type: 'type' in interaction ? interaction.type : undefined,
    id: 'id' in interaction ? interaction.id : undefined,
    patient: grant && (grant.patient ?? patientAsked(exchange, interaction, fhirBaseUrl)),
    client: grant?.clientId,
    subject: grant?.subject,
    fhirUser: grant?.fhirUser && `${grant.fhirUser.type}/${grant.fhirUser.id}`,
    by: exchange.by ?? (typeof refusal === 'object' ? refusal.by : undefined),
    reason: reasonOf(refusal),
    launch: grant && launchIdOf(grant),
    requestId: exchange.requestId,
    address: exchange.clientAddress,
  }
}

/** The text that the caller is told; where that says little, what we know besides. */
function reasonOf(refusal: Exchange['refusal']): string | undefined {
  if (refusal === undefined || typeof refusal === 'string') return refusal
  const [issue] = refusal.outcome.issue
  if (refusal.why !== undefined) return `The token is not accepted: ${refusal.why}`
  return refusal.by === undefined ? issue?.details.text : (issue?.diagnostics ?? issue?.details.text)
}

/** Whose record a caller without a patient in its token asks for. */
function patientAsked(
  { body, refusal, status }: Exchange,
  interaction: Interaction | Misunderstood,
  fhirBaseUrl: string,
): string | undefined {
  if ('compartment' in interaction) return interaction.id
  if ('type' in interaction && interaction.type === 'Patient' && 'id' in interaction) return interaction.id
  if ('params' in interaction) {
    const named = interaction.params.find(([name]) => PATIENT_PARAMETERS.has(name))?.[1]
    const id = named === undefined ? undefined : PATIENT_VALUE.exec(named)?.[1]
    if (id !== undefined) return id
  }
  return refusal === undefined && status < 300 ? patientIn(body, fhirBaseUrl) : undefined
}

const PATIENT_PARAMETERS: ReadonlySet<string> = new Set(['patient', 'subject:Patient', 'subject'])
const PATIENT_VALUE = /^(?:(?:.*\/)?Patient\/)?([A-Za-z0-9.-]{1,64})$/
const LONGEST_READ = 200_000

/** The one patient in whose compartment a resource is. */
function patientIn(body: string | undefined, fhirBaseUrl: string): string | undefined {
  if (body === undefined || body.length > LONGEST_READ || body.startsWith('{"resourceType":"Bundle"'))
    return undefined
  const resource: unknown = JSON.parse(body)
  if (!isRecord(resource) || typeof resource.resourceType !== 'string') return undefined
  const [first, ...more] = patientsOf(resource as Resource, fhirBaseUrl)
  return more.length === 0 ? first : undefined
}
