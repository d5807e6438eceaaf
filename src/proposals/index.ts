/**
 * Changes that assistants propose. They are kept encrypted until a person signs or rejects them. The module decides nothing
 * about who may propose or sign, and writes nothing to a record.
 */

export {
  OPEN_OF_CLIENT,
  OPEN_OF_GRANT,
  OPEN_OF_USER,
  PROPOSAL_CHARACTERS,
  REASON_CHARACTERS,
} from './limits.ts'
export type {
  Proposal,
  ProposalOutcome,
  ProposalState,
  ProposedChange,
  Proposer,
  TooManyProposals,
} from './proposal.ts'
export { createProposals, type Proposals } from './proposals.ts'
