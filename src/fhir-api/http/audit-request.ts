/**
 * On the way of an audit record: this file describes the decided request, `audit-record/finished.ts` makes its records,
 * `audit/auditor.ts` turns them into rows, and `store/trail.ts` stores them.
 */
import type { FinishedRequest } from '../../audit/index.ts'
import { isFailure } from '../../core/index.ts'
import type { Interaction, Misunderstood } from '../../fhir/index.ts'
import type { Grant } from '../../smart/index.ts'
import { listDecided } from '../bundle/entry.ts'
import type { FhirRequest } from '../request.ts'
import { type Failure, type FhirResponse, isOutside } from '../response.ts'
import { toResponse } from '../to-response.ts'
import { recordPatients, recordStream } from './audit-stream.ts'
import type { ApiRequest, FhirApi } from './fhir-api.ts'

/** The request, as far as it is known. */
interface AuditInput {
  readonly interaction: Interaction | Misunderstood
  readonly by?: string | undefined
  readonly body?: unknown
  readonly entries?: FhirRequest['entries']
  /** The grant of a token that has expired or was revoked. */
  readonly rejectedGrant?: Grant | undefined
}

export type AuditOutcome = Pick<
  FinishedRequest,
  'status' | 'responseBody' | 'contents' | 'location' | 'after' | 'before' | 'documents' | 'entries'
>

/** Returns the response once the audit trail has recorded it, so that it may be sent. */
export async function recordOutcome(
  api: FhirApi,
  request: ApiRequest,
  input: AuditInput,
  outcome: FhirResponse | Failure,
): Promise<FhirResponse> {
  const response = toCountedResponse(api, outcome)
  try {
    if (api.audit) await writeRecord(api, request, input, toAuditOutcome(response), getFailure(outcome))
  } catch (error) {
    if (typeof response.body === 'object') response.body.destroy()
    throw error
  }
  return recordStreamed(api, request, input, response)
}

/** Records the patients of a response that is sent as a stream, unless its contents are known. */
export function recordStreamed(
  api: FhirApi,
  request: ApiRequest,
  input: AuditInput,
  response: FhirResponse,
): FhirResponse {
  const { audit, baseUrl } = api
  const { body, contents, streamed } = response
  if (!audit || body === undefined || typeof body === 'string' || contents) return response
  const finished = describeFinished(api, request, input, toAuditOutcome(response))
  return {
    ...response,
    body: streamed
      ? recordStream(body, streamed, patients =>
          audit.recordPatients(finished, patients, streamed.describe()),
        )
      : recordPatients(body, baseUrl, patients => audit.recordPatients(finished, patients)),
  }
}

/** The response to send. A refusal of its content is counted. */
export function toCountedResponse(
  { decisions }: Pick<FhirApi, 'decisions'>,
  outcome: FhirResponse | Failure,
): FhirResponse {
  if (isFailure(outcome) && isOutside(outcome)) decisions.add(OUTSIDE)
  return makeResponse(outcome)
}

const OUTSIDE = ['refused', 'outside-access']

function makeResponse(outcome: FhirResponse | Failure): FhirResponse {
  return isFailure(outcome) ? toResponse(outcome) : outcome
}

/** Resolves when `audit/auditor.ts`, which makes the record, has it on disk. */
export function writeRecord(
  api: FhirApi,
  request: ApiRequest,
  input: AuditInput,
  outcome: AuditOutcome,
  failure?: Failure,
): Promise<void> | undefined {
  return api.audit?.record(describeFinished(api, request, input, outcome, failure), request.work)
}

export function describeResponse(
  api: FhirApi,
  request: ApiRequest,
  input: AuditInput,
  outcome: FhirResponse | Failure,
): FinishedRequest {
  return describeFinished(api, request, input, toAuditOutcome(makeResponse(outcome)), getFailure(outcome))
}

export function describeFinished(
  api: FhirApi,
  request: ApiRequest,
  { interaction, by, body, entries, rejectedGrant }: AuditInput,
  outcome: AuditOutcome,
  failure?: Failure,
): FinishedRequest {
  return {
    ...outcome,
    interaction,
    by,
    problem: failure,
    requestBody: body,
    decided: listDecided({ entries }),
    rejectedGrant,
    at: api.clock(),
    method: request.method,
    tool: request.tool,
    isTrial: request.isTrial,
    isCall: request.isCall,
    address: (request.raw.url ?? '').slice(api.basePath.length),
    authenticated: request.authenticated,
    requestId: String(request.id),
    clientAddress: request.ip,
  }
}

function toAuditOutcome(response: FhirResponse): AuditOutcome {
  const { status, location, headers, body, contents, deleted, after, before, documents, entries } = response
  return {
    status,
    responseBody: typeof body === 'string' ? body : undefined,
    contents,
    location: location ?? headers?.location ?? deleted,
    after,
    before,
    documents,
    entries: entries?.map(toAuditOutcome),
  }
}

function getFailure(outcome: FhirResponse | Failure): Failure | undefined {
  return isFailure(outcome) ? outcome : undefined
}
