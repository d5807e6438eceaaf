import type { Failed } from '../core/index.ts'
import type { Schema } from '../store/index.ts'

type Row = Schema['proposal']

export type ProposalState = Row['state']

/** The assistant, and the person for whom it acts. */
export interface Proposer {
  readonly userId: string
  readonly clientId: string
  readonly grantId: string
  readonly patient: string | undefined
}

export interface ProposedChange {
  readonly action: Row['action']
  readonly type: string
  /** Undefined for a create. */
  readonly id?: string
  /** The `ETag` of the version that the assistant has seen. */
  readonly version?: string
  /** JSON of the resource or of the JSON Patch, with the digits that the assistant sent. Undefined for a delete. */
  readonly content?: string
  /** In the words of the assistant. */
  readonly reason: string
}

/** What became of it. */
export interface ProposalOutcome {
  /** The resource and the `ETag` of the version that was written. */
  readonly reference?: string
  readonly version?: string
  /** Why it was rejected. */
  readonly reason?: string
}

export interface Proposal extends Proposer {
  readonly id: string
  readonly change: ProposedChange
  readonly state: ProposalState
  readonly createdAt: number
  readonly expiresAt: number
  readonly decidedAt: number | undefined
  readonly outcome: ProposalOutcome
}

export interface TooManyProposals extends Failed {
  readonly reason: 'too-many-proposals'
  readonly most: number
}
