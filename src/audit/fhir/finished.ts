import {
  type FhirProblem,
  type Interaction,
  isProblem,
  isRecord,
  type Misunderstood,
  parseEntries,
  type Refused,
  type Resource,
} from '../../fhir/index.ts'
import type { Authenticated, Grant } from '../../smart/index.ts'
import { type AuditRecord, fileUnder } from '../record.ts'
import { type AuditedRequest, type Kept, limitPatients } from './find-patients.ts'
import { recordOf } from './to-record.ts'

/** A request that a FHIR server has decided, but whose response is not yet sent. */
export interface FinishedRequest {
  readonly at: number
  readonly method: string
  readonly address: string
  readonly interaction: Interaction | Misunderstood
  readonly admitted?: Authenticated | undefined
  /** The grant of a token that was valid before. */
  readonly held?: Grant | undefined
  readonly by?: string | undefined
  readonly problem?: { readonly problem: string } | undefined
  readonly status: number
  readonly answer?: string | undefined
  readonly sent?: unknown
  readonly location?: string | undefined
  /** The resource before a write, if the server has it. */
  readonly before?: Resource | undefined
  readonly entries?: readonly Pick<FinishedRequest, 'status' | 'answer' | 'location' | 'before'>[] | undefined
  readonly kept?: Kept | undefined
  readonly requestId?: string | undefined
  readonly clientAddress?: string | undefined
}

export function createRecords(finished: FinishedRequest, fhirBaseUrl: string): readonly AuditRecord[] {
  const { interaction, admitted, held, problem, answer } = finished
  const refusal = problem && findRefusal(problem)
  const anonymous = admitted === undefined && held === undefined
  const whole = { ...finished, anonymous, grant: admitted?.grant ?? held, refusal, body: answer }
  if (interaction.kind !== 'bundle' || refusal === BAD) return [recordOf(whole, fhirBaseUrl)]
  const entries = listEntries(finished, fhirBaseUrl).map(entry => recordOf(entry, fhirBaseUrl))
  const record = recordOf({ ...whole, body: undefined }, fhirBaseUrl)
  const patients = entries.flatMap(it => it.patients ?? it.patient ?? [])
  return [{ ...record, ...(patients.length > 0 && fileUnder(limitPatients(patients))) }, ...entries]
}

const BAD = 'Not understood'

/** Undefined if the request was allowed, whatever its outcome. */
function findRefusal(found: { readonly problem: string }): Refused | string | undefined {
  // Other problems of the server are not refusals.
  const problem = found as FhirProblem | EntryFailed
  switch (problem.problem) {
    case 'refused':
      return problem.refused
    case 'out-of-reach':
      return OUT_OF_REACH
    case 'misunderstood':
      return problem.text
    case 'bad-bundle':
      return BAD
    case 'entry-failed':
      return findRefusal(problem.cause)
    default:
      return undefined
  }
}

interface EntryFailed {
  readonly problem: 'entry-failed'
  readonly cause: { readonly problem: string }
}

const OUT_OF_REACH = 'Not within the granted patient, user or filter.'

function listEntries(finished: FinishedRequest, fhirBaseUrl: string): readonly AuditedRequest[] {
  const { admitted, sent, answer, status, at, requestId, clientAddress, kept } = finished
  const parsed = parseEntries(sent, fhirBaseUrl)
  if (isProblem(parsed)) return []
  const answers: readonly EntryAnswer[] = finished.entries ?? (status < 300 ? answersIn(answer) : [])
  const resources = resourcesIn(sent)
  return parsed.entries.map(({ interaction }, place) => {
    const answered = answers[place]
    const decision = interaction.kind === 'misunderstood' ? undefined : admitted?.decide(interaction)
    const refusal =
      interaction.kind === 'misunderstood'
        ? interaction.text
        : decision && !decision.allowed
          ? decision
          : answered?.status === 403
            ? OUT_OF_REACH
            : undefined
    return {
      ...{ at, requestId, clientAddress, interaction, refusal, kept },
      sent: resources[place],
      location: answered?.location,
      method: methodOf(interaction),
      grant: admitted?.grant,
      by: decision?.by,
      // A failed transaction changed nothing.
      status: answered?.status ?? (typeof refusal === 'object' ? refusal.status : status),
      resource: answered?.resource,
      body: answered?.answer,
      before: answered?.before,
    }
  })
}

interface EntryAnswer extends Pick<FinishedRequest, 'status' | 'answer' | 'location' | 'before'> {
  readonly resource?: unknown
}

function answersIn(answer: string | undefined): readonly EntryAnswer[] {
  const bundle: unknown = answer === undefined ? undefined : JSON.parse(answer)
  if (!isRecord(bundle) || !Array.isArray(bundle.entry)) return []
  return bundle.entry.map(entry => {
    const { response, resource } = isRecord(entry) ? entry : {}
    const status = isRecord(response) ? Number.parseInt(String(response.status), 10) : 0
    const location =
      isRecord(response) && typeof response.location === 'string' ? response.location : undefined
    return { status, location, resource: isRecord(resource) ? resource : undefined }
  })
}

function resourcesIn(sent: unknown): readonly unknown[] {
  if (!isRecord(sent) || !Array.isArray(sent.entry)) return []
  return sent.entry.map(entry => (isRecord(entry) ? entry.resource : undefined))
}

function methodOf(interaction: Interaction | Misunderstood): string {
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
      return 'posted' in interaction && interaction.posted ? 'POST' : 'GET'
  }
}
