import { findOwn } from '../../../core/index.ts'
import { type Html, html, renderEmptyState, renderSearchForm } from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import type { Parameters } from '../../base/request.ts'
import type { AdminRequest } from './route.ts'
import {
  type AdminPage,
  type Cells,
  type Columns,
  LISTED,
  renderAdminPage,
  renderLink,
  renderTable,
} from './shell.ts'

interface Explanation {
  readonly title: string
  readonly text: string
}

interface State<Filter> {
  readonly text: string
  readonly filter: Filter
  /** Why the list is empty, and how something gets there. */
  readonly none: Explanation
}

/** The lists of a section, by the `state` of the URL. */
export type States<Filter> = Readonly<Record<string, State<Filter>>> & { readonly all: State<Filter> }

interface Listing {
  /** The text of the search. */
  readonly text: string | undefined
  /** The position of the page. */
  readonly after: string | undefined
  readonly limit: number
}

interface List<Filter> extends AdminPage {
  readonly search: string
  readonly states: States<Filter>
  /** Why a search finds nothing. */
  readonly notFound: Explanation
  readonly caption: string
  readonly columns: Columns
  find(
    filter: Filter & Listing,
  ): Promise<{ readonly rows: readonly Cells[]; readonly next?: string | undefined }>
}

const MAX_SEARCH_CHARACTERS = 100

/** The list that a URL names, and its search. */
export function readListing<Filter>(form: Parameters, states: States<Filter>) {
  return {
    state: findOwn(states, form.get('state') ?? 'all') ?? states.all,
    text: form.get('search')?.trim().slice(0, MAX_SEARCH_CHARACTERS) || undefined,
  }
}

/** The page of a section that lists its items: by state, with a search, in pages. */
export async function renderList<Filter>(request: AdminRequest, list: List<Filter>): Promise<Html> {
  const { form } = request
  const { section, states, notFound, caption, columns, search } = list
  const path = `${paths.admin}/${section}`
  const { state, text } = readListing(form, states)
  const { rows, next } = await list.find({ ...state.filter, text, after: form.get('after'), limit: LISTED })
  return renderAdminPage(
    request,
    list,
    html`<nav class="filters" aria-label="Show"><ul class="tabs">${Object.entries(states).map(
      ([name, tab]) =>
        html`<li><a href="${path}?state=${name}"${tab === state && html` aria-current="page"`}>${tab.text}</a></li>`,
    )}</ul></nav>
${renderSearchForm({
  action: path,
  label: search,
  subject: search,
  value: form.get('search'),
  hidden: { state: form.get('state') },
  maxCharacters: MAX_SEARCH_CHARACTERS,
})}
<div class="after">${
      rows.length === 0
        ? html`<div class="card">${renderEmptyState(text === undefined ? state.none : notFound)}</div>`
        : renderTable(caption, columns, rows)
    }</div>
${next !== undefined && renderNextPage(request, `/${section}`, next)}`,
  )
}

export function renderNextPage({ request }: AdminRequest, path: string, next: string): Html {
  const query = new URLSearchParams(request.url.split('?')[1])
  query.set('after', next)
  return html`<p class="actions after">${renderLink(`${path}?${query}`, 'Next page', 'btn btn--quiet btn--small')}</p>`
}

export function count(number: number, noun: string): string {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`
}
