import { type Html, html } from '../html.ts'
import { icon } from '../icons.ts'
import { renderDate } from './date.ts'
import type { Person } from './person.ts'
import { formatDeath, listFacts, renderName } from './words.ts'

export interface BannerOptions {
  readonly now: number
  /** Its name is the heading of the page in the app, of a section in the portal. */
  readonly heading: 'h1' | 'h2' | 'p'
  /** Of the heading, for `aria-labelledby`. */
  readonly id?: string
  /** Further facts at the end, such as allergies. */
  readonly more?: readonly (readonly [label: string, value: Html])[]
  /** In the app: as wide as the page, and always in sight. */
  readonly sticky?: boolean
}

/** The one dark band, which means "this patient": name, Born (age), Sex, MRN (design: Patient banner). */
export function renderPatientBanner(person: Person, options: BannerOptions): Html {
  const { now, id, more = [], sticky = false } = options
  const died = formatDeath(person)
  const name = html`${renderName(person.name, { withTitle: true })}${
    died !== undefined && html` <span class="patient__died">${died}</span>`
  }`
  const facts = [...listFacts(person, now), ...more].map(
    ([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`,
  )
  const inside = html`${heading(options.heading, id, name)}<dl class="facts">${facts}</dl>`
  return sticky
    ? html`<section class="patient patient--sticky" aria-label="Patient"><div class="wrap patient__in">${inside}</div></section>`
    : html`<div class="patient"><div class="patient__in">${inside}</div></div>`
}

function heading(level: BannerOptions['heading'], id: string | undefined, name: Html): Html {
  const named = id !== undefined && html` id="${id}"`
  switch (level) {
    case 'h1':
      return html`<h1 class="patient__name"${named}>${name}</h1>`
    case 'h2':
      return html`<h2 class="patient__name"${named}>${name}</h2>`
    case 'p':
      return html`<p class="patient__name"${named}>${name}</p>`
  }
}

/** Names the patients that could be taken for this one. Nothing when there are none. */
export function renderAlikeWarning(others: readonly Person[]): Html | undefined {
  if (others.length === 0) return undefined
  const names = others.map(
    (other, at) => html`${at > 0 && '; '}${renderName(other.name)}, born ${renderDate(other.born)}`,
  )
  return html`<p class="patient__warn">${icon('warning')}<span>Similar name: ${names}</span></p>`
}
