import type { FastifyReply } from 'fastify'
import { isFailure, isRecord } from '../../../core/index.ts'
import type { JsonSchema } from '../../../endpoint/index.ts'
import {
  type Choice,
  CSV_TYPE,
  type Html,
  html,
  renderAlert,
  renderEmptyState,
  renderSearchForm,
  renderSelect,
} from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import type { AdminFailure } from '../base/action.ts'
import { readCells } from './columns.ts'
import {
  exportList,
  type Filter,
  type Filters,
  findState,
  type List,
  listFilters,
  readFilters,
  readList,
  refuseFilters,
} from './list.ts'
import { renderInput } from './page/filters.ts'
import { renderNextPage } from './page/list.ts'
import type { AdminRequest, AdminRoute } from './page/route.ts'
import {
  LISTED,
  readDone,
  renderActionTable,
  renderAdminPage,
  renderLink,
  renderTable,
} from './page/shell.ts'

const MAX_SEARCH_CHARACTERS = 100

/** The parameters of a page that are no filters. */
const OTHERS: readonly string[] = ['after', 'done']

/** The filters in the URL of a page, or what is wrong with them. */
export function readUrlFilters({ request }: AdminRequest, filters: Filters) {
  const sent = Object.entries(isRecord(request.query) ? request.query : {})
    .filter(([name]) => !OTHERS.includes(name))
    .map(([name, value]) => [name, typeof value === 'string' ? value.trim() : value] as const)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => [name, name === 'search' ? String(value).slice(0, MAX_SEARCH_CHARACTERS) : value])
  const { wanted, faults } = readFilters(filters, Object.fromEntries(sent), 'name')
  return faults.length > 0 ? refuseFilters(faults) : wanted
}

/** The page of a list, and its download. */
export function defineListRoutes<Row>(list: List<Row>): readonly AdminRoute[] {
  const { page, csv } = list
  return [
    ...(page
      ? [
          {
            method: 'GET',
            path: getPath(page),
            handle: (request: AdminRequest) => renderList(request, list),
          } as const,
        ]
      : []),
    ...(csv ? [{ method: 'GET', path: csv.path, handle: sendList(list, csv) } as const] : []),
  ]
}

/** Below the area. */
function getPath({ path, section }: Pick<Page<never>, 'path' | 'section'>): string {
  return path ?? `/${section}`
}

type Page<Row> = NonNullable<List<Row>['page']>

function sendList<Row>(list: List<Row>, { path, operation }: NonNullable<List<Row>['csv']>) {
  return async (request: AdminRequest): Promise<FastifyReply | AdminFailure> => {
    const wanted = readUrlFilters(request, listFilters(list))
    const parts = isFailure(wanted) ? wanted : await exportList(list, operation, request.admin, wanted)
    return isFailure(parts) ? parts : request.reply.sendDownload(path.replace(/^.*\//, ''), CSV_TYPE, parts)
  }
}

/** The page of a list. `above` is the result of an operation. */
export async function renderList<Row>(
  request: AdminRequest,
  list: List<Row>,
  above?: Html,
): Promise<Html | FastifyReply> {
  const { page } = list
  if (!page) throw new Error('Cannot show a list without a page')
  const { form, admin } = request
  const wanted = readUrlFilters(request, listFilters(list))
  if (isFailure(wanted)) return sendWrongFilters(request, page, wanted)
  const read = await readList(list, admin, { ...wanted, after: form.get('after'), limit: LISTED })
  if (isFailure(read)) return sendWrongFilters(request, page, read)
  const { items, next } = read
  const { state, text, ...others } = wanted
  const isFiltered = Object.keys(others).length > 0
  const none = isFiltered || text !== undefined ? undefined : findState(list.states, state)?.none
  const notFound = isFiltered ? { ...page.notFound, text: 'Nothing matches these filters.' } : page.notFound
  const controls = [
    renderStates(list, page, state),
    renderSearch(request, page),
    renderFields(request, list, page),
  ].filter(part => part !== undefined)
  const rows =
    items.length === 0
      ? html`<div class="card">${renderEmptyState(none ?? notFound)}</div>`
      : renderRows(request, { ...page, columns: list.columns }, items)
  return renderAdminPage(
    request,
    { ...page, done: page.done && readDone(request, page.done), actions: renderActions(request, list, page) },
    html`${above}${controls}
${controls.length > 0 ? html`<div class="after">${rows}</div>` : rows}
${next !== undefined && renderNextPage(request, getPath(page), next)}`,
  )
}

/** A table of rows, with what can be done with each. */
export function renderRows<Row>(
  request: Pick<AdminRequest, 'mayChange'>,
  {
    columns,
    caption,
    renderAction,
  }: Pick<List<Row>, 'columns'> & Pick<Page<Row>, 'caption' | 'renderAction'>,
  rows: readonly Row[],
): Html {
  const { heads, renderRow } = readCells(columns)
  return renderAction
    ? renderActionTable(
        request,
        caption,
        heads,
        rows.map(row => [...renderRow(row), renderAction(row)]),
      )
    : renderTable(caption, heads, rows.map(renderRow))
}

/** A list that ignored a filter would be taken for the filtered one. */
export function sendWrongFilters(
  request: AdminRequest,
  page: Pick<Page<never>, 'section' | 'title' | 'path'>,
  { sentence }: AdminFailure,
): FastifyReply {
  const { section, title } = page
  const shown = renderAdminPage(
    request,
    { section, title },
    html`${renderAlert('Nothing is shown.', sentence, 'bad')}
<p class="actions after">${renderLink(getPath(page), 'Show all', 'btn btn--quiet btn--small')}</p>`,
  )
  return request.reply.sendPage(shown, { status: 400 })
}

function renderActions<Row>(request: AdminRequest, { csv }: List<Row>, page: Page<Row>): Html | undefined {
  const own = page.actions?.(request)
  if (!csv) return own
  const [, query] = request.request.url.split('?')
  return html`${own}${renderLink(`${csv.path}${query === undefined ? '' : `?${query}`}`, 'Export CSV', 'btn btn--quiet')}`
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

/** The filters that have a label. */
function renderFields<Row>(
  { form }: AdminRequest,
  { filters }: List<Row>,
  page: Page<Row>,
): Html | undefined {
  const fields = Object.entries(filters).flatMap(([key, { name = key, ...filter }]) =>
    filter.label === undefined ? [] : [renderFilter(name, filter, form.get(name) ?? '')],
  )
  if (fields.length === 0) return undefined
  return html`<form class="narrow narrow__form" method="get" action="${paths.admin}${getPath(page)}" role="search" aria-label="${page.title}">
${fields}
<p class="narrow__act"><button class="btn btn--small">Show</button> ${renderLink(getPath(page), 'Show all', 'btn btn--quiet btn--small')}</p>
</form>`
}

/** The field of a filter. One with few values is a choice. Others may have suggestions. */
export function renderFilter(
  name: string,
  { label = '', all = 'All', isDate, schema }: Omit<Filter, 'about'>,
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
