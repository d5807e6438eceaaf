import { AuditUnavailable, type FhirAudit, isAboutAudit, OUTCOME_UNKNOWN } from '../../audit/index.ts'
import { isFailure } from '../../core/index.ts'
import {
  ANY_ENTRIES,
  acceptsJson,
  failFor,
  getAuthorizationHeader,
  type Interaction,
  isPublic,
  mayWrite,
  parseEntries,
  readBinary,
  readBody,
  readPreconditions,
  readPreferences,
  runInTurns,
  wantsContent,
} from '../../fhir/index.ts'
import { type Authenticated, type Authenticator, noAccess } from '../../smart/index.ts'
import { toProblem } from '../../web/http/index.ts'
import { addProvenance } from '../bundle/add-provenance.ts'
import type { Context } from '../context.ts'
import { handle } from '../handle.ts'
import type { FhirRequest } from '../request.ts'
import { type Failure, type FhirResponse, failRefused } from '../response.ts'
import {
  type AuditOutcome,
  describeFinished,
  describeResponse,
  recordOutcome,
  recordStreamed,
  toCountedResponse,
  writeRecord,
} from './audit-request.ts'
import { type ApiRequest, type FhirApi, findInteraction, readBytes } from './fhir-api.ts'

// The responses of public interactions are the same for everybody, and contain no patient data.
const anonymous: Authenticated = {
  allowed: true,
  decide: () => ({ allowed: true, access: noAccess, by: 'public' }),
}

/** Decides the request before its body is parsed. */
async function readRequest(
  { bodyLimits, baseUrl, guard }: FhirApi,
  interaction: Interaction,
  request: ApiRequest,
): Promise<FhirRequest | Failure> {
  const { headers, work } = request
  const authenticated = isPublic(interaction) ? anonymous : request.authenticated
  if (!authenticated) throw new Error('Cannot decide: the caller is not authenticated')
  const decision = authenticated.decide(interaction, work)
  if (!decision.allowed) return failRefused(decision)
  const content = wantsContent(headers, interaction)
  if (!content && !acceptsJson(headers, interaction)) return failFor('not-acceptable')
  const { content: streamed } = request
  const read = streamed
    ? { body: readBinary(interaction, headers) }
    : readBody(interaction, headers, readBytes(request), bodyLimits)
  // The bytes would otherwise stay in memory until the response is sent.
  request.body = undefined
  if (isFailure(read)) return read
  return {
    interaction,
    body: read.body,
    content: streamed,
    ...(interaction.kind === 'bundle' && {
      entries: await runInTurns(work, parseEntries(read.body, baseUrl, work, ANY_ENTRIES)),
    }),
    work,
    chains: decision.chains,
    lacks: decision.lacks,
    preconditions: readPreconditions(headers),
    preferences: content ? { ...readPreferences(headers), content } : readPreferences(headers),
    access: decision.access,
    by: decision.by,
    authenticated,
    isRevoked: () => isRevoked(guard, request),
    requestId: String(request.id),
    connection: request.raw.socket,
    ...(request.isTrial && { isTrial: true }),
    ...(request.takesSearchset && { takesSearchset: true }),
    report: error => request.log.error({ err: error }, 'Entry of a batch failed'),
  }
}

/** A token that expires meanwhile has been valid for this request. */
async function isRevoked(guard: Authenticator, { raw }: ApiRequest): Promise<boolean> {
  const found = await guard.authenticate(getAuthorizationHeader(raw.rawHeaders))
  return !found.allowed && found.reason === 'token-revoked'
}

/** The response to an authenticated request, ready to be sent: its changes are durable and its audit records stored. */
export async function respondTo(api: FhirApi, request: ApiRequest): Promise<FhirResponse> {
  const { interaction = findInteraction(request, api) } = request
  if (request.bodyProblem) return recordOutcome(api, request, { interaction }, request.bodyProblem)
  if (isFailure(interaction)) return recordOutcome(api, request, { interaction }, interaction)
  const read = await readRequest(api, interaction, request)
  const allowed = isFailure(read) ? read : addProvenance(read, readProvenance(request), api.baseUrl)
  if (isFailure(allowed)) return recordOutcome(api, request, { interaction }, allowed)
  const { audit } = api
  const context = createContext(api, allowed)
  if (!audit) return toCountedResponse(api, await performDurably(context, allowed))
  if (mayWrite(allowed.interaction) && !allowed.isTrial && !isAboutAudit(interaction))
    return performWrite(api, audit, request, context, allowed)
  try {
    return await recordOutcome(api, request, allowed, await perform(context, audit, allowed))
  } catch (error) {
    return recordError(api, request, allowed, error)
  }
}

function readProvenance({ headers }: ApiRequest): string | undefined {
  const header = headers['x-provenance']
  return header === undefined ? undefined : String(header)
}

function createContext(api: FhirApi, request: FhirRequest): Context {
  const { backend } = api
  return {
    baseUrl: api.baseUrl,
    session: backend.forRequest(request),
    versionAccess: api.versionAccess,
    accessCache: backend.accessCache,
    pages: backend.pages,
    excludedTypes: backend.excludedTypes,
    capabilities: backend.capabilities,
    isRecorded: api.audit !== undefined,
    smartConfiguration: api.smartConfiguration,
    clock: api.clock,
    exports: api.exports,
    handle,
  }
}

async function performDurably(context: Context, request: FhirRequest): Promise<FhirResponse | Failure> {
  const outcome = await handle(context, request)
  if (!isFailure(outcome) && outcome.durable) await outcome.durable
  const flushing = context.session.flush?.()
  if (flushing) await flushing
  const settling = context.session.settle?.()
  if (settling) await settling
  return outcome
}

/** Records an error, which the error handler then answers. */
async function recordError(
  api: FhirApi,
  request: ApiRequest,
  allowed: FhirRequest,
  error: unknown,
): Promise<never> {
  if (!(error instanceof AuditUnavailable))
    await writeRecord(api, request, allowed, findOutcomeOfError(error))
  throw error
}

/** The status that the error handler responds with when the work throws. */
export function findOutcomeOfError(error: unknown): AuditOutcome {
  return { status: toProblem(error).kind === 'unavailable' ? 503 : 500 }
}

const UNKNOWN: AuditOutcome = { status: OUTCOME_UNKNOWN }

/** AuditEvents are served from the audit trail, everything else by the backend. */
function perform(context: Context, audit: FhirAudit, request: FhirRequest): Promise<FhirResponse | Failure> {
  const { interaction, access, preferences, work } = request
  if (!isAboutAudit(interaction)) return performDurably(context, request)
  return audit.serve<Failure>({
    interaction,
    access,
    lenient: preferences.lenient,
    work,
    panelMembers: (panels, patients) => context.session.panelMembers(panels, patients),
  })
}

/**
 * Makes a change and records it. A backend that stores the data itself writes both in one transaction. Otherwise the
 * change is announced before it is sent, and a change that cannot be announced is not sent.
 */
async function performWrite(
  api: FhirApi,
  audit: FhirAudit,
  request: ApiRequest,
  context: Context,
  allowed: FhirRequest,
): Promise<FhirResponse> {
  const describe = (outcome: FhirResponse | Failure) => describeResponse(api, request, allowed, outcome)
  const begun = describeFinished(api, request, allowed, UNKNOWN)
  const { session } = context
  if (session.local?.announce) {
    const audited = {
      createRecords: (outcome: FhirResponse) => audit.createRecords(describe(outcome), allowed.work),
      describeBegun: () => audit.createBegunRecords(begun, allowed.work),
    }
    try {
      await audit.prepare()
      const outcome = await performDurably({ ...context, audited }, allowed)
      if (!isFailure(outcome) && outcome.isRecorded) return outcome
      return await recordOutcome(api, request, allowed, outcome)
    } catch (error) {
      return recordError(api, request, allowed, error)
    }
  }
  const intent = await audit.intend(begun, allowed.work)
  try {
    const outcome = await performDurably(context, allowed)
    await audit.complete(intent, describe(outcome), allowed.work)
    return recordStreamed(api, request, allowed, toCountedResponse(api, outcome))
  } catch (error) {
    await audit.complete(
      intent,
      describeFinished(api, request, allowed, findOutcomeOfError(error)),
      allowed.work,
    )
    throw error
  }
}
