import type { FastifyReply } from 'fastify'
import { isFailure, isRecord, toSentence } from '../../../core/index.ts'
import { CSV_TYPE, type Html, html, renderAlert, renderEmptyState } from '../../../web/ui/index.ts'
import type { Fault } from '../../base/fault.ts'
import type { AdminFailure } from '../base/action.ts'
import { readCells } from './columns.ts'
import { exportList } from './export.ts'
import { type Filters, readFilters, refuseFilters, type Wanted } from './filters.ts'
import {
  findState,
  type List,
  listFilters,
  type Opened,
  openList,
  recordReading,
  refuseUnknown,
  type ShownList,
} from './list.ts'
import { getPath, MAX_SEARCH_CHARACTERS, renderControls } from './list-controls.ts'
import {
  findMeantPatients,
  isMistyped,
  type MeantPatients,
  renderMeantPatients,
} from './page/find-patients.ts'
import type { AdminRequest, AdminRoute } from './page/route.ts'
import {
  LISTED,
  readDone,
  renderActionTable,
  renderAdminPage,
  renderButton,
  renderLink,
  renderTable,
} from './page/shell.ts'

type Page<Row> = NonNullable<List<Row>['page']>

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

function sendList<Row>(list: List<Row>, csv: NonNullable<List<Row>['csv']>) {
  const { file = csv.path.replace(/^.*\//, '') } = csv
  return async (request: AdminRequest): Promise<FastifyReply | AdminFailure> => {
    const opened = await openPage(request, list)
    const parts = isFailure(opened)
      ? opened
      : await exportList(list, csv, request.admin, {
          ...opened,
          unknown: [...opened.unknown, ...listUnknownPatients(opened.patients)],
        })
    return isFailure(parts) ? parts : request.reply.sendDownload(file, CSV_TYPE, parts)
  }
}

/** A list as the URL of its page asks for it. */
interface OpenedPage extends Opened, ShownList {}

/** Reads the filters of a URL, and finds what they mean; patients also by their names. */
export async function openPage<Row>(
  request: AdminRequest,
  list: List<Row>,
): Promise<OpenedPage | AdminFailure> {
  const { page } = list
  const filters: Filters = { ...listFilters(list), ...page?.filters }
  const wanted = readUrlFilters(request, filters)
  if (isFailure(wanted)) return wanted
  const opened = await openList({ ...list, filters }, request.admin, wanted)
  if (isFailure(opened)) return opened
  const key = Object.keys(filters).find(one => filters[one]?.names === 'patient')
  const named = key === undefined ? undefined : wanted[key]
  const isNamed = key !== undefined && Array.isArray(opened.meant[key])
  const patients = isNamed
    ? await findMeantPatients(request, page?.purpose ?? 'patient-search', String(named))
    : undefined
  const texts = Object.entries(filters).map(
    ([key, { name = key }]) => [name, String(wanted[key] ?? '')] as const,
  )
  return {
    wanted,
    meant: patients && key !== undefined ? { ...opened.meant, [key]: patients.ids } : opened.meant,
    unknown: opened.unknown,
    patients,
    isContinued: request.form.get('after') !== undefined,
    buildPath(others = {}) {
      const all = Object.entries({ ...Object.fromEntries(texts), ...others })
      const query = new URLSearchParams(all.filter(([, value]) => value !== ''))
      return `${page ? getPath(page) : ''}${query.size === 0 ? '' : `?${query}`}`
    },
  }
}

/** The parameters of a page that are no filters. */
const OTHERS: readonly string[] = ['after', 'done']

/** The filters in the URL of a page, or what is wrong with them. */
function readUrlFilters({ request }: AdminRequest, filters: Filters): Wanted | AdminFailure {
  const sent = Object.entries(isRecord(request.query) ? request.query : {})
    .filter(([name]) => !OTHERS.includes(name))
    .map(([name, value]) => [name, typeof value === 'string' ? value.trim() : value] as const)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => [name, name === 'search' ? String(value).slice(0, MAX_SEARCH_CHARACTERS) : value])
  const { wanted, faults } = readFilters(filters, Object.fromEntries(sent), 'name')
  return faults.length > 0 ? refuseFilters(faults) : wanted
}

/** The page of a list. `result`: of an operation. */
export async function renderList<Row>(
  request: AdminRequest,
  list: List<Row>,
  result?: Html,
): Promise<Html | FastifyReply | AdminFailure> {
  const { page } = list
  if (!page) throw new Error('Cannot show a list without a page')
  const { admin, form } = request
  const view = await openPage(request, list)
  if (isFailure(view)) return sendWrongFilters(request, page, view)
  const refused = await recordReading(list, admin, view)
  if (refused) return refused
  const read = await list.read(admin, { ...view.meant, after: form.get('after'), limit: LISTED })
  const fault = page.unknown ? undefined : refuseUnknown(view, read)
  if (fault) return sendWrongFilters(request, page, fault)
  const { items = read.items, ...more } = (await page.complete?.(request, view, read.items)) ?? {}
  const table = { ...page, columns: page.cells ?? list.columns }
  const rows =
    items.length > 0
      ? renderRows(request, table, items)
      : more.none || renderNone(list, page, view, read.next)
  const controls = await renderControls(request, list, view.wanted)
  const isApart = controls.length > 0 && !more.between && !page.isFolded
  return renderAdminPage(
    request,
    {
      ...page,
      done: page.done && readDone(request, page.done),
      actions: renderActions(request, list, view),
    },
    html`${result}${more.above}${controls}
${view.patients && renderMeantPatients(view.patients, patient => view.buildPath({ patient }))}
${more.between}
${isApart ? html`<div class="after">${rows}</div>` : rows}
${read.next !== undefined && renderNextPage(request, page, read.next)}
${more.below}`,
  )
}

function renderActions<Row>(
  request: AdminRequest,
  { page, csv }: List<Row>,
  view: OpenedPage,
): Html | undefined {
  const own = page?.actions?.(request, view)
  if (!page || !csv) return own
  const path = view.buildPath().replace(getPath(page), csv.path)
  return html`${own}${renderLink(path, 'Export CSV', 'btn btn--quiet')}`
}

function renderNextPage<Row>({ request }: AdminRequest, page: Page<Row>, next: string): Html {
  const query = new URLSearchParams(request.url.split('?')[1])
  query.set('after', next)
  const path = `${getPath(page)}?${query}`
  return html`<p class="actions after">${renderButton(path, page.next ?? 'Next page')}</p>`
}

function listUnknownPatients({ found, fault }: Partial<MeantPatients> = {}): readonly Fault[] {
  return found?.length === 0 && fault ? [fault] : []
}

/** Why there are no rows: somebody of the filters is not known, or no row meets them. */
function renderNone<Row>(
  { states }: List<Row>,
  page: Page<Row>,
  { wanted, unknown, patients }: OpenedPage,
  next: string | undefined,
): Html {
  const texts = [...unknown, ...listUnknownPatients(patients)].map(({ text }) => toSentence(text))
  const words = next === undefined && texts.length > 0 ? page.unknown : undefined
  if (words) {
    const isMisspelt = !patients || isMistyped(patients)
    const title = unknown.length > 0 ? words.title : words.patient
    return renderAlert(
      isMisspelt ? title : 'Not looked up.',
      `${texts.join(' ')} ${isMisspelt ? words.misspelt : words.unsure}`,
      'warn',
    )
  }
  const { state, text, ...others } = wanted
  const isFiltered = Object.keys(others).length > 0
  const none = isFiltered || text !== undefined ? undefined : findState(states, state)?.none
  const { notFound, noMatch = 'Nothing matches these filters.' } = page
  const reason = isFiltered ? { ...notFound, text: noMatch } : (none ?? notFound)
  return html`<div class="card">${renderEmptyState((next !== undefined && page.notYetFound) || reason)}</div>`
}

/** A table of rows, with what can be done with each. */
export function renderRows<Row>(
  request: AdminRequest,
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
        rows.map(row => [...renderRow(row), renderAction(row, request)]),
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
<p class="actions after">${renderButton(getPath(page), 'Show all')}</p>`,
  )
  return request.reply.sendPage(shown, { status: 400 })
}
