import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import {
  type AuditRecord,
  createRecords,
  type FinishedRequest,
  OUTCOME_UNKNOWN,
} from '../../audit-record/index.ts'
import type { Interaction, Refused } from '../../fhir/index.ts'
import { createHostWork } from '../decision/check-request.ts'
import { findRequestId } from './request-id.ts'

/** A longer response is recorded without its patients: `*` stands for them. */
const MAX_READ = 4 * 1024 * 1024

/** What the interceptor finds out about a request, for its audit records. */
type Known = Pick<
  FinishedRequest,
  'interaction' | 'authenticated' | 'rejectedGrant' | 'by' | 'requestBody'
> & {
  /** The interactions of a Bundle. */
  readonly entries?: readonly Interaction[]
}

export interface Observed {
  note(known: Partial<Known>): void
  /** Returns the refusal. */
  refuse(refused: Refused): Refused
}

interface ObservedExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly url: string
  readonly address?: string | undefined
}

export interface ObserverOptions {
  readonly baseUrl: string
  readonly basePath: string
  readonly clock: () => number
  /** Must not throw. */
  readonly record: (records: readonly AuditRecord[]) => void
  readonly onError: (error: unknown) => void
}

/**
 * Records a request when its response is complete or its connection is closed, so that no recording delays it. The
 * content that the host sends shows which patients are concerned.
 */
export function observe(
  { request, response, url, address }: ObservedExchange,
  interaction: FinishedRequest['interaction'],
  { baseUrl, basePath, clock, record, onError }: ObserverOptions,
): Observed {
  let known: Known = { interaction }
  let refused: Refused | undefined
  const readBody = collectBody(response)
  response.once('close', () => {
    try {
      record(createRecords(describe(), baseUrl))
    } catch (error) {
      onError(error)
    }
  })

  function describe(): FinishedRequest {
    const { entries = [], ...rest } = known
    const work = createHostWork()
    const problem = refused && { reason: 'refused', refused }
    const location = response.getHeader('location') ?? response.getHeader('content-location')
    return {
      ...rest,
      at: clock(),
      method: request.method ?? '',
      address: url.slice(basePath.length),
      problem,
      // The client may leave before the host has answered.
      status: response.headersSent ? response.statusCode : OUTCOME_UNKNOWN,
      responseBody: readBody(),
      location: typeof location === 'string' ? location : undefined,
      decided: entries.map(entry => ({
        interaction: entry,
        decision: rest.authenticated?.decide(entry, work),
      })),
      requestId: findRequestId(request, response),
      // A host that trusts every proxy takes whatever the client writes.
      clientAddress: address !== undefined && isIP(address) > 0 ? address : request.socket.remoteAddress,
    }
  }

  return {
    note(more) {
      known = { ...known, ...more }
    },
    refuse(refusal) {
      refused = refusal
      return refusal
    },
  }
}

/** Collects the body as it is sent. The returned function reads it; undefined if it is empty or too long. */
function collectBody(response: ServerResponse): () => string | undefined {
  const { write, end } = response
  const chunks: Buffer[] = []
  let length = 0
  const collect = (chunk: unknown, encoding: unknown) => {
    if (length > MAX_READ || (typeof chunk !== 'string' && !(chunk instanceof Uint8Array))) return
    // A copy: the host may use its buffer again.
    const copy =
      typeof chunk === 'string'
        ? Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
        : Buffer.from(chunk)
    length += copy.length
    chunks.push(copy)
    if (length > MAX_READ) chunks.length = 0
  }
  const observed =
    (send: (...sent: unknown[]) => unknown) =>
    (...sent: unknown[]) => {
      collect(sent[0], sent[1])
      return send.apply(response, sent)
    }
  Object.assign(response, {
    write: observed(write as (...sent: unknown[]) => unknown),
    end: observed(end as (...sent: unknown[]) => unknown),
  })
  return () => (chunks.length === 0 ? undefined : Buffer.concat(chunks).toString('utf8'))
}
