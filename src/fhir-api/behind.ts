import type { FastifyReply } from 'fastify'
import type { AuditRecord, Finished } from '../audit/index.ts'
import type { AnyProblem, FhirProblem } from '../fhir/index.ts'
import type { Panel, PanelMembership } from '../smart/index.ts'
import type { FhirRequest } from './call.ts'

/** The server behind the door, with answers (`A`) and problems (`P`) of its own. */
export interface Behind<A extends object, P extends AnyProblem> {
  /** Does what has been allowed, within the access that it was allowed with. */
  perform(asked: FhirRequest): A | P | Promise<A | P>
  /**
   * Makes a change in one transaction with the audit records of its outcome, where the server keeps its own data.
   * `recorded` tells whether it did: what changed nothing may be left to the caller.
   */
  performRecorded?(asked: FhirRequest, audited: Audited<A | P>): Promise<PerformedChange<A | P>>
  /** The response to a problem. */
  answerOf(problem: P | FhirProblem): A
  /** Who of these patients is on the panels of a policy, as far as the audit trail has to know. */
  rosterOf(
    asked: FhirRequest,
    panels: readonly Panel[],
    patients: ReadonlySet<string>,
  ): PanelMembership | P | Promise<PanelMembership | P>
  /** The response to a question that the audit trail has answered. */
  answerFrom(trail: { readonly status: 200; readonly body: string }): A
  /** What an answer says, for the audit trail. */
  told(answer: A): AuditOutcome
  /** What it keeps, for the audit trail, where it can tell. */
  readonly kept?: Finished['kept']
  send(reply: FastifyReply, answer: A): FastifyReply | Promise<FastifyReply>
}

export interface Audited<Outcome> {
  /** The audit records of an outcome. */
  recordsOf(outcome: Outcome): readonly AuditRecord[]
  /** The records of a change that is begun, as long as its outcome is not known. */
  begun(): readonly AuditRecord[]
}

export interface PerformedChange<Outcome> {
  readonly outcome: Outcome
  readonly recorded: boolean
}

export type AuditOutcome = Pick<Finished, 'status' | 'answer' | 'location' | 'before'>
