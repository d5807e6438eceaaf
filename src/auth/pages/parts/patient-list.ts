import {
  chooseRecordNumber,
  computeAge,
  formatSex,
  INACTIVE,
  type Person,
  renderName,
  renderValue,
} from '../../../web/person/index.ts'
import {
  formatDate,
  type Html,
  html,
  renderBadge,
  renderDate,
  renderEmptyState,
  renderSearchForm,
} from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { findBirthDate, findImpossibleDate } from '../../patients/birth-date.ts'
import { listPeople, type PatientList } from '../../patients/patients.ts'

export interface ListOptions {
  readonly list: PatientList
  /** Other searches, if this one finds nobody. */
  readonly suggestions: readonly string[]
  readonly search: string | undefined
  readonly page: string | undefined
  readonly pickedId: string | undefined
  /** The app that is launched for the patient who is picked. */
  readonly client: string | undefined
  readonly now: number
}

export function renderList(options: ListOptions): Html {
  const { list, search, suggestions, client, pickedId } = options
  const build = (search?: string) => buildPortalUrl({ search, client })
  return html`<div class="portal__find">
${renderPatientSearch(paths.portal, search, { hidden: { client }, isFocused: pickedId === undefined })}
<div class="card plistbox" data-results>${listPeople(list).length === 0 ? renderNoPatients(search, { list, suggestions, build }) : renderRows(options)}</div>
</div>`
}

export function renderPatientSearch(
  action: string,
  value: string | undefined,
  {
    hidden,
    isFocused,
  }: { readonly hidden: Readonly<Record<string, string | undefined>>; readonly isFocused: boolean },
): Html {
  const label = 'Find a patient by name or MRN, or by birth date'
  return renderSearchForm({ action, label, value, hidden, isFocused, maxCharacters: LIMITS.searchCharacters })
}

function renderRows(options: ListOptions): Html {
  const { list, search, page, pickedId, client, now } = options
  const renderRow = (person: Person, mark: Html) =>
    html`<li><a class="prow"${mark} href="${buildPortalUrl({ search, page, patient: person.id, client })}"${person.id === pickedId && html` aria-current="true"`}>
${renderFacts(person, { now, alike: list.similar.ids.has(person.id) })}</a></li>
`
  return html`${renderMatches(list, search, buildPortalUrl({ patient: pickedId, client }))}${renderPatientHead()}
${renderGroups(list, renderRow)}
${renderListNote(list, search)}
${renderPager(list, { page, build: position => buildPortalUrl({ search, page: position, client }) })}`
}

/** The search whose results are listed, how its date was read, and the way back to all patients. */
export function renderMatches(list: PatientList, search: string | undefined, all: string): Html | undefined {
  if (search === undefined) return undefined
  const dates = describeDates(search)
  return html`<div class="plist__found"><h2>${describeMatches(list, search)}</h2> <a href="${all}">Clear search</a>${dates !== '' && html`<p>${dates}</p>`}</div>`
}

/** The recent patients under their own heading, then the list, which has them too. The mark is on one row of each patient. */
export function renderGroups(
  { recent, patients }: PatientList,
  renderRow: (person: Person, mark: Html) => Html,
): Html {
  const listed = new Set(patients.map(({ id }) => id))
  const mark = ({ id }: Person) => html` data-patient-id="${id}"`
  const all = html`<ol class="plist" aria-label="Patients">${patients.map(person => renderRow(person, mark(person)))}</ol>`
  return recent.length === 0
    ? all
    : html`<h2 class="plist__group">Recent</h2><ol class="plist" aria-label="Recent patients">${recent.map(
        person => renderRow(person, listed.has(person.id) ? html`` : mark(person)),
      )}</ol>
${patients.length > 0 && html`<h2 class="plist__group">All by family name</h2>${all}`}`
}

/** Which patients these are, and whether their names could be compared with all others. */
export function renderListNote(list: PatientList, search: string | undefined): Html | undefined {
  const note = [describeList(list, search), list.similar.isComplete ? '' : NOT_COMPARED].filter(Boolean)
  return note.length === 0 ? undefined : html`<p class="plist__note">${note.join(' ')}</p>`
}

const NOT_COMPARED =
  'Not all names could be compared: there may be more patients with similar names. Check the birth date and the MRN.'

/** Links to the pages before and after. A server that has no previous page leads back to the first one. */
export function renderPager(
  { from, next, previous }: PatientList,
  { page, build }: { readonly page: string | undefined; readonly build: (position?: string) => string },
): Html | undefined {
  const first = page === undefined || from === 1
  if (first && next === undefined) return undefined
  const back =
    previous === undefined
      ? { href: build(), text: 'First page' }
      : { href: build(previous), text: 'Previous' }
  return html`<nav class="pager" aria-label="Pages of patients">${!first && html`<a class="btn btn--quiet btn--small" href="${back.href}" rel="prev">${back.text}</a>`}${
    next !== undefined &&
    html`<a class="btn btn--quiet btn--small push" href="${build(next)}" rel="next">Next</a>`
  }</nav>`
}

/** The head of a list of patients, above `renderFacts` of each. */
export function renderPatientHead(): Html {
  return html`<div class="plist__head" aria-hidden="true"><span>Name</span><span>Born</span><span>Age</span><span>Sex</span><span>MRN</span></div>`
}

/** A longer record number, such as a UUID, gets its own line. */
const LONG_NUMBER = 16

export function renderFacts(person: Person, { now, alike }: { now: number; alike: boolean }): Html {
  const { label, value } = chooseRecordNumber(person)
  return html`<span class="prow__name">${renderName(person.name)}${alike && html`&ensp;${renderBadge('Similar name', 'warn')}`}${person.death && html`&ensp;${renderBadge('Died')}`}${person.inactive && html`&ensp;${renderBadge(INACTIVE)}`}</span>
<span class="prow__facts">
<span class="prow__fact"><span class="prow__label">Born </span>${renderDate(person.born)}</span>
<span class="prow__fact">${renderValue(computeAge(person, now))}</span>
<span class="prow__fact">${renderValue(formatSex(person.gender))}</span>
<span class="prow__fact${value.length > LONG_NUMBER && ' prow__fact--long'}">${
    label === 'MRN'
      ? html`<span class="prow__label">MRN </span>${value}`
      : html`<span class="unknown">No MRN</span> <span class="prow__id">${label} ${value}</span>`
  }</span>
</span>`
}

interface NoPatientsOptions {
  readonly list: PatientList
  readonly suggestions: readonly string[]
  /** The URL of the list with another search, or with none. */
  readonly build: (search?: string) => string
}

export function renderNoPatients(
  search: string | undefined,
  { list, suggestions, build }: NoPatientsOptions,
): Html {
  const all = build()
  if (list.isCut)
    return renderEmptyState({
      title: 'The patients could not be read',
      text: 'The FHIR server did not return all patients that you may see. Try again, or search for a name.',
      action: { href: all, text: 'Try again' },
    })
  return search === undefined
    ? renderEmptyState({
        title: 'No patients',
        text: 'The FHIR server has no patients that you may see. They appear here when they are imported, or when you are given access to them.',
        action: { href: all, text: 'Try again' },
      })
    : renderEmptyState({
        title: `No patient matches “${search}”`,
        lead:
          suggestions.length === 0
            ? undefined
            : html`Did you mean ${suggestions.map(
                (text, at) => html`${at > 0 && ' or '}<a href="${build(text)}"><bdi>${text}</bdi></a>`,
              )}?`,
        text: `${describeDates(search)}Check the spelling, or type only the beginning of a name, a birth date such as 14-Mar-1958, or an MRN.`,
        action: { href: all, text: 'Show the first 20 patients' },
      })
}

/** How the date in a search was read, if that is not evident. */
function describeDates(search: string): string {
  const impossible = findImpossibleDate(search)
  if (impossible !== undefined) return `There is no date ${impossible}. `
  const { dates = [] } = findBirthDate(search) ?? {}
  return dates.length > 1
    ? `Searched for the birth dates ${dates.map(date => formatDate(date)).join(' and ')}. `
    : ''
}

/** `2 patients match “juniper”`. */
export function describeMatches(list: PatientList, search: string): string {
  return `${countPatients(list)} ${list.patients.length === 1 ? 'matches' : 'match'} “${search}”`
}

/** A list that the server did not sort, or that has no next page, is not all there is. The heading names a search. */
export function describeList(list: PatientList, search: string | undefined): string {
  const { hasMore, isCut, isSorted, next } = list
  const isPart = hasMore && next === undefined
  const cut = isCut ? 'The FHIR server did not return all of them. ' : ''
  if (search !== undefined) return isCut || isPart ? `${cut}Type more of the name to find the others.` : ''
  const people = countPatients(list)
  if (isCut) return `${people}. ${cut}Search to find the others.`
  return isPart ? `${people}. Search to find the others.` : `${people}${isSorted ? ', by family name' : ''}.`
}

/** `60 patients`, or the part of them: `Patients 21 to 40 of 60`, `20 patients on this page`. */
function countPatients({ patients, from, total, hasMore, next, previous }: PatientList): string {
  const shown = patients.length
  const count = shown === 1 ? '1 patient' : `${shown} patients`
  if (!hasMore && previous === undefined) return count
  if (from === undefined || shown === 0)
    return next === undefined && previous === undefined ? count : `${count} on this page`
  const of = total === undefined ? '' : ` of ${total}`
  return shown === 1 ? `Patient ${from}${of}` : `Patients ${from} to ${from + shown - 1}${of}`
}

/** The list beside the selected patient. */
export interface ListView {
  readonly search: string | undefined
  readonly page: string | undefined
}

const ORDER = ['search', 'page', 'patient', 'client']

export function buildPortalUrl(parts: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams()
  for (const name of new Set([...ORDER, ...Object.keys(parts)])) {
    const value = parts[name]
    if (value !== undefined) query.set(name, value)
  }
  return query.size === 0 ? paths.portal : `${paths.portal}?${query}`
}
