import type { FastifyRequest } from 'fastify'
import { type Failed, fail, isFailure, isRecord, parseJson, toRecord } from '../../../core/index.ts'
import { parseReference } from '../../../fhir/index.ts'
import { createProposals, type Proposal, type ProposalOutcome } from '../../../proposals/index.ts'
import { auditEvent, describeRefused } from '../../base/audit.ts'
import type { AuthUser } from '../../base/user.ts'
import type { PROPOSALS } from '../../words/proposals.ts'
import { type Client, findClient } from '../clients/client.ts'
import type { AuthContext } from '../context.ts'
import { areAgentsOff } from '../grants/agents-switch.ts'
import { buildTransaction } from './bundle.ts'
import { makeTag } from './marks.ts'
import { readPresentState } from './present.ts'
import { type FhirAnswer, sendAs } from './send.ts'

export type ProposalReason = Exclude<keyof typeof PROPOSALS, 'proposal-reason-too-long'>

/** Why a proposal was not signed. */
export interface ProposalFault extends Failed {
  readonly reason: ProposalReason | 'records-unavailable'
  /** In the words of the FHIR server. It may be content: no record has it. */
  readonly detail?: string | undefined
}

/** How long a transaction may take that was sent and not answered. It then is no longer under way. */
const UNDER_WAY_MS = 120_000

/** Who signs, with a request of whose browser. */
export interface Signer {
  readonly user: AuthUser
  readonly request: FastifyRequest
}

/**
 * Finds a proposal of this person. One whose signing was interrupted is settled by what the record says: it was written, or it
 * is open again.
 */
export async function findProposal(
  context: AuthContext,
  signer: Signer,
  id: string,
): Promise<Proposal | undefined> {
  const { store, sealer, clock } = context
  const proposal = await createProposals(sealer).find(store.db, id, signer.user.id, clock())
  return proposal?.state === 'signing' ? settle(context, signer, proposal) : proposal
}

async function settle(context: AuthContext, signer: Signer, proposal: Proposal): Promise<Proposal> {
  const { settings, clock } = context
  const { system, code } = makeTag(settings, proposal)
  const answer = await sendAs(context, signer.user, {
    path: `Provenance?_tag=${encodeURIComponent(`${system}|${code}`)}`,
    scope: 'user/Provenance.rs',
    purpose: 'proposal',
    address: signer.request.ip,
  })
  const written = answer?.status === 200 ? findWritten(answer.text) : undefined
  if (written) return keepSigned(context, signer, proposal, written)
  const isUnderWay = clock() - (proposal.decidedAt ?? 0) < UNDER_WAY_MS
  if (isUnderWay || answer?.status !== 200) return proposal
  await reopen(context, proposal)
  return { ...proposal, state: 'open' }
}

/** What the Provenance of a proposal is about. */
function findWritten(text: string): ProposalOutcome | undefined {
  const bundle = parseJson(text)
  const entry: unknown = isRecord(bundle) && Array.isArray(bundle.entry) ? bundle.entry[0] : undefined
  const resource = isRecord(entry) && isRecord(entry.resource) ? entry.resource : undefined
  if (resource?.resourceType !== 'Provenance') return undefined
  const targets = Array.isArray(resource.target) ? resource.target.filter(isRecord) : []
  const references = targets.flatMap(({ reference }) => (typeof reference === 'string' ? [reference] : []))
  const reference = references.find(it => !it.startsWith('Patient/')) ?? references[0]
  return reference === undefined ? {} : { reference }
}

async function reopen({ store, sealer, clock }: AuthContext, { id }: Proposal): Promise<void> {
  await createProposals(sealer).change(store.db, id, { from: 'signing', to: 'open', now: clock() })
}

/** Why nobody can sign a proposal now, whatever the record says. */
export async function findObstacle(
  context: AuthContext,
  { state, clientId }: Proposal,
): Promise<Client | ProposalFault> {
  const { store, settings } = context
  if (state === 'signing') return fail({ reason: 'proposal-outcome-unknown' })
  if (state !== 'open') return fail({ reason: 'proposal-decided' })
  if (!settings.agents.enabled || (await areAgentsOff(store.db)))
    return fail({ reason: 'proposal-agents-off' })
  return (await findClient(store.db, context, clientId)) ?? fail({ reason: 'proposal-app-ended' })
}

/** Writes what the person has seen, by their own rights now, once. */
export async function signProposal(
  context: AuthContext,
  signer: Signer,
  id: string,
  shown: string | undefined,
): Promise<Proposal | ProposalFault> {
  const found = await findProposal(context, signer, id)
  const result = found
    ? await sign(context, signer, found, shown)
    : fail({ reason: 'proposal-unknown' } as const)
  if (isFailure(result)) await recordRefusal(context, signer, found, result)
  return result
}

async function sign(
  context: AuthContext,
  signer: Signer,
  proposal: Proposal,
  shown: string | undefined,
): Promise<Proposal | ProposalFault> {
  const { store, sealer, settings, clock } = context
  const { user, request } = signer
  const assistant = await findObstacle(context, proposal)
  if (isFailure(assistant)) return assistant
  const state = await readPresentState(context, user, proposal, request.ip)
  if (isFailure(state)) return state
  if (state.shown !== shown) return fail({ reason: 'proposal-changed' })
  const now = clock()
  const bundle = buildTransaction({ proposal, state, user, assistant, settings, now })
  const claim = { from: 'open', to: 'signing', now } as const
  if (!(await createProposals(sealer).change(store.db, proposal.id, claim)))
    return fail({ reason: 'proposal-decided' })
  const { type, action } = proposal.change
  const letters = action === 'create' ? 'crs' : action === 'delete' ? 'rds' : 'rus'
  const answer = await sendAs(context, user, {
    path: '',
    scope: `user/${type}.${letters} user/Provenance.crs`,
    purpose: 'signature',
    address: request.ip,
    bundle,
  })
  if (answer?.status === 200) return keepSigned(context, signer, proposal, readOutcome(proposal, answer))
  if (!answer || answer.status >= 500) return fail({ reason: 'proposal-outcome-unknown' })
  await reopen(context, proposal)
  return explainAnswer(answer)
}

/** A refusal of the FHIR server: nothing was written. */
function explainAnswer({ status, text }: FhirAnswer): ProposalFault {
  if (status === 409 || status === 412) return fail({ reason: 'proposal-changed' })
  if ([401, 403, 404, 410].includes(status)) return fail({ reason: 'proposal-not-permitted' })
  const outcome = parseJson(text)
  const issue: unknown = isRecord(outcome) && Array.isArray(outcome.issue) ? outcome.issue[0] : undefined
  const diagnostics = isRecord(issue) ? issue.diagnostics : undefined
  return fail({
    reason: 'proposal-not-accepted',
    ...(typeof diagnostics === 'string' && { detail: diagnostics }),
  })
}

function readOutcome({ change: { type, id } }: Proposal, { text }: FhirAnswer): ProposalOutcome {
  const bundle = parseJson(text)
  const entry: unknown = isRecord(bundle) && Array.isArray(bundle.entry) ? bundle.entry[0] : undefined
  const { location, etag } = toRecord(toRecord(entry).response)
  const written =
    typeof location === 'string' ? /([A-Za-z]+\/[^/]+)(?:\/_history\/[^/]+)?$/.exec(location)?.[1] : undefined
  const reference = id === undefined ? written : `${type}/${id}`
  const isKnown = reference !== undefined && parseReference(reference, '') !== undefined
  return {
    ...(isKnown && { reference }),
    ...(typeof etag === 'string' && { version: etag }),
  }
}

async function keepSigned(
  context: AuthContext,
  { user, request }: Signer,
  proposal: Proposal,
  outcome: ProposalOutcome,
): Promise<Proposal> {
  const { store, sealer, clock } = context
  await store.db.transaction().execute(async trx => {
    const to = { from: 'signing', to: 'signed', now: clock(), outcome } as const
    // Another request may have settled it.
    if (!(await createProposals(sealer).change(trx, proposal.id, to))) return
    const details = { event: 'proposal-signed' } as const
    await auditEvent(context, request, { ...describe(proposal), status: 200, user, details }, trx)
  })
  return { ...proposal, state: 'signed', outcome }
}

/** Closes a proposal. The assistant sees the reason. */
export async function rejectProposal(
  context: AuthContext,
  signer: Signer,
  id: string,
  reason: string,
): Promise<Proposal | ProposalFault> {
  const { store, sealer, clock } = context
  const { user, request } = signer
  const found = await findProposal(context, signer, id)
  if (!found) return fail({ reason: 'proposal-unknown' })
  if (found.state === 'signing') return fail({ reason: 'proposal-outcome-unknown' })
  const outcome = reason === '' ? {} : { reason }
  const isDone = await store.db.transaction().execute(async trx => {
    const to = { from: 'open', to: 'rejected', now: clock(), outcome } as const
    if (!(await createProposals(sealer).change(trx, id, to))) return false
    const details = { event: 'proposal-rejected' } as const
    await auditEvent(context, request, { ...describe(found), status: 200, user, details }, trx)
    return true
  })
  return isDone ? { ...found, state: 'rejected', outcome } : fail({ reason: 'proposal-decided' })
}

async function recordRefusal(
  context: AuthContext,
  { user, request }: Signer,
  proposal: Proposal | undefined,
  { reason }: ProposalFault,
): Promise<void> {
  const known = proposal ? describe(proposal) : ({ kind: 'proposal' } as const)
  await auditEvent(context, request, { ...known, ...describeRefused(reason), user })
}

/** The record names the kind of change and no content. */
function describe({ change, clientId, patient, grantId }: Proposal) {
  return {
    kind: 'proposal',
    interaction: change.action,
    type: change.type,
    ...(change.id !== undefined && { id: change.id }),
    client: clientId,
    ...(patient !== undefined && { patient }),
    launch: grantId,
  } as const
}
