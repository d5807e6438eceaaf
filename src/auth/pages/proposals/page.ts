import { escapeLines, isFailure } from '../../../core/index.ts'
import { type ExactResource, formatExact } from '../../../fhir/index.ts'
import { type Proposal, type ProposalState, REASON_CHARACTERS } from '../../../proposals/index.ts'
import { type Person, renderName } from '../../../web/person/index.ts'
import {
  type Html,
  html,
  renderAlert,
  renderBadge,
  renderDateTime,
  renderEmptyState,
  renderFacts,
  renderField,
  renderHidden,
  renderPageHead,
  renderTable,
} from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import type { Client } from '../../oauth/clients/client.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { NotPresent, PresentState } from '../../oauth/proposals/present.ts'
import type { ProposalFault } from '../../oauth/proposals/sign.ts'
import type { Login } from '../../users/find-login.ts'
import { describePage } from '../../words/reasons.ts'
import { describeKind } from '../../words/scopes.ts'
import { renderAppIdentity, renderUnverifiedWarning } from '../parts/apps.ts'
import { renderBack, renderSignedInPage } from '../parts/page-parts.ts'
import { listDifferences, saySubject } from './say.ts'

/** Apps and patients by id. An app that was removed has no name. */
export interface ProposalNames {
  readonly apps: ReadonlyMap<string, Client>
  readonly patients: ReadonlyMap<string, Person>
}

const REASON_IN_LIST = 120

const ACTIONS = { create: 'Add', update: 'Change', patch: 'Change', delete: 'Remove' } as const

/** "Change: problems". */
function nameChange({ action, type }: Proposal['change']): string {
  return `${ACTIONS[action]}: ${describeKind(type).noun}`
}

const STATES: Readonly<Record<ProposalState, readonly [text: string, tone?: 'ok' | 'warn' | 'accent']>> = {
  open: ['Open', 'accent'],
  signing: ['Being written', 'warn'],
  signed: ['Signed', 'ok'],
  rejected: ['Rejected'],
  withdrawn: ['Withdrawn by an administrator'],
  expired: ['Expired'],
}

function renderState({ state }: Proposal): Html {
  const [text, tone] = STATES[state]
  return renderBadge(text, tone)
}

export function renderListPage(
  context: AuthContext,
  login: Login,
  proposals: readonly Proposal[],
  names: ProposalNames,
): Html {
  const open = proposals.filter(({ state }) => state === 'open' || state === 'signing')
  const past = proposals.filter(it => !open.includes(it))
  return renderSignedInPage(
    context,
    login,
    { title: 'Proposals', current: 'proposals', people: [...names.patients.values()] },
    html`${renderPageHead(
      'Proposals of assistants',
      'Changes of a record that an assistant proposes. Nothing is written unless you sign it.',
    )}
<div class="card${open.length > 0 && ' card--clip'}">${open.length === 0 ? NONE : renderList('Open proposals, newest first', open, names)}</div>
${
  past.length > 0 &&
  html`<section class="after" aria-labelledby="s-past"><h2 class="section__title" id="s-past">Earlier proposals</h2>
<div class="card card--clip">${renderList('Earlier proposals, newest first', past, names)}</div></section>`
}`,
  )
}

const NONE = renderEmptyState({
  title: 'No open proposal',
  text: 'When an assistant that you allowed to write proposes a change, it appears here for you to sign or reject.',
})

function renderList(caption: string, proposals: readonly Proposal[], names: ProposalNames): Html {
  return renderTable(
    {
      caption,
      kind: 'table--top table--stack',
      columns: [
        'Change',
        'Patient',
        'Assistant',
        { head: 'Proposed', isNowrap: true },
        { head: 'State', isNowrap: true },
      ],
    },
    proposals.map(proposal => [
      html`<a href="${paths.proposals}/${proposal.id}"><b>${nameChange(proposal.change)}</b></a><span class="sub said">${shortenReason(proposal.change)}</span>`,
      renderPatient(proposal, names.patients.get(proposal.patient ?? '')),
      html`<span class="said">${nameAssistant(proposal, names.apps.get(proposal.clientId))}</span>`,
      renderDateTime(proposal.createdAt),
      html`${renderState(proposal)}${proposal.state === 'open' && html`<span class="sub">Until ${renderDateTime(proposal.expiresAt)}</span>`}`,
    ]),
  )
}

/** The beginning of the assistant's reason, which tells the rows of a list apart. */
function shortenReason({ reason }: Proposal['change']): string {
  const characters = [...reason]
  return characters.length <= REASON_IN_LIST ? reason : `${characters.slice(0, REASON_IN_LIST).join('')}…`
}

function renderPatient({ patient }: Proposal, person: Person | undefined): Html | string {
  if (patient === undefined) return 'No particular patient'
  return person ? renderName(person.name) : 'A record that cannot be opened now'
}

function nameAssistant({ clientId }: Proposal, client: Client | undefined): string {
  return client?.name ?? clientId
}

export interface ProposalView {
  readonly proposal: Proposal
  /** Registered, if not necessarily enabled. */
  readonly client: Client | undefined
  /** Why nobody can sign it now. */
  readonly obstacle: ProposalFault | undefined
  /** Only of one that can be signed. */
  readonly present: PresentState | NotPresent | undefined
  /** What the person has just tried in vain. */
  readonly fault?: ProposalFault | undefined
}

export function renderProposalPage(context: AuthContext, login: Login, view: ProposalView): Html {
  const { proposal, client, fault, present } = view
  const state = isFailure(present) ? undefined : present
  const subject = saySubject(state?.before ?? state?.after)
  return renderSignedInPage(
    context,
    login,
    { title: 'Proposal', current: 'proposals', people: state?.patient ? [state.patient] : [] },
    html`${renderBack(paths.proposals, 'Proposals')}
${renderPageHead(nameChange(proposal.change), html`${subject !== undefined && html`<b>${subject}</b>`} ${renderState(proposal)}`)}
<div class="stack">
${fault && renderFault(fault)}
${client && proposal.state === 'open' && renderUnverifiedWarning(client)}
${renderAssistant(view)}
${proposal.state === 'open' || proposal.state === 'signing' ? renderOpen(view) : renderOutcome(proposal)}
</div>`,
  )
}

function renderFault(fault: ProposalFault): Html {
  const { reason, detail } = fault
  const [event = '', ...rest] = describePage(reason).sentence.split(/(?<=\.) /)
  const advice = reason === 'proposal-changed' ? 'Below is the record as it is now.' : ''
  return renderAlert(event, [...rest, advice, detail ?? ''].filter(it => it !== '').join(' '), 'bad')
}

/** The words of the assistant are quoted: they are not those of this server. */
function renderAssistant({ proposal, client, present }: ProposalView): Html {
  const { change, createdAt, expiresAt, state } = proposal
  const person = present && !isFailure(present) ? present.patient : undefined
  return html`<section class="card card__body stack" aria-labelledby="s-why"><h2 id="s-why">What the assistant says</h2>
<div>${client ? renderAppIdentity(client) : html`<code>${proposal.clientId}</code>`}</div>
<blockquote class="quote"><p>${change.reason}</p></blockquote>
<p class="small muted">A machine wrote this. Check it against the record before you sign.</p>
${renderFacts([
  ['Patient', renderPatient(proposal, person)],
  [
    'Resource',
    html`<code>${change.id === undefined ? `A new ${change.type}` : `${change.type}/${change.id}`}</code>`,
  ],
  ['Proposed', renderDateTime(createdAt)],
  ...(state === 'open' ? [['Can be signed until', renderDateTime(expiresAt)] as const] : []),
])}</section>`
}

function renderOpen(view: ProposalView): Html {
  const { proposal, obstacle, present } = view
  const reason = obstacle?.reason ?? (isFailure(present) ? present.reason : undefined)
  if (reason !== undefined || !present || isFailure(present))
    return html`${renderAlert('It cannot be signed now.', describePage(reason ?? 'records-unavailable').sentence, 'warn')}
${obstacle?.reason !== 'proposal-outcome-unknown' && renderReject(proposal)}`
  return html`${present.hasChanged && CHANGED}${renderDifferences(proposal, present)}
${renderSign(proposal, present)}${renderReject(proposal)}`
}

const CHANGED = renderAlert(
  'The record was changed after the assistant had read it.',
  'Below is what signing would change in the record as it is now. It may undo what somebody else has entered: compare it line by line.',
  'warn',
)

function renderDifferences({ change }: Proposal, { before, after }: PresentState): Html {
  const rows = listDifferences(before, after)
  const isOfBoth = change.action === 'update' || change.action === 'patch'
  const columns = isOfBoth ? ['Element', 'Now', 'After signing'] : ['Element', after ? 'New' : 'Is removed']
  return html`<section class="card card--clip" aria-labelledby="s-what"><div class="card__head"><h2 id="s-what">What changes</h2></div>
${
  rows.length === 0
    ? html`<p class="card__body">Nothing: the record already says so.</p>`
    : renderTable(
        { caption: 'What changes', kind: 'table--top table--stack', columns },
        rows.map(row => [
          row.element,
          ...(isOfBoth ? [renderTexts(row.before)] : []),
          renderTexts(isOfBoth || after ? row.after : row.before),
        ]),
      )
}
<details class="more card__body"><summary>As JSON</summary><div class="stack">
${before && renderJson(isOfBoth ? 'Now' : 'Is removed', before)}${after && renderJson(isOfBoth ? 'After signing' : 'New', after)}
</div></details></section>`
}

function renderTexts(texts: readonly string[]): Html {
  return texts.length === 0
    ? html`<span class="muted">–</span>`
    : html`${texts.map(text => html`<span class="said">${text}</span>`)}`
}

function renderJson(title: string, resource: ExactResource): Html {
  const text = escapeLines(formatExact(resource, 2))
  const cut = text.length - LIMITS.proposalJson
  return html`<div><h3>${title}</h3><pre class="code" tabindex="0">${text.slice(0, LIMITS.proposalJson)}</pre>${cut > 0 && html`<p class="small muted">${cut.toLocaleString('en')} more characters are not shown.</p>`}</div>`
}

function renderSign({ id }: Proposal, { shown }: PresentState): Html {
  return html`<form class="card card__body stack" method="post" action="${paths.proposals}/${id}/sign">${renderHidden({ shown })}
<p>Signing writes exactly this to the record, in your name and with your rights. The record then says that the assistant proposed it and that you verified it.</p>
<div class="actions"><button class="btn">Sign and write</button></div></form>`
}

function renderReject({ id }: Proposal): Html {
  return html`<form class="card card__body stack" method="post" action="${paths.proposals}/${id}/reject">
${renderField({ name: 'reason', label: 'Why you reject it (optional)', rows: 2, hint: `The assistant reads it. At most ${REASON_CHARACTERS.toLocaleString('en')} characters.` })}
<div class="actions"><button class="btn btn--quiet">Reject</button></div></form>`
}

function renderOutcome({ state, decidedAt, expiresAt, outcome }: Proposal): Html {
  const { reference, version, reason } = outcome
  return html`<section class="card card__body stack" role="status" aria-labelledby="s-outcome"><h2 id="s-outcome">What became of it</h2>
<p>${OUTCOMES[state]}</p>
${renderFacts([
  ['Time', renderDateTime(state === 'expired' ? expiresAt : decidedAt)],
  ...(reference === undefined ? [] : [['Written', html`<code>${reference}</code>`] as const]),
  ...(version === undefined ? [] : [['Version', version.replace(/^W\/|"/g, '')] as const]),
  ...(reason === undefined ? [] : [['Your reason', reason] as const]),
])}</section>`
}

const OUTCOMES: Readonly<Record<ProposalState, string>> = {
  open: '',
  signing: '',
  signed: 'You signed it, and it was written to the record.',
  rejected: 'You rejected it. Nothing was written.',
  withdrawn: 'An administrator withdrew it. Nothing was written.',
  expired: 'Nobody signed it in time. Nothing was written.',
}
