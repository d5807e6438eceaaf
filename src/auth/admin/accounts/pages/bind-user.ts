import { toSentence } from '../../../../core/index.ts'
import type { Resource } from '../../../../fhir/index.ts'
import {
  areUnlike,
  formatDeath,
  formatName,
  formatSex,
  INACTIVE,
  listFacts,
  type Person,
  readPerson,
  renderName,
  renderValue,
} from '../../../../web/person/index.ts'
import {
  type Html,
  html,
  NOT_RECORDED,
  renderAlert,
  renderBadge,
  renderDate,
  renderEmptyState,
  renderHidden,
  renderIcon,
} from '../../../../web/ui/index.ts'
import { createFhirReader } from '../../../base/fhir-reader.ts'
import { LIMITS } from '../../../base/limits.ts'
import { paths } from '../../../base/paths.ts'
import type { Parameters } from '../../../base/request.ts'
import { opensRecords } from '../../../base/user.ts'
import { findByIds } from '../../../patients/patients.ts'
import { findNamedPatient } from '../../../users/own-records.ts'
import { readRelationship } from '../../../users/relation.ts'
import { describeLookup, findMeantPatients, isMistyped } from '../../subject/page/find-patients.ts'
import type { AdminRequest } from '../../subject/page/route.ts'
import {
  type AdminPage,
  renderAdminPage,
  renderFacts,
  renderLink,
  renderTable,
} from '../../subject/page/shell.ts'
import { type FhirUserRead, listUnknown, readFhirUsers } from '../fhir-users.ts'
import type { TextProperty } from '../user-fields.ts'
import type { UserDescription } from '../users.ts'

/** The fields of the form of a user, as typed. */
export type UserFormEntries = Readonly<
  Record<
    'kind' | 'username' | TextProperty | 'fhirUser' | 'noRecords' | 'relatedPersons' | 'password',
    string
  >
>

/** A page between the form of a user and its result. It keeps the entries, and posts to the same path. */
interface Step extends Pick<AdminPage, 'section'> {
  readonly entries: UserFormEntries
  /** Below the area. */
  readonly action: string
  /** The page of the user. Undefined for a new one, whose form is shown again. */
  readonly back?: string
}

/** The text to search for. With an empty one, the return key in any other field sends the form. */
export function readSearch(form: Parameters): string | undefined {
  if (form.get('find') === undefined) return undefined
  return form.get('patient')?.trim().slice(0, LIMITS.searchCharacters) || undefined
}

/** A search within the form of a user. */
export function renderPatientSearch({ login }: AdminRequest, label: string, value = ''): Html | undefined {
  if (!opensRecords(login.user)) return undefined
  return html`<div class="field"><label class="field__label" for="patient">${label}</label>
<div class="search"><div class="search__box">${renderIcon('search')}<input class="input" id="patient" name="patient" type="search" maxlength="${LIMITS.searchCharacters}" autocomplete="off" spellcheck="false" value="${value}"></div><button class="btn btn--quiet" name="find" value="1" formnovalidate>Find</button></div></div>`
}

/** The patients whom the search finds, one of whom becomes the FHIR user. */
export async function renderPatientChoice(request: AdminRequest, step: Step): Promise<Html> {
  const text = readSearch(request.form) ?? ''
  const meant = await findMeantPatients(request, 'account-patient', text.replace(/^Patient\//, ''))
  const { found } = meant
  const fault = meant.fault && toSentence(meant.fault.text)
  return renderAdminPage(
    request,
    {
      section: step.section,
      title: 'Choose the patient',
      lead: 'Compare name, birth date and MRN. Nothing is saved yet.',
    },
    html`<form method="post" action="${paths.admin}${step.action}">${renderHidden(step.entries)}
${renderPatientSearch(request, 'Patient (name, MRN or birth date)', text)}
<div class="after">${
      found.length === 0
        ? renderEmptyState({
            title: isMistyped(meant) ? 'No patient found' : 'Not looked up',
            text: fault ?? '',
          })
        : html`${fault !== undefined && renderAlert(fault, '', 'warn')}${renderTable(
            'Patients',
            ['Patient', 'Born', 'Sex', 'MRN', 'FHIR id', { head: 'Action', isHidden: true }],
            found.map(renderPatientRow),
          )}`
    }</div>
<p class="actions after">${renderBack(step, 'Back')}</p></form>`,
  )
}

function renderPatientRow(person: Person) {
  return [
    html`${renderName(person.name)}${renderMarks(person)}`,
    renderDate(person.born),
    renderValue(formatSex(person.gender)),
    renderValue(person.mrn ?? NOT_RECORDED),
    html`<code>${person.id}</code>`,
    html`<button class="btn btn--quiet btn--small" name="choose" value="Patient/${person.id}">Choose<span class="sr"> ${formatName(person.name)}</span></button>`,
  ]
}

function renderMarks(person: Person): readonly Html[] {
  const marks = [formatDeath(person) ?? [], person.inactive ? INACTIVE : []].flat()
  return marks.map(mark => html` ${renderBadge(mark)}`)
}

function renderBack({ back }: Step, text: string): Html {
  return back === undefined
    ? html`<button class="btn btn--quiet" name="edit" value="1">${text}</button>`
    : renderLink(back, text, 'btn btn--quiet')
}

interface Binding extends Step {
  readonly user: Pick<UserDescription, 'kind' | 'username' | 'displayName'>
  /** The resources that the account gets. */
  readonly added: readonly string[]
}

/**
 * Asks whether the resources of an account are the right persons, with what the FHIR server says about them. Undefined if the
 * administrator has confirmed these resources, or the account gets none.
 */
export async function askWhoIsBound(request: AdminRequest, binding: Binding): Promise<Html | undefined> {
  const { user, added, entries, section } = binding
  const confirmed = added.join(' ')
  if (added.length === 0 || request.form.get('confirmed') === confirmed) return undefined
  const resources = await findBound(request, added)
  const isShown = resources.every(namesPerson)
  const unknown = listUnknown(resources) ?? []
  const button = `${isShown ? 'Confirm and' : 'Continue anyway and'} ${binding.back === undefined ? 'add user' : 'save'}`
  return renderAdminPage(
    request,
    {
      section,
      title: added.length === 1 ? 'Is this the right person?' : 'Are these the right persons?',
      lead: html`For the account <code>${user.username}</code> of <bdi>${user.displayName}</bdi>. ${
        user.kind === 'account'
          ? 'A wrong patient gives the user access to the record of somebody else.'
          : 'Apps and the policy treat the user as this person.'
      } Nothing is saved yet.`,
    },
    html`${unknown.length > 0 && renderUnknown(user, unknown)}
${resources.map(
  bound =>
    html`<h2 class="section__title subhead"><code>${bound.reference}</code></h2>${warnOfName(bound, user)}${describeBound(request, bound)}`,
)}
<form class="after" method="post" action="${paths.admin}${binding.action}">${renderHidden({ ...entries, confirmed })}
<div class="actions"><button class="btn">${button}</button>${renderBack(binding, 'Back')}</div></form>`,
  )
}

/** A resource that an account gets, and the patient whose record it opens, if the administrator may see who that is. */
interface Bound extends FhirUserRead {
  readonly patientId: string | undefined
  readonly patient: Person | undefined
}

/** Reads the patients with the right of the administrator: the FHIR server records who read them. */
async function findBound(
  { context, request, login, admin }: AdminRequest,
  references: readonly string[],
): Promise<readonly Bound[]> {
  const reads = (await readFhirUsers(context, admin, references)).map(read => ({
    ...read,
    patientId: read.result.kind === 'found' ? findPatientId(context, read.result.resource) : undefined,
  }))
  const ids = new Set(reads.flatMap(({ patientId }) => patientId ?? []))
  const reader = await createFhirReader(context, login.user, describeLookup(request, 'account'))
  const people = await findByIds(reader, [...ids])
  return reads.map(read => ({ ...read, patient: people.find(({ id }) => id === read.patientId) }))
}

function findPatientId(context: AdminRequest['context'], resource: Resource): string | undefined {
  if (resource.resourceType === 'Patient') return resource.id
  return resource.resourceType === 'RelatedPerson' ? findNamedPatient(resource, context) : undefined
}

/** Whether the page says who a resource is. */
function namesPerson({ result, patient }: Bound): boolean {
  return result.kind === 'found' && (result.resource.resourceType === 'Practitioner' || patient !== undefined)
}

/** Compares the names that the page shows. */
function warnOfName(bound: Bound, { displayName }: Binding['user']): Html | undefined {
  if (bound.result.kind !== 'found' || !namesPerson(bound)) return undefined
  const { name } = readPerson(bound.result.resource)
  return areUnlike(name, displayName)
    ? renderAlert(
        'The names have nothing in common.',
        html`The account is of <bdi>${displayName}</bdi>, and this is <bdi>${formatName(name)}</bdi>. Check the id.`,
        'warn',
      )
    : undefined
}

function describeBound({ context, login }: AdminRequest, { result, patientId, patient }: Bound): Html {
  if (result.kind === 'absent') return html`<p>Not found on the FHIR server.</p>`
  if (result.kind === 'unavailable')
    return renderAlert(
      'The FHIR server does not say who this is.',
      `${result.detail}. Compare the id with the record before you continue, or try again later.`,
      'warn',
    )
  const { resource } = result
  if (resource.resourceType === 'Practitioner') return renderFacts([describeName(readPerson(resource))])
  if (patientId === undefined)
    return renderAlert(
      'This RelatedPerson gives access to no record.',
      'The resource names no patient, is inactive, or its period has ended.',
      'warn',
    )
  if (!patient)
    return renderAlert(
      'You cannot see who this is.',
      `${opensRecords(login.user) ? `The FHIR server does not show you Patient/${patientId}, probably because of the policy.` : `Your account opens no patient records, so it does not see Patient/${patientId}.`} Ask somebody who may see the record to compare the id.`,
      'warn',
    )
  const facts = listFacts(patient, context.clock())
  if (resource.resourceType === 'Patient') return renderFacts([describeName(patient), ...facts])
  return renderFacts([
    describeName(readPerson(resource)),
    ['Relationship', renderValue(readRelationship(resource) ?? NOT_RECORDED)],
    ['Acts for', html`${describeName(patient)[1]} <code>Patient/${patientId}</code>`],
    ...facts.map(([label, value]) => [`${label} (patient)`, value] as const),
  ])
}

function describeName(person: Person) {
  return ['Name', html`<bdi>${formatName(person.name)}</bdi>${renderMarks(person)}`] as const
}

/**
 * The record of a patient is the resource itself, or named by it. What a clinician opens depends on the scopes of the app, and
 * on the resource only if a rule of the policy compares patients with it.
 */
export function renderUnknown({ kind }: Pick<UserDescription, 'kind'>, references: readonly string[]): Html {
  const consequence =
    kind === 'account'
      ? 'Until it exists, it gives access to no record, and apps cannot read who the user is.'
      : 'Apps cannot read who the user is, and policy rules that compare patients with the user match none. All other access works, unless the account opens no patient records.'
  return renderAlert(
    `The FHIR server has no ${references.join(', ')}.`,
    `${consequence} Create or import it, or correct the reference on the page of the user.`,
    'warn',
  )
}
