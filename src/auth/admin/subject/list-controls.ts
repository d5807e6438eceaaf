import type { JsonSchema } from '../../../endpoint/index.ts'
import { type Choice, type Html, html, renderSearchForm, renderSelect } from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { Filter, Wanted } from './filters.ts'
import { findState, type List } from './list.ts'
import { namePatientField } from './page/find-patients.ts'
import type { AdminRequest } from './page/route.ts'
import { renderButton } from './page/shell.ts'

type Page<Row> = NonNullable<List<Row>['page']>

export const MAX_SEARCH_CHARACTERS = 100

/** Below the area. */
export function getPath({ path, section }: Pick<Page<never>, 'path' | 'section'>): string {
  return path ?? `/${section}`
}

/** The tabs, the search and the fields above a list. */
export async function renderControls<Row>(
  request: AdminRequest,
  list: List<Row>,
  wanted: Wanted,
): Promise<readonly Html[]> {
  const { page } = list
  if (!page) return []
  const controls = [
    renderStates(list, page, wanted.state),
    renderSearch(request, page),
    await renderFields(request, list, page, wanted),
  ]
  return controls.filter(part => part !== undefined)
}

function renderStates<Row>({ states }: List<Row>, page: Page<Row>, state: unknown): Html | undefined {
  if (!states) return undefined
  const shown = findState(states, state)
  return html`<nav class="filters" aria-label="Show"><ul class="tabs">${Object.entries(states).map(
    ([name, tab]) =>
      html`<li><a href="${paths.admin}${getPath(page)}?state=${name}"${tab === shown && html` aria-current="page"`}>${tab.text}</a></li>`,
  )}</ul></nav>`
}

function renderSearch<Row>({ form }: AdminRequest, page: Page<Row>): Html | undefined {
  const { search: label } = page
  if (label === undefined) return undefined
  return renderSearchForm({
    action: `${paths.admin}${getPath(page)}`,
    label,
    subject: label,
    value: form.get('search'),
    hidden: { state: form.get('state') },
    maxCharacters: MAX_SEARCH_CHARACTERS,
  })
}

async function renderFields<Row>(
  request: AdminRequest,
  list: List<Row>,
  page: Page<Row>,
  wanted: Wanted,
): Promise<Html | undefined> {
  const filters: Readonly<Record<string, Filter>> = { ...list.filters, ...page.filters }
  const shown = page.fields ?? Object.keys(filters).filter(key => filters[key]?.label !== undefined)
  if (shown.length === 0) return undefined
  const hasNames = shown.some(key => filters[key]?.names !== undefined)
  const suggested = hasNames ? await findChoices(request.context) : undefined
  const fields = shown.flatMap(key => {
    const filter = filters[key]
    if (!filter) return []
    const { label = '', names } = filter
    const text = names === 'patient' ? namePatientField(request, page.purpose) : label
    const choices = names && names !== 'patient' ? suggested?.[names] : undefined
    return renderFilter(filter.name ?? key, filter, text, String(wanted[key] ?? ''), choices)
  })
  const form = html`<form class="narrow narrow__form" method="get" action="${paths.admin}${getPath(page)}" role="search" aria-label="${page.caption}">
${fields}
<p class="narrow__act"><button class="btn btn--small">Show</button> ${renderButton(getPath(page), 'Show all')}</p>
</form>`
  const set = Object.keys(wanted).length
  return page.isFolded
    ? html`<details class="more filters"><summary>Filters${set > 0 && `: ${set} set`}</summary>${form}</details>`
    : form
}

/** The field of a filter. One with few values is a choice. Others may have suggestions. */
function renderFilter(
  name: string,
  { all = 'All', isDate, schema }: Pick<Filter, 'all' | 'isDate' | 'schema'>,
  label: string,
  value: string,
  suggested: readonly Choice[] = [],
): Html {
  const { type, anyOf = [] }: JsonSchema = schema
  const choices: readonly Choice[] =
    type === 'boolean'
      ? [
          ['true', 'Yes'],
          ['false', 'No'],
        ]
      : anyOf.map(one => [String(one.const), one.title ?? String(one.const)])
  return choices.length > 0
    ? renderSelect({ name, label, all }, choices, value)
    : renderInput(name, label, value, suggested, isDate ? 'date' : 'text')
}

const OFFERED = 200

/** Suggestions for the fields that name users and apps. Other values can be typed. */
async function findChoices({
  store,
}: AuthContext): Promise<Readonly<Record<'user' | 'app', readonly Choice[]>>> {
  const [users, apps] = await Promise.all([
    store.db
      .selectFrom('clinician')
      .select(['username', 'display_name'])
      .orderBy('username')
      .limit(OFFERED)
      .execute(),
    store.db.selectFrom('client').select(['client_id', 'name']).orderBy('client_id').limit(OFFERED).execute(),
  ])
  return {
    user: users.map(row => [row.username, row.display_name]),
    app: apps.map(row => [row.client_id, row.name]),
  }
}

function renderInput(
  name: string,
  label: string,
  value: string,
  choices: readonly Choice[],
  type: 'text' | 'date',
): Html {
  return html`<p class="field"><label class="field__label" for="${name}">${label}</label><input class="input" id="${name}" name="${name}" type="${type}" value="${value}" autocomplete="off" autocapitalize="none" spellcheck="false"${choices.length > 0 && html` list="${name}-choices"`}></p>${
    choices.length > 0 &&
    html`<datalist id="${name}-choices">${choices.map(([id, text]) => html`<option value="${id}">${text}</option>`)}</datalist>`
  }`
}
