import { STATUS_CODES } from 'node:http'
import { auditRefusal, type FinishedRequest, isAboutAudit } from '../../audit/index.ts'
import { isFailure, isRecord } from '../../core/index.ts'
import {
  createOutcome,
  type Entry,
  type EntryInteraction,
  failFor,
  findJsonExcess,
  limits,
} from '../../fhir/index.ts'
import { toProblem } from '../../web/http/index.ts'
import type { FhirRequest } from '../request.ts'
import { type Failure, type FhirResponse, failBroken, failRefused } from '../response.ts'
import { toResponse } from '../to-response.ts'

/** An entry as a request of its own: it is decided separately from the Bundle. */
export function toEntryRequest(bundle: FhirRequest, entry: Entry): FhirRequest<EntryInteraction> | Failure {
  const { interaction, body, preconditions } = entry
  if (isFailure(interaction)) return interaction
  const decision = decisions.get(entry) ?? bundle.authenticated.decide(interaction, bundle.work)
  decisions.set(entry, decision)
  if (!decision.allowed) return failRefused(decision)
  if (isAboutAudit(interaction)) return auditRefusal(interaction)
  const { entries: _, ...rest } = bundle
  return {
    ...rest,
    interaction,
    body,
    preconditions,
    access: decision.access,
    by: decision.by,
    chains: decision.chains,
    isEntry: true,
  }
}

/** Decides the entries one after the other, and lets other requests run in between. */
export async function* decideEntries(
  bundle: FhirRequest,
  entries: readonly Entry[],
): AsyncGenerator<FhirRequest<EntryInteraction> | Failure> {
  const budget = openBundleBudget(bundle)
  for (const entry of entries) {
    yield budget.problem() ?? toEntryRequest(bundle, entry)
    await bundle.work.pause()
  }
}

/** Each entry is decided once. */
const decisions = new WeakMap<Entry, EntryDecision>()

type EntryDecision = ReturnType<FhirRequest['authenticated']['decide']>

/** The entries of a Bundle with their decisions, for the audit trail. An entry that was not processed has none. */
export function listDecided({ entries }: Pick<FhirRequest, 'entries'>): FinishedRequest['decided'] {
  if (!entries || isFailure(entries)) return undefined
  return entries.entries.map(entry => ({ interaction: entry.interaction, decision: decisions.get(entry) }))
}

/**
 * JSON of the response to one entry: an OperationOutcome is its `outcome`, any other resource its `resource`. Content
 * stays text: parsed into an object it would need several times the memory.
 */
export function formatEntry(response: FhirResponse): string {
  const content = readEntryContent(response)
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

const INVALID = failBroken('its JSON is invalid')

const OUTCOME = /^\s*\{\s*"resourceType"\s*:\s*"OperationOutcome"/

function readEntryContent({
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

/** The limits that all entries of one Bundle share. */
export interface BundleBudget {
  /** Why no further entry is processed; undefined within the limits. */
  problem(): Failure | undefined
  /** Takes space for this text in the response. Returns false if there is not enough; then no further entry gets any. */
  takeSpace(text: string): boolean
}

export function openBundleBudget({ connection, work }: FhirRequest): BundleBudget {
  let bytesLeft = limits.BUNDLE_RESPONSE_BYTES

  function takeSpace(text: string): boolean {
    const bytes = text.length > bytesLeft ? text.length : Buffer.byteLength(text)
    const fits = bytesLeft >= bytes
    bytesLeft = fits ? bytesLeft - bytes : -1
    return fits
  }

  return {
    problem() {
      if (connection.destroyed) return CLIENT_GONE
      return bytesLeft < 0 ? RESPONSE_TOO_LARGE : work.failure
    },
    takeSpace,
  }
}

export const RESPONSE_TOO_LARGE = failFor('bundle-response-too-large', { most: limits.BUNDLE_RESPONSE_BYTES })

const CLIENT_GONE = failFor('client-gone')
