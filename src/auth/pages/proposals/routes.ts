import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isFailure } from '../../../core/index.ts'
import { createProposals, type Proposal, REASON_CHARACTERS } from '../../../proposals/index.ts'
import type { Person } from '../../../web/person/index.ts'
import { createNameReader } from '../../base/fhir-reader.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { readParameters } from '../../base/request.ts'
import { opensRecords } from '../../base/user.ts'
import { type Client, findRegisteredClient } from '../../oauth/clients/client.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { readPresentState } from '../../oauth/proposals/present.ts'
import {
  findObstacle,
  findProposal,
  type ProposalFault,
  rejectProposal,
  signProposal,
} from '../../oauth/proposals/sign.ts'
import { lookUpByIds } from '../../patients/patients.ts'
import type { Login } from '../../users/find-login.ts'
import { findStartPage, requireLogin } from '../../users/login.ts'
import { describePage } from '../../words/reasons.ts'
import { listLogos } from '../parts/apps.ts'
import { sendErrorPage } from '../parts/page-parts.ts'
import { type ProposalNames, renderListPage, renderProposalPage } from './page.ts'

/** `/proposals`: a person signs or rejects what assistants propose to them. */
export function addProposalRoutes(app: FastifyInstance, context: AuthContext): void {
  const handle = (work: (visit: Visit) => Promise<FastifyReply>) =>
    requireLogin(context, async (request, reply, login) =>
      opensRecords(login.user)
        ? work({ context, request, reply, login })
        : reply.redirect(findStartPage(login), request.method === 'GET' ? 302 : 303),
    )
  app.get(paths.proposals, handle(sendList))
  app.get(`${paths.proposals}/:id`, handle(sendProposal))
  app.post(`${paths.proposals}/:id/sign`, handle(sign))
  app.post(`${paths.proposals}/:id/reject`, handle(reject))
}

interface Visit {
  readonly context: AuthContext
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly login: Login
}

async function sendList({ context, reply, login }: Visit): Promise<FastifyReply> {
  const { store, sealer, clock } = context
  const proposals = await createProposals(sealer).listOfUser(
    store.db,
    login.user.id,
    clock(),
    LIMITS.proposalsListed,
  )
  return reply.sendPage(renderListPage(context, login, proposals, await findNames(context, login, proposals)))
}

async function findNames(
  context: AuthContext,
  { user }: Login,
  proposals: readonly Proposal[],
): Promise<ProposalNames> {
  const ids = [...new Set(proposals.flatMap(({ patient }) => patient ?? []))]
  const reader = await createNameReader(context, user, { purpose: 'proposal' })
  const people = ids.length === 0 ? [] : await lookUpByIds(reader, ids.slice(0, LIMITS.patientsNamed))
  const apps = new Map<string, Client>()
  for (const id of new Set(proposals.map(({ clientId }) => clientId))) {
    const client = await findRegisteredClient(context.store.db, id)
    if (client) apps.set(id, client)
  }
  return { apps, patients: new Map(isFailure(people) ? [] : people.map((it: Person) => [it.id, it])) }
}

async function sendProposal(visit: Visit): Promise<FastifyReply> {
  const { context, request, login } = visit
  const proposal = await findProposal(context, { user: login.user, request }, readId(request))
  return proposal ? showProposal(visit, proposal) : sendUnknown(visit)
}

/** The page of a proposal as it is now. */
async function showProposal(visit: Visit, proposal: Proposal, fault?: ProposalFault): Promise<FastifyReply> {
  const { context, request, reply, login } = visit
  const client = await findRegisteredClient(context.store.db, proposal.clientId)
  const found = await findObstacle(context, proposal)
  const obstacle = isFailure(found) ? found : undefined
  const present = obstacle ? undefined : await readPresentState(context, login.user, proposal, request.ip)
  const page = renderProposalPage(context, login, { proposal, client, obstacle, present, fault })
  return reply.sendPage(page, {
    images: client ? listLogos(client) : [],
    ...(fault && { status: describePage(fault.reason).status }),
  })
}

async function sign(visit: Visit): Promise<FastifyReply> {
  const { context, request, login } = visit
  const shown = readParameters(request.body).get('shown')
  const signer = { user: login.user, request }
  return answer(visit, await signProposal(context, signer, readId(request), shown))
}

async function reject(visit: Visit): Promise<FastifyReply> {
  const { context, request, login } = visit
  const reason = (readParameters(request.body).get('reason') ?? '').trim()
  if (reason.length > REASON_CHARACTERS) return sendTooLong(visit)
  const signer = { user: login.user, request }
  return answer(visit, await rejectProposal(context, signer, readId(request), reason))
}

/** The page of the proposal, with what was refused, and why. */
async function answer(visit: Visit, result: Proposal | ProposalFault): Promise<FastifyReply> {
  const { context, request, reply, login } = visit
  if (!isFailure(result)) return reply.redirect(`${paths.proposals}/${result.id}`, 303)
  const proposal = await findProposal(context, { user: login.user, request }, readId(request))
  return proposal ? showProposal(visit, proposal, result) : sendUnknown(visit)
}

function readId({ params }: FastifyRequest): string {
  return readParameters(params).get('id') ?? ''
}

function sendUnknown({ context, reply, login }: Visit): FastifyReply {
  const { status, sentence } = describePage('proposal-unknown')
  return sendErrorPage(reply, context, {
    status,
    title: 'No such proposal',
    text: [sentence],
    actions: [{ href: paths.proposals, text: 'Go to proposals' }],
    login,
  })
}

function sendTooLong({ context, request, reply, login }: Visit): FastifyReply {
  const { status, sentence } = describePage('proposal-reason-too-long', { most: REASON_CHARACTERS })
  return sendErrorPage(reply, context, {
    status,
    title: 'The reason is too long',
    text: [sentence],
    actions: [{ href: `${paths.proposals}/${readId(request)}`, text: 'Back to the proposal' }],
    login,
  })
}
