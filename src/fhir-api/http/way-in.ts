import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  type Because,
  type CallReason,
  formatExact,
  getAuthorizationHeader,
  getFhirWords,
  type Refused,
} from '../../fhir/index.ts'
import type { Authenticated, Authenticator } from '../../smart/index.ts'
import { type FhirResponse, failRefused } from '../response.ts'
import { recordOutcome, writeRecord } from './audit-request.ts'
import { type ApiRequest, type FhirApi, findInteraction } from './fhir-api.ts'
import { findOutcomeOfError, respondTo } from './respond.ts'

/**
 * Another way in for requests: a path below the FHIR base with access tokens of its own audience. Its requests are decided,
 * performed and recorded like those that arrive at the FHIR base.
 */
export interface WayIn {
  /** Below the FHIR base. */
  readonly path: `/${string}`
  readonly guard: Authenticator
  /** Adds its routes. */
  serve(app: FastifyInstance, entrance: Entrance): void
}

export interface Entrance {
  readonly clock: () => number
  /** The parameter of page links. */
  readonly pageParameter: string
  /** Verifies the token of an HTTP request. A refusal is recorded. */
  authenticate(request: FastifyRequest): Promise<Authenticated | Refused>
  /** Decides and performs a FHIR request of the caller, and records it. */
  perform(request: FastifyRequest, caller: Authenticated, inner: InnerRequest): Promise<FhirResponse>
  /** Records a message of the caller that made no FHIR request: it was refused, failed, or needed none. */
  record(request: FastifyRequest, caller: Authenticated, call: RecordedCall): Promise<void>
}

interface RecordedCall extends CallEnd {
  readonly tool?: string | undefined
}

/** How a call has ended: with neither, it has succeeded. */
export interface CallEnd {
  readonly refusal?: Because<CallReason> | undefined
  readonly error?: unknown
}

/** A FHIR request that one HTTP request makes. */
export interface InnerRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below the FHIR base, with its query. */
  readonly url: string
  /** Exact JSON (`parseExact`). */
  readonly body?: unknown
  readonly headers?: IncomingHttpHeaders
  /** For the audit trail: the tool that makes it. */
  readonly tool?: string | undefined
  /** A write is decided, validated and checked as if it were made, and is not made. */
  readonly isTrial?: true
  /** The page of a search is returned as values (`FhirResponse.searchset`), unless the upstream's Bundle is passed on. */
  readonly takesSearchset?: true
}

export function createEntrance(api: FhirApi, { path, guard }: Pick<WayIn, 'path' | 'guard'>): Entrance {
  return {
    clock: api.clock,
    pageParameter: api.backend.pages.parameter,
    async authenticate(request) {
      request.work = api.createWork()
      const found = await guard.authenticate(getAuthorizationHeader(request.raw.rawHeaders))
      if (found.allowed) return found
      const input = { interaction: findInteraction(request, api), rejectedGrant: found.rejectedGrant }
      await recordOutcome(api, request, input, failRefused(found))
      return found
    },
    perform: (request, caller, inner) => respondTo(api, createRequest(api, request, caller, inner)),
    async record(request, caller, { tool, refusal, error }) {
      const call = createRequest(api, request, caller, { method: 'POST', url: path, tool })
      const outcome =
        error === undefined
          ? { status: refusal ? getFhirWords(refusal.reason).status : 200 }
          : findOutcomeOfError(error)
      await writeRecord(
        api,
        { ...call, isCall: true },
        { interaction: findInteraction(call, api) },
        outcome,
        refusal,
      )
    },
  }
}

/** The FHIR requests of one HTTP request share its work. */
function createRequest(
  { basePath }: FhirApi,
  { id, ip, raw, log, work }: FastifyRequest,
  caller: Authenticated,
  { method, url, body, headers, tool, isTrial, takesSearchset }: InnerRequest,
): ApiRequest {
  return {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/fhir+json' }), ...headers },
    id: String(id),
    ip,
    raw: { url: basePath + url, rawHeaders: raw.rawHeaders, socket: raw.socket },
    log,
    tool,
    ...(isTrial && { isTrial }),
    ...(takesSearchset && { takesSearchset }),
    body: body === undefined ? undefined : Buffer.from(formatExact(body)),
    work,
    authenticated: caller,
    interaction: undefined,
    content: undefined,
    bodyProblem: undefined,
  }
}
