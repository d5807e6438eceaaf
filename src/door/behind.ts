import type { FastifyReply } from 'fastify'
import type { Finished } from '../audit/index.ts'
import type { FhirProblem } from '../fhir/index.ts'
import type { Asked } from './call.ts'

/** The server behind the door, with answers (`A`) and problems (`P`) of its own. */
export interface Behind<A extends object, P extends AnyProblem> {
  /** Does what has been allowed, within the access that it was allowed with. */
  perform(asked: Asked): A | P | Promise<A | P>
  /** The response to a problem. */
  answerOf(problem: P | FhirProblem): A
  /** The response to a question that the audit trail has answered. */
  answerFrom(trail: { readonly status: 200; readonly body: string }): A
  /** What an answer says, for the audit trail. */
  told(answer: A): Told
  /** What it keeps, for the audit trail, where it can tell. */
  readonly kept?: Finished['kept']
  send(reply: FastifyReply, answer: A): FastifyReply | Promise<FastifyReply>
}

export interface AnyProblem {
  readonly problem: string
}

export type Told = Pick<Finished, 'status' | 'answer' | 'location' | 'before'>
