import { isFailure } from '../core/index.ts'
import type { Proposal, Proposals, ProposedChange, Proposer, TooManyProposals } from '../proposals/index.ts'
import type { Grant } from '../smart/index.ts'
import type { Store } from '../store/index.ts'

/** Where proposals are kept. */
export interface ProposalOptions {
  readonly store: Pick<Store, 'db'>
  readonly proposals: Proposals
  /** `smart.agents.proposal-days`, in milliseconds. */
  readonly lifetimeMs: number
  /** The page on which a person signs them. */
  readonly url: string
}

/** The proposals of the assistant that calls. */
export interface OwnProposals {
  findExcess(): Promise<TooManyProposals | undefined>
  add(change: ProposedChange): Promise<KeptProposal | TooManyProposals>
  list(): Promise<readonly Proposal[]>
}

interface KeptProposal {
  readonly id: string
  readonly expiresAt: number
  readonly url: string
}

/**
 * Whoever proposes acts for a person with an account of our auth server: only there can somebody sign. The subject of a backend
 * service is itself.
 */
export function findProposer({
  subject,
  issuer,
  clientId,
  tokenId = '',
  patient,
}: Grant): Proposer | undefined {
  const [grantId = ''] = tokenId.split('.')
  if (issuer !== undefined || subject === undefined || clientId === undefined) return undefined
  if (subject === clientId) return undefined
  return { userId: subject, clientId, grantId, patient }
}

export function openProposals(
  { store: { db }, proposals, lifetimeMs, url }: ProposalOptions,
  proposer: Proposer | undefined,
  now: number,
): OwnProposals {
  if (!proposer) return NONE
  return {
    findExcess: () => proposals.findExcess(db, proposer, now),
    async add(change) {
      const expiresAt = now + lifetimeMs
      const id = await db
        .transaction()
        .execute(trx => proposals.add(trx, change, proposer, { now, expiresAt }))
      return isFailure(id) ? id : { id, expiresAt, url: `${url}/${id}` }
    },
    list: () => proposals.listOfAssistant(db, proposer, now),
  }
}

/** Of a caller to whom the tools are not offered. */
const NONE: OwnProposals = {
  findExcess: async () => undefined,
  add: () => Promise.reject(new Error('Cannot propose: nobody could sign')),
  list: async () => [],
}
