import {
  chooseRecordNumber,
  computeAge,
  formatSex,
  type Html,
  html,
  isAlike,
  type Person,
  renderBadge,
  renderDate,
  renderEmptyState,
  renderIcon,
  renderName,
  renderValue,
} from '../../web/index.ts'
import { LIMITS } from '../limits.ts'
import { paths } from '../paths.ts'
import type { PatientList } from './patients.ts'

export interface ListOptions {
  readonly list: PatientList
  readonly search: string | undefined
  readonly pickedId: string | undefined
  readonly now: number
}

export function renderList(options: ListOptions): Html {
  const { list, search } = options
  return html`<div class="portal__find">
${renderSearchForm(paths.portal, search)}
<div class="card plistbox">${list.patients.length === 0 ? renderNoPatients(search, paths.portal) : renderRows(options)}</div>
</div>`
}

export function renderSearchForm(action: string, search: string | undefined, hidden?: Html): Html {
  return html`<form class="field" role="search" action="${action}">${hidden}
<label class="field__label" for="search">Find a patient by name or MRN</label>
<div class="search"><div class="search__box">${renderIcon('search')}<input class="input" id="search" name="search" type="search" maxlength="${LIMITS.searchCharacters}" autocomplete="off" spellcheck="false" value="${search}"></div><button class="btn btn--quiet">Search</button></div>
</form>`
}

function renderRows({ list, search, pickedId, now }: ListOptions): Html {
  const { patients } = list
  return html`<div class="plist__head" aria-hidden="true"><span>Name</span><span>Born</span><span>Age</span><span>Sex</span><span>MRN</span></div>
<ol class="plist" aria-label="Patients">${patients.map(person =>
    renderRow(person, {
      search,
      now,
      current: person.id === pickedId,
      alike: patients.some(other => isAlike(person, other)),
    }),
  )}</ol>
<p class="plist__note">${describeList(list, search)}</p>`
}

interface RowOptions {
  readonly search: string | undefined
  readonly now: number
  readonly current: boolean
  readonly alike: boolean
}

function renderRow(person: Person, { search, now, current, alike }: RowOptions): Html {
  return html`<li><a class="prow" data-patient-id="${person.id}" href="${buildPortalUrl({ search, patient: person.id })}"${current && html` aria-current="true"`}>
${renderFacts(person, { now, alike })}</a></li>
`
}

/** A longer record number, such as a UUID, gets its own line. */
const LONG_NUMBER = 16

export function renderFacts(person: Person, { now, alike }: { now: number; alike: boolean }): Html {
  const { label, value } = chooseRecordNumber(person)
  return html`<span class="prow__name">${renderName(person.name)}${alike && html`&ensp;${renderBadge('Similar name', 'warn')}`}${person.death && html`&ensp;${renderBadge('Died')}`}</span>
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

export function renderNoPatients(search: string | undefined, all: string): Html {
  if (search === undefined)
    return renderEmptyState({
      title: 'No patients',
      text: 'The FHIR server has no patients that you may see.',
      action: { href: all, text: 'Try again' },
    })
  return renderEmptyState({
    title: `No patient matches “${search}”`,
    text: 'Check the spelling, or type only the beginning of the name. Type an MRN in full.',
    action: { href: all, text: 'Show the first 20 patients' },
  })
}

/** The FHIR server decides which patients come first, so the list may have gaps. */
export function describeList({ patients, total, hasMore }: PatientList, search: string | undefined): string {
  const shown = patients.length
  const people = hasMore && total !== undefined ? `${shown} of ${total} patients` : countPatients(shown)
  const matching = search === undefined ? '' : ` ${people === '1 patient' ? 'matches' : 'match'} “${search}”`
  if (!hasMore) return search === undefined ? `${people}, by family name.` : `${people}${matching}.`
  const others = search === undefined ? 'Search' : 'Type more of the name'
  return `${people}${matching}. ${others} to find the others.`
}

function countPatients(count: number): string {
  return count === 1 ? '1 patient' : `${count} patients`
}

export function buildPortalUrl(parts: {
  readonly search: string | undefined
  readonly patient?: string
  readonly client?: string
}): string {
  const query = new URLSearchParams()
  if (parts.search !== undefined) query.set('search', parts.search)
  if (parts.patient !== undefined) query.set('patient', parts.patient)
  if (parts.client !== undefined) query.set('client', parts.client)
  return query.size === 0 ? paths.portal : `${paths.portal}?${query}`
}
