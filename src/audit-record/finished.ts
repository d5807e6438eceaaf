import { isFailure, isRecord, toRecord } from '../core/index.ts'
import {
  type Because,
  type FhirProblem,
  failFor,
  type Interaction,
  isFor,
  type Misunderstood,
  parseLimited,
  parseReference,
  runAtOnce,
  runInTurns,
  type Work,
} from '../fhir/index.ts'
import type { Authenticated, Grant } from '../smart/index.ts'
import type { SentContent } from './content-patients.ts'
import { type AuditedRequest, listOnce } from './find-patients.ts'
import { type AuditRecord, fileUnder, OTHERS, OUTCOME_UNKNOWN } from './record.ts'
import { createRecord } from './to-record.ts'

/** A request that a FHIR server has decided, but whose response is not yet sent (`fhir-api/http/audit-request.ts`). */
export interface FinishedRequest {
  readonly at: number
  readonly method: string
  /** The tool that made the request for an assistant. */
  readonly tool?: string | undefined
  /** Whether a change was only tried: nothing was written. */
  readonly isTrial?: true | undefined
  /** Whether it is a message of an assistant that made no FHIR request. */
  readonly isCall?: true | undefined
  readonly address: string
  readonly interaction: Interaction | Misunderstood
  readonly authenticated?: Authenticated | undefined
  /** The grant of a token that was valid before. */
  readonly rejectedGrant?: Grant | undefined
  readonly by?: string | undefined
  readonly problem?: { readonly reason: string } | undefined
  readonly status: number
  readonly responseBody?: string | undefined
  /** The resources in the response, if the server has them. */
  readonly contents?: AuditedRequest['contents']
  readonly requestBody?: unknown
  /** The entries of a Bundle. One that was not processed was not decided either. */
  readonly decided?: readonly DecidedEntry[] | undefined
  readonly location?: string | undefined
  /** The resource after a change, and before it, if the server has them. */
  readonly after?: AuditedRequest['after']
  readonly before?: AuditedRequest['before']
  /** The documents that name the Binary of the response. */
  readonly documents?: AuditedRequest['documents']
  readonly entries?: readonly Outcome[] | undefined
  readonly requestId?: string | undefined
  readonly clientAddress?: string | undefined
}

interface DecidedEntry {
  readonly interaction: Interaction | Misunderstood
  readonly decision: ReturnType<Authenticated['decide']> | undefined
}

type Outcome = Pick<
  FinishedRequest,
  'status' | 'responseBody' | 'contents' | 'location' | 'after' | 'before' | 'documents'
>

type Records = readonly [AuditRecord, ...AuditRecord[]]

/** The record of the request, for one resource those of each of its patients, and for a Bundle those of its entries. */
export function createRecords(finished: FinishedRequest, fhirBaseUrl: string): Records {
  return runAtOnce(createInSteps(finished, fhirBaseUrl))
}

/** The same records, made with pauses: a Bundle has many. */
export async function createRecordsInTurns(
  finished: FinishedRequest,
  fhirBaseUrl: string,
  work: Work,
): Promise<Records> {
  return runInTurns(work, createInSteps(finished, fhirBaseUrl))
}

function* createInSteps(finished: FinishedRequest, fhirBaseUrl: string): Generator<undefined, Records> {
  const { interaction, authenticated, rejectedGrant, problem, responseBody } = finished
  const refusal = problem && findRefusal(problem)
  const isUnknown = authenticated === undefined && rejectedGrant === undefined
  const anonymous = isUnknown || problem?.reason === 'calls-too-many'
  const whole = {
    ...finished,
    anonymous,
    grant: authenticated?.grant ?? rejectedGrant,
    refusal,
    failure: problem && findFailure(problem),
    body: responseBody,
  }
  const losses = describeLoss(whole, fhirBaseUrl)
  if (interaction.kind !== 'bundle' || isUnread(refusal))
    return [...createForEach(createRecord(whole, fhirBaseUrl)), ...losses]
  const entries: AuditRecord[] = []
  for (const entry of listEntries(finished, fhirBaseUrl)) {
    entries.push(createRecord(entry, fhirBaseUrl))
    yield
  }
  const record = createRecord({ ...whole, body: undefined }, fhirBaseUrl)
  const patients = entries.flatMap(it => it.patients ?? it.patient ?? [])
  return [
    { ...record, ...(patients.length > 0 && fileUnder(listOnce(patients))) },
    ...entries.flatMap(createForEach),
    ...losses,
  ]
}

/** Requests whose text names one resource and no patient. */
const OF_ONE_RESOURCE: ReadonlySet<string | undefined> = new Set([
  'read',
  'vread',
  'history-instance',
  'create',
  'update',
  'patch',
  'delete',
])

/** A Group may have thousands. */
const MAX_PATIENTS = 10

/**
 * One record for each patient of a resource, without the others: a caller who is limited to a patient sees no record that
 * names another one, and has to see who has read or changed the resource (AUDIT-26).
 */
function createForEach(record: AuditRecord): Records {
  const { patients } = record
  const isDone = record.allowed && record.status < 400 && record.status !== OUTCOME_UNKNOWN
  if (patients === undefined || !isDone || !OF_ONE_RESOURCE.has(record.interaction)) return [record]
  const [first, ...others] = patients
  const isOfAll = record.type === 'Patient' || patients.length > MAX_PATIENTS || patients.includes(OTHERS)
  if (first === undefined || isOfAll) return [record]
  const createFor = (patient: string) => ({ ...record, patients: undefined, patient })
  return [createFor(first), ...others.map(createFor)]
}

/** A further record of a request, under the patients of a part of its response. */
export function createPatientRecord(
  finished: FinishedRequest,
  patients: readonly string[],
  fhirBaseUrl: string,
  reason = 'Patients of a long response, recorded while it was sent',
): AuditRecord {
  const [record] = createRecords({ ...finished, requestBody: undefined, decided: undefined }, fhirBaseUrl)
  return {
    ...record,
    patient: undefined,
    patients: undefined,
    ...fileUnder(listOnce(patients)),
    reason,
  }
}

/** Whether the entries of a Bundle are not known. */
function isUnread(refusal: AuditedRequest['refusal']): boolean {
  return refusal?.reason !== undefined && isFor('bad-bundle', refusal.reason)
}

const LOSSES = {
  overwritten: {
    status: 200,
    reason: 'A create has replaced a resource that was created at the same time.',
  },
  'deleted-newer': {
    status: 204,
    reason: 'A delete has deleted a version that was written at the same time.',
  },
} as const

interface Lost {
  readonly reason: keyof typeof LOSSES
  readonly affected: readonly SentContent[]
}

/** A failed request that has changed a version of another client is recorded under the patients of all versions concerned. */
function describeLoss(whole: AuditedRequest & FinishedRequest, fhirBaseUrl: string): readonly AuditRecord[] {
  const loss = whole.problem && findLoss(whole.problem)
  if (!loss) return []
  const { status, reason } = LOSSES[loss.reason]
  const record = createRecord({ ...whole, status, contents: loss.affected }, fhirBaseUrl)
  return [{ ...record, reason }]
}

function findLoss(found: { readonly reason: string }): Lost | undefined {
  const problem = found as Lost | EntryFailed
  if (problem.reason === 'entry-failed') return findLoss(problem.cause)
  return Object.hasOwn(LOSSES, problem.reason) ? problem : undefined
}

/** Undefined if the request was allowed, whatever its outcome. */
function findRefusal(found: { readonly reason: string }): AuditedRequest['refusal'] {
  // Other problems of the server are not refusals.
  const problem = found as FhirProblem | EntryFailed
  if (problem.reason === 'entry-failed') return findRefusal(problem.cause)
  if (problem.reason === 'refused') return problem.refused
  return isRefusing(problem) ? problem : undefined
}

function isRefusing({
  reason,
  kind,
}: {
  readonly reason: string
  readonly kind?: string | undefined
}): boolean {
  const isOutside = reason === 'outside-access' || reason === 'hidden-target' || isFor('not-within', reason)
  const isUnclear = kind === 'misunderstood' || isFor('bad-bundle', reason)
  return isOutside || isUnclear || isFor('refused-call', reason)
}

function findFailure(found: { readonly reason: string }): Because | undefined {
  const problem = found as FhirProblem | EntryFailed
  if (problem.reason === 'entry-failed') return findFailure(problem.cause)
  return problem.reason === 'refused' ? undefined : problem
}

/** A transaction that failed because of one entry. */
interface EntryFailed {
  readonly reason: 'entry-failed'
  readonly entry: number
  readonly cause: { readonly reason: string }
}

function* listEntries(finished: FinishedRequest, fhirBaseUrl: string): Generator<AuditedRequest> {
  const { authenticated, requestBody, responseBody, status, at, tool, requestId, clientAddress } = finished
  const { decided = [] } = finished
  const outcomes: readonly EntryOutcome[] =
    finished.entries ?? (status < 300 ? parseOutcomes(responseBody) : [])
  const findResource = openResources(requestBody, outcomes, fhirBaseUrl)
  for (const [place, { interaction, decision }] of decided.entries()) {
    const outcome = outcomes[place]
    const refusal =
      interaction.kind === 'misunderstood'
        ? interaction
        : decision && !decision.allowed
          ? decision
          : findContentRefusal(place, outcome, finished.problem)
    yield {
      at,
      tool,
      requestId,
      clientAddress,
      interaction,
      refusal,
      requestBody: findResource(place),
      location: outcome?.location,
      method: findMethod(interaction),
      grant: authenticated?.grant,
      by: decision?.by,
      // A failed transaction changed nothing.
      status: outcome?.status ?? (refusal && !isFailure(refusal) ? refusal.status : status),
      resource: outcome?.resource,
      body: outcome?.responseBody,
      contents: outcome?.contents,
      after: outcome?.after,
      before: outcome?.before,
      documents: outcome?.documents,
    }
  }
}

/** A batch refuses an entry with a status of its own; a transaction fails because of one. */
function findContentRefusal(
  place: number,
  outcome: EntryOutcome | undefined,
  problem: FinishedRequest['problem'],
): AuditedRequest['refusal'] {
  if (outcome?.status === 403) return failFor('outside-access')
  const failed = problem as FhirProblem | EntryFailed | undefined
  return failed?.reason === 'entry-failed' && failed.entry === place ? findRefusal(failed.cause) : undefined
}

interface EntryOutcome extends Outcome {
  readonly resource?: unknown
}

function parseOutcomes(body: string | undefined): readonly EntryOutcome[] {
  const bundle = body === undefined ? undefined : parseLimited(body)
  if (!isRecord(bundle) || !Array.isArray(bundle.entry)) return []
  return bundle.entry.map(entry => {
    const { response, resource } = toRecord(entry)
    const status = isRecord(response) ? Number.parseInt(String(response.status), 10) : 0
    const location =
      isRecord(response) && typeof response.location === 'string' ? response.location : undefined
    return { status, location, resource: isRecord(resource) ? resource : undefined }
  })
}

/** The resource of each entry of a Bundle. Its references to other entries name the resources that those became. */
function openResources(
  body: unknown,
  outcomes: readonly EntryOutcome[],
  fhirBaseUrl: string,
): (place: number) => unknown {
  const entries = isRecord(body) && Array.isArray(body.entry) ? body.entry.map(toRecord) : []
  const written = new Map(
    entries.flatMap(({ fullUrl }, place) => {
      const target = parseReference(outcomes[place]?.location ?? '', fhirBaseUrl)
      return typeof fullUrl === 'string' && target ? [[fullUrl, `${target.type}/${target.id}`] as const] : []
    }),
  )
  return place => {
    const resource = entries[place]?.resource
    return written.size === 0 ? resource : replaceReferences(resource, written)
  }
}

function replaceReferences(value: unknown, targets: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map(item => replaceReferences(item, targets))
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      name === 'reference' && typeof item === 'string'
        ? (targets.get(item) ?? item)
        : replaceReferences(item, targets),
    ]),
  )
}

function findMethod(interaction: Interaction | Misunderstood): string {
  switch (interaction.kind) {
    case 'create':
    case 'bundle':
      return 'POST'
    case 'update':
    case 'update-conditional':
      return 'PUT'
    case 'patch':
    case 'patch-conditional':
      return 'PATCH'
    case 'delete':
    case 'delete-conditional':
      return 'DELETE'
    default:
      if ('cancels' in interaction) return 'DELETE'
      return 'posted' in interaction && interaction.posted ? 'POST' : 'GET'
  }
}
