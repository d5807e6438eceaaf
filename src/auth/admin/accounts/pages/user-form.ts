import { NEW_USERNAME_RULE } from '../../../../core/index.ts'
import {
  type Field,
  type Html,
  html,
  renderAlert,
  renderChoice,
  renderField,
  renderSelect,
} from '../../../../web/ui/index.ts'
import { paths } from '../../../base/paths.ts'
import type { Parameters } from '../../../base/request.ts'
import type { AdminRequest } from '../../subject/page/route.ts'
import { renderAdminPage, renderLink } from '../../subject/page/shell.ts'
import type { UserFault } from '../check-user.ts'
import { readTexts, TEXTS, USER_FIELDS, type UserKind, type UserProperty } from '../user-fields.ts'
import { KINDS, SECTION } from '../user-list.ts'
import { renderPatientSearch, type UserFormEntries } from './bind-user.ts'

/** What the form has: a chosen patient replaces the FHIR user. */
export function readEntries(form: Parameters): UserFormEntries {
  const read = (name: string) => form.get(name)?.trim() ?? ''
  const chosen = read('choose')
  return {
    kind: chosen === '' ? read('kind') : 'account',
    username: read('username'),
    ...readTexts(read),
    fhirUser: chosen || read('fhirUser'),
    noRecords: chosen === '' ? read('noRecords') : '',
    relatedPersons: read('relatedPersons'),
    password: read('password'),
  }
}

/** `before` is the FHIR user that an account loses if it opens no records. Another one in the form is not dropped in silence. */
export function readUser({ fhirUser, ...entries }: UserFormEntries, before = '') {
  const kind: UserKind = entries.kind === 'account' ? 'account' : 'clinician'
  const records = entries.noRecords === ''
  const related = entries.relatedPersons.split(/\s+/)
  const own = fhirUser.startsWith('RelatedPerson/') ? [fhirUser] : []
  const relatedPersons = [
    ...new Set([...own, ...related].map(text => text.replace(/^RelatedPerson\//, ''))),
  ].filter(id => id !== '')
  const [first] = kind === 'account' && fhirUser === '' ? relatedPersons : []
  const named = first === undefined ? fhirUser : `RelatedPerson/${first}`
  return {
    kind,
    username: entries.username,
    ...readTexts(property => entries[property]),
    fhirUser: !records && completeFhirUser(kind, fhirUser) === before ? '' : completeFhirUser(kind, named),
    records,
    relatedPersons,
  }
}

function completeFhirUser(kind: UserKind, named: string): string {
  return named === '' || named.includes('/') || kind === 'account' ? named : `Practitioner/${named}`
}

const NO_ENTRIES: UserFormEntries = {
  kind: 'clinician',
  username: '',
  ...readTexts(() => ''),
  fhirUser: '',
  noRecords: '',
  relatedPersons: '',
  password: 'link',
}

export function renderNewUser(
  request: AdminRequest,
  entries = NO_ENTRIES,
  faults: readonly UserFault[] = [],
): Html {
  const { kind, password } = entries
  const renderOwn = defineFields(entries, faults)
  const isRuleSaid = faults.some(({ reason }) => reason === 'username-malformed')
  return renderAdminPage(
    request,
    { section: SECTION, title: 'Add a user' },
    html`${renderFaultAlert('The user was not added.', faults)}
<form class="card card__body stack after" method="post" action="${paths.admin}/clinicians/new">
${renderSelect({ name: 'kind', label: 'Kind' }, Object.entries(KINDS), kind)}
${renderOwn('username', { hint: isRuleSaid ? undefined : `It has ${NEW_USERNAME_RULE}.` })}
${TEXTS.map(({ property }) => renderOwn(property))}
${renderOwn('fhirUser')}
${renderNoRecords(entries, { faults })}
${renderPatientSearch(request, 'Find a patient (name, MRN or birth date)')}
${renderOwn('relatedPersons', { rows: 2 })}
${request.context.providers.passwords && renderPasswordChoice(password, ['link', '1', ''])}
<div class="actions"><button class="btn">Add user</button>${renderLink('/clinicians', 'Cancel', 'btn btn--quiet')}</div>
</form>`,
  )
}

/** Whether an account is for administration only. `lost` is the FHIR user that it loses by that. */
export function renderNoRecords(
  { noRecords = '' }: Partial<UserFormEntries>,
  { faults = [], lost = '' }: { readonly faults?: readonly UserFault[]; readonly lost?: string } = {},
): Html {
  const fault = faults.find(({ property }) => property === 'records')
  return html`<div class="choices">${renderChoice({
    type: 'checkbox',
    name: 'noRecords',
    value: '1',
    text: USER_FIELDS.records.label,
    meta:
      fault?.sentence ??
      `For security officers, the helpdesk and technical administrators. Apps cannot be used with the account, and access that the user gave them ends. ${lost === '' ? 'The account has no FHIR user.' : `The account loses its FHIR user ${lost}.`}`,
    isChecked: noRecords !== '',
  })}</div>`
}

/** How a user gets a password, by the value of the form. */
const PASSWORDS = {
  link: [
    'Activation link',
    'You give the user a link, and the user chooses a password that nobody else knows.',
  ],
  '1': ['Temporary password', 'It is shown once. The user replaces it at the next sign-in.'],
  '': ['No password', 'For a user who signs in only with an identity provider.'],
} as const

export function renderPasswordChoice(chosen: string, offered: readonly (keyof typeof PASSWORDS)[]): Html {
  return html`<fieldset><legend class="legend">Password</legend><div class="choices">${offered.map(value => {
    const [text, meta] = PASSWORDS[value]
    return renderChoice({ type: 'radio', name: 'password', value, text, meta, isChecked: value === chosen })
  })}</div></fieldset>`
}

/** The fields of a user with their entries and faults. The first fault has the focus. */
export function defineFields(entries: Partial<UserFormEntries>, faults: readonly UserFault[]) {
  return (property: UserProperty & keyof UserFormEntries, more: Pick<Field, 'hint' | 'rows'> = {}): Html => {
    const fault = faults.find(one => one.property === property)
    const field: { label: string; hint?: string; isRequired?: true } = USER_FIELDS[property]
    return renderField({
      name: property,
      label: field.label,
      required: field.isRequired ?? false,
      hint: field.hint,
      ...more,
      value: entries[property],
      error: fault?.sentence,
      autofocus: fault !== undefined && fault === faults[0],
    })
  }
}

export function renderFaultAlert(title: string, { length }: readonly UserFault[]): Html | false {
  return length > 0 && renderAlert(title, `Correct the marked ${length === 1 ? 'field' : 'fields'}.`, 'bad')
}
