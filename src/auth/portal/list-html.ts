import {
  badge,
  dateHtml,
  empty,
  type Html,
  html,
  icon,
  isAlike,
  nameHtml,
  type Person,
  personAge,
  recordNumber,
  sexText,
  valueHtml,
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

/** Search and list (design: Search, Patient row). */
export function listHtml(options: ListOptions): Html {
  const { list, search } = options
  return html`<div class="portal__find">
${searchForm(paths.portal, search)}
<div class="card plistbox">${list.patients.length === 0 ? nobody(search, paths.portal) : rows(options)}</div>
</div>`
}

/** Finds patients by name or number: the list of the address again, with `search`. */
export function searchForm(address: string, search: string | undefined, hidden?: Html): Html {
  return html`<form class="field" role="search" action="${address}">${hidden}
<label class="field__label" for="search">Find a patient by name or MRN</label>
<div class="search"><div class="search__box">${icon('search')}<input class="input" id="search" name="search" type="search" maxlength="${LIMITS.searchCharacters}" autocomplete="off" spellcheck="false" value="${search}"></div><button class="btn btn--quiet">Search</button></div>
</form>`
}

function rows({ list, search, pickedId, now }: ListOptions): Html {
  const { patients } = list
  return html`<div class="plist__head" aria-hidden="true"><span>Name</span><span>Born</span><span>Age</span><span>Sex</span><span>MRN</span></div>
<ol class="plist" aria-label="Patients">${patients.map(person =>
    row(person, {
      search,
      now,
      current: person.id === pickedId,
      alike: patients.some(other => isAlike(person, other)),
    }),
  )}</ol>
<p class="plist__note">${sentence(list, search)}</p>`
}

interface RowOptions {
  readonly search: string | undefined
  readonly now: number
  readonly current: boolean
  readonly alike: boolean
}

function row(person: Person, { search, now, current, alike }: RowOptions): Html {
  return html`<li><a class="prow" data-patient-id="${person.id}" href="${portalAddress({ search, patient: person.id })}"${current && html` aria-current="true"`}>
${rowFacts(person, { now, alike })}</a></li>
`
}

/** A longer record number has a line of its own: in its column a UUID would make a row of four. */
const LONG_NUMBER = 16

/** Name, birth date, age, sex and number of a patient in a row. */
export function rowFacts(person: Person, { now, alike }: { now: number; alike: boolean }): Html {
  const { label, value } = recordNumber(person)
  return html`<span class="prow__name">${nameHtml(person.name)}${alike && html`&ensp;${badge('Similar name', 'warn')}`}${person.death && html`&ensp;${badge('Died')}`}</span>
<span class="prow__facts">
<span class="prow__fact"><span class="prow__label">Born </span>${dateHtml(person.born)}</span>
<span class="prow__fact">${valueHtml(personAge(person, now))}</span>
<span class="prow__fact">${valueHtml(sexText(person.gender))}</span>
<span class="prow__fact${value.length > LONG_NUMBER && ' prow__fact--long'}">${
    label === 'MRN'
      ? html`<span class="prow__label">MRN </span>${value}`
      : html`<span class="unknown">No MRN</span> <span class="prow__id">${label} ${value}</span>`
  }</span>
</span>`
}

export function nobody(search: string | undefined, all: string): Html {
  if (search === undefined)
    return empty({
      title: 'There are no patients',
      text: 'The FHIR server has no patient that you may see.',
      action: { href: all, text: 'Look again' },
    })
  return empty({
    title: `No patient matches “${search}”`,
    text: 'Check the spelling, or type only the beginning of the name. An MRN is found when it is typed whole.',
    action: { href: all, text: 'Show the first 20 patients' },
  })
}

/** How many of how many. Which ones come first is up to the FHIR server: the alphabet has gaps where there are more. */
export function sentence({ patients, total, hasMore }: PatientList, search: string | undefined): string {
  const shown = patients.length
  const people = hasMore && total !== undefined ? `${shown} of ${total} patients` : patientCount(shown)
  const matching = search === undefined ? '' : ` ${people === '1 patient' ? 'matches' : 'match'} “${search}”`
  if (!hasMore) return search === undefined ? `${people}, by family name.` : `${people}${matching}.`
  const others = search === undefined ? 'Search' : 'Type more of the name'
  return `${people}${matching}. ${others} to find the others.`
}

function patientCount(count: number): string {
  return count === 1 ? '1 patient' : `${count} patients`
}

/** The portal with a search, a patient picked and an app chosen. */
export function portalAddress(parts: {
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
