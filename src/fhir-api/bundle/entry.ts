import { STATUS_CODES } from 'node:http'
import { auditRefusal, isAboutAudit } from '../../audit/index.ts'
import {
  createOutcome,
  type Entry,
  type EntryInteraction,
  fail,
  findJsonExcess,
  isRecord,
} from '../../fhir/index.ts'
import { toProblem } from '../../web/index.ts'
import type { FhirRequest } from '../request.ts'
import type { FhirResponse } from '../response.ts'
import { type Failure, toResponse } from '../response.ts'
import { type BundleBudget, RESPONSE_TOO_LARGE } from './budget.ts'

/** An entry as a request of its own: it is decided separately from the Bundle. */
export function toEntryRequest(bundle: FhirRequest, entry: Entry): FhirRequest<EntryInteraction> | Failure {
  const { interaction, body, preconditions } = entry
  if (interaction.kind === 'misunderstood') return fail({ ...interaction, problem: 'misunderstood' })
  const decision = bundle.authenticated.decide(interaction)
  if (!decision.allowed) return fail({ problem: 'refused', refused: decision })
  if (isAboutAudit(interaction)) return auditRefusal(interaction)
  return { ...bundle, interaction, body, preconditions, access: decision.access, isEntry: true }
}

/**
 * JSON of the response to one entry: an OperationOutcome is its `outcome`, any other resource its `resource`. Content
 * stays text: parsed into an object it would need several times the memory.
 */
export function formatEntry(response: FhirResponse): string {
  const content = readContent(response)
  if (content === 'invalid') return formatEntry(toResponse(INVALID))
  const { status } = response
  const location = response.location ?? response.headers?.location
  const etag = response.version?.etag ?? response.headers?.etag
  const lastModified = findLastModified(response)
  const text = JSON.stringify({
    status: `${status} ${STATUS_CODES[status] ?? ''}`.trim(),
    ...(location !== undefined && { location }),
    ...(etag !== undefined && { etag }),
    ...(lastModified !== undefined && { lastModified }),
  })
  const parts: string[] = []
  if (location !== undefined)
    parts.push(`"fullUrl":${JSON.stringify(location.replace(/\/_history\/[^/]+$/, ''))}`)
  if (content?.isOutcome) parts.push(`"response":${text.slice(0, -1)},"outcome":${content.text}}`)
  else {
    if (content) parts.push(`"resource":${content.text}`)
    parts.push(`"response":${text}`)
  }
  return `{${parts.join(',')}}`
}

const INVALID = fail({ problem: 'upstream-broken', why: 'its JSON is invalid' })

const OUTCOME = /^\s*\{\s*"resourceType"\s*:\s*"OperationOutcome"/

function readContent({
  body,
  isUnparsed,
}: FhirResponse): { readonly text: string; readonly isOutcome: boolean } | 'invalid' | undefined {
  if (typeof body !== 'string') return undefined
  if (!isUnparsed) return { text: body, isOutcome: OUTCOME.test(body) }
  if (findJsonExcess(body)) return 'invalid'
  try {
    const value: unknown = JSON.parse(body)
    return { text: body, isOutcome: isRecord(value) && value.resourceType === 'OperationOutcome' }
  } catch {
    return 'invalid'
  }
}

/** The time that an upstream sends may be invalid. */
function findLastModified({ version, headers }: FhirResponse): string | undefined {
  const time = version?.lastModified ?? Date.parse(headers?.['last-modified'] ?? '')
  return Number.isNaN(time) ? undefined : new Date(time).toISOString()
}

/** The response to an entry, if the budget has space for it; otherwise a write is reported without its content. */
export function fitEntry(budget: BundleBudget, response: FhirResponse, isWrite: boolean): string {
  const text = formatEntry(response)
  if (budget.takeSpace(text)) return text
  const { body: _, ...rest } = response
  return formatEntry(isWrite ? rest : toResponse(RESPONSE_TOO_LARGE))
}

/** The response to an entry that threw an error. */
export function describeFailedEntry(error: unknown): { readonly status: number; readonly body: string } {
  return toProblem(error).kind === 'unavailable' ? UNAVAILABLE : UNEXPECTED
}

const UNAVAILABLE = {
  status: 503,
  body: JSON.stringify(
    createOutcome(
      'transient',
      'Cannot process entry: the database is unavailable. Send this entry again later',
    ),
  ),
}

const UNEXPECTED = {
  status: 500,
  body: JSON.stringify(createOutcome('exception', 'Cannot process entry: an internal error occurred')),
}
