import { isFailure } from '../../../../core/index.ts'
import { formatName, type Person, readPerson } from '../../../../web/person/index.ts'
import {
  formatDate,
  type Html,
  html,
  renderAlert,
  renderBadge,
  renderDateTime,
} from '../../../../web/ui/index.ts'
import { paths } from '../../../base/paths.ts'
import { findWrongProofs, type WrongProofs } from '../../../users/factors/wrong-proofs.ts'
import { findGuesses, type Guesses } from '../../../users/guesses.ts'
import { findOwnRecords } from '../../../users/own-records.ts'
import { findSignIns, type SignIn } from '../../../users/sign-ins.ts'
import { renderGrants } from '../../access/given.ts'
import { describeCaller } from '../../base/action.ts'
import { renderRows } from '../../subject/list-page.ts'
import { findPatientNames } from '../../subject/page/find-patients.ts'
import type { AdminRequest } from '../../subject/page/route.ts'
import { renderActionTable, renderButton, renderDangerLink, renderLink } from '../../subject/page/shell.ts'
import type { MoreDetails } from '../../subject/subject.ts'
import type { UserFault } from '../check-user.ts'
import { type FhirUserRead, listFhirUsers, listUnknown, readFhirUsers } from '../fhir-users.ts'
import { describeSharing } from '../shared-fhir-users.ts'
import { SIGN_IN_COLUMNS } from '../sign-ins.ts'
import { TEXTS } from '../user-fields.ts'
import { buildUserPath } from '../user-list.ts'
import type { UserDescription } from '../users.ts'
import { renderPatientSearch, renderUnknown, type UserFormEntries } from './bind-user.ts'
import { defineFields, renderFaultAlert, renderNoRecords } from './user-form.ts'

/** What the columns of a user do not say. `refused`: changes that cannot be saved. */
export async function describeUser(
  request: AdminRequest,
  user: UserDescription,
  refused?: { readonly entries: UserFormEntries; readonly faults: readonly UserFault[] },
): Promise<MoreDetails> {
  const { entries, faults } = refused ?? {
    entries: {
      ...user,
      noRecords: user.records ? '' : '1',
      relatedPersons: user.relatedPersons.map(id => `RelatedPerson/${id}`).join('\n'),
    },
    faults: [],
  }
  const renderOwn = defineFields(entries, faults)
  const grants = await renderGrants(request, { userIds: [user.id] }, buildUserPath(user))
  const isAsked = request.form.get(CHECK) !== undefined
  const read = listFhirUsers(user).filter(reference => isAsked || isOfStaff(reference))
  const reads = await readFhirUsers(request.context, request.admin, read)
  const warnings = await renderWarnings(request, user, listUnknown(reads))
  const signIns = await findSignIns(request.admin, user.id)
  const { store, clock } = request.admin
  const wrongProofs = await findWrongProofs(store.db, user.id, clock())
  const guesses = await findGuesses(store.db, user.id)
  const records =
    user.kind === 'account' && (isAsked ? await renderRecords(request, user) : renderCheck(user))
  const form = html`<h2 class="section__title subhead">${user.kind === 'account' ? 'Name, FHIR user and related persons' : 'Name and FHIR user'}</h2>
<form class="card card__body stack" method="post" action="${paths.admin}${buildUserPath(user)}">
<input type="hidden" name="kind" value="${user.kind}">
${TEXTS.map(({ property }) => renderOwn(property))}
${renderOwn('fhirUser', { hint: user.kind === 'clinician' ? describeClinician(reads) : undefined })}
${user.kind === 'clinician' && renderNoRecords(entries, { faults, lost: user.fhirUser })}
${user.kind === 'account' && renderPatientSearch(request, 'Find another patient (name, MRN or birth date)')}
${user.kind === 'account' && renderOwn('relatedPersons', { rows: 2 })}
${records}
<div class="actions"><button class="btn btn--quiet">Save</button></div></form>`
  return {
    above: html`${renderFaultAlert('Not saved.', faults)}${warnings}`,
    facts: [
      ...(guesses ? [['Wrong passwords', renderGuesses(user, guesses)] as const] : []),
      ...(wrongProofs ? [['Wrong codes and passkeys', renderWrongProofs(wrongProofs)] as const] : []),
    ],
    below: html`${request.mayChange ? form : records}
<h2 class="section__title subhead" id="sign-ins">Sign-ins now</h2>
${signIns.length === 0 ? html`<p>The user is not signed in now. A sign-in appears here until it ends.</p>` : renderSignIns(request, user, signIns)}
<h2 class="section__title subhead">Provider accounts</h2>
${renderLinks(request, user)}
<h2 class="section__title subhead">Apps with access</h2>
${grants}`,
  }
}

/** The audit trail has each of them. */
function renderGuesses({ lockedAt, username }: UserDescription, guesses: Guesses): Html {
  const { count, since, last, addresses } = guesses
  const records = `/audit?${new URLSearchParams({ user: username, kind: 'login', result: 'refused' })}`
  return html`${count} since the last sign-in ${lockedAt !== undefined && renderBadge('Locked', 'bad')}
<span class="sub">From ${renderDateTime(since)} to ${renderDateTime(last)}, mostly from ${addresses.join(', ')}. ${renderLink(records, 'Refused sign-ins')}</span>
${lockedAt !== undefined && html`<span class="sub">Locked since ${renderDateTime(lockedAt)}: a password is accepted only in browsers and networks where the user has signed in before. A passkey still works. To accept it everywhere again, set a new password or choose <b>Unlock</b>.</span>`}`
}

/** Only somebody who knows the password can cause them. */
function renderWrongProofs({ count, today, last, addresses, isFull }: WrongProofs): Html {
  return html`${count} in 30 days, ${today} in the last 24 hours ${isFull && renderBadge('Codes refused', 'bad')}
<span class="sub">The last one ${renderDateTime(last)}, from ${addresses.join(', ') || 'an unknown address'}. ${isFull && 'From some senders, so many codes were wrong that the server accepts no code of an authenticator app from them for now. '}Someone who knows the password may be guessing. A new password restarts the count.</span>`
}

/** The name of the Practitioner, by which a wrong id is noticed. */
function describeClinician([read]: readonly FhirUserRead[]): Html | undefined {
  return read?.result.kind === 'found'
    ? html`On the FHIR server: <bdi>${formatName(readPerson(read.result.resource).name)}</bdi>`
    : undefined
}

/** About the FHIR users of an account. */
export async function renderWarnings(
  { context }: AdminRequest,
  user: UserDescription,
  unknown: readonly string[] = [],
): Promise<Html> {
  const sharing = await describeSharing(context, user)
  return html`${unknown.length > 0 && renderUnknown(user, unknown)}
${sharing.length > 0 && renderAlert('Several accounts have the same FHIR user.', sharing.join(' '), 'warn')}`
}

/** The parameter that asks who a patient or relative is. Their resources are patient data, which nobody reads unasked. */
const CHECK = 'check'

function isOfStaff(reference: string): boolean {
  return reference.startsWith('Practitioner/')
}

function renderCheck(user: UserDescription): Html {
  return html`<p class="small">${renderLink(`${buildUserPath(user)}?${CHECK}=1`, 'Check whose records it opens')} <span class="muted">Reads the name and birth date of each person. The patient sees that you checked the account.</span></p>`
}

/** The patients that the RelatedPersons name now. */
async function renderRecords(request: AdminRequest, user: UserDescription): Promise<Html> {
  const own = { id: user.id, fhirUserId: user.fhirUser }
  const records = await findOwnRecords(request.context, own, describeCaller(request.admin, 'account'))
  if (isFailure(records))
    return html`<p class="small muted">The FHIR server could not be asked whose relative this is: ${records.detail}.</p>`
  if (records.length === 0) return html`<p class="small muted">Opens the records of: nobody.</p>`
  const ids = records.map(({ patientId }) => patientId)
  const names = await findPatientNames(request, 'account', ids)
  return html`<p class="small muted">Opens the records of:</p>
<ul class="list small">${ids.map(id => renderRecord(id, names.get(id)))}</ul>`
}

/** With name and birth date, if the administrator may read them: an id alone does not show that it is the wrong patient. */
function renderRecord(id: string, person: Person | undefined): Html {
  const born = person?.born === undefined ? '' : `, born ${formatDate(person.born)}`
  return html`<li>${person && html`<bdi>${formatName(person.name)}</bdi>${born} `}<code>Patient/${id}</code></li>`
}

function renderSignIns(request: AdminRequest, user: UserDescription, signIns: readonly SignIn[]): Html {
  const table = {
    columns: SIGN_IN_COLUMNS,
    caption: 'Sign-ins, most recently used first',
    renderAction: ({ id, browser = 'an unknown browser' }: SignIn) =>
      id === request.login.idHash
        ? renderBadge('This browser', 'accent')
        : renderDangerLink(
            `${buildUserPath(user)}/end-sign-in?${new URLSearchParams({ signIn: id })}`,
            html`End<span class="sr"> the sign-in in ${browser}</span>`,
          ),
  }
  return renderRows(request, table, signIns)
}

function renderLinks(request: AdminRequest, user: UserDescription): Html {
  const link = request.mayChange && renderButton(`${buildUserPath(user)}/link`, 'Link an account')
  if (user.links.length === 0)
    return html`<p>No account of an identity provider is linked to this user. ${link}</p>`
  const rows = user.links.map(({ issuer, subject, provisioned, createdAt }) => [
    html`<code class="url">${issuer}</code>`,
    html`<code class="url">${subject}</code>`,
    provisioned ? 'Created at the first sign-in' : 'Linked',
    renderDateTime(createdAt),
    renderDangerLink(
      `${buildUserPath(user)}/unlink?${new URLSearchParams({ issuer, subject })}`,
      'Remove link',
    ),
  ])
  const columns = ['Issuer', 'Subject', 'Kind', 'Since']
  return html`${renderActionTable(request, 'Provider accounts', columns, rows)}${link && html`<p class="actions after">${link}</p>`}`
}
