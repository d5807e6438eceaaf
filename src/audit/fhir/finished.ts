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
import type { AuditedRequest } from './audited-request.ts'
import { limitPatients } from './find-patients.ts'
import type { Kept } from './patients-in.ts'
import { recordOf } from './to-record.ts'

/** A request that a FHIR server has decided and answered, but whose response has not gone out. */
export interface Finished {
  readonly at: number
  readonly method: string
  /** Raw, below the base. */
  readonly address: string
  readonly interaction: Interaction | Misunderstood
  /** The caller, once its token was found good. */
  readonly admitted?: Authenticated | undefined
  /** What the token said, where it was good once and is no more. */
  readonly held?: Grant | undefined
  /** What decided. */
  readonly by?: string | undefined
  /** What came of it where it was not what was asked for. */
  readonly problem?: { readonly problem: string } | undefined
  readonly status: number
  /** JSON of the answer, where there is one. */
  readonly answer?: string | undefined
  /** JSON that was sent, parsed. */
  readonly sent?: unknown
  /** Of the version that was written, or of the resource that was deleted. */
  readonly location?: string | undefined
  /** Of a write: the resource as it was before, where the server has it in hand. */
  readonly before?: Resource | undefined
  /** Of a Bundle: the responses to its entries, where the server has them in hand. */
  readonly entries?: readonly Pick<Finished, 'status' | 'answer' | 'location' | 'before'>[] | undefined
  /** What the server keeps, where it can tell. */
  readonly kept?: Kept | undefined
  readonly requestId?: string | undefined
  readonly clientAddress?: string | undefined
}

/** The records of a request: one, and one for each entry of a Bundle. */
export function recordsOf(finished: Finished, fhirBaseUrl: string): readonly AuditRecord[] {
  const { interaction, admitted, held, problem, answer } = finished
  const refusal = problem && refusalIn(problem)
  const anonymous = admitted === undefined && held === undefined
  const whole = { ...finished, anonymous, grant: admitted?.grant ?? held, refusal, body: answer }
  if (interaction.kind !== 'bundle' || refusal === BAD) return [recordOf(whole, fhirBaseUrl)]
  const entries = entriesOf(finished, fhirBaseUrl).map(entry => recordOf(entry, fhirBaseUrl))
  const record = recordOf({ ...whole, body: undefined }, fhirBaseUrl)
  const patients = entries.flatMap(it => it.patients ?? it.patient ?? [])
  return [{ ...record, ...(patients.length > 0 && fileUnder(limitPatients(patients))) }, ...entries]
}

const BAD = 'Not understood'

/** Why it was turned away; undefined where it was let through, whatever then became of it. */
function refusalIn(found: { readonly problem: string }): Refused | string | undefined {
  // A server may have problems of its own besides: none of them is a refusal.
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
      return refusalIn(problem.cause)
    default:
      return undefined
  }
}

interface EntryFailed {
  readonly problem: 'entry-failed'
  readonly cause: { readonly problem: string }
}

const OUT_OF_REACH = 'Not within the granted patient, user or filter.'

/** The entries of a Bundle, each with its own decision and what was answered to it. */
function entriesOf(finished: Finished, fhirBaseUrl: string): readonly AuditedRequest[] {
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
      // Of a transaction that failed nothing was done.
      status: answered?.status ?? (typeof refusal === 'object' ? refusal.status : status),
      resource: answered?.resource,
      body: answered?.answer,
      before: answered?.before,
    }
  })
}

interface EntryAnswer extends Pick<Finished, 'status' | 'answer' | 'location' | 'before'> {
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
