import { type Html, html } from '../../../web/ui/index.ts'
import { AdminFailure } from '../base/action.ts'
import { listDetails } from './columns.ts'
import { type AdminEndpoint, defineEndpoint } from './endpoint.ts'
import type { AdminRequest, AdminRoute } from './page/route.ts'
import {
  readDone,
  renderAdminPage,
  renderAuditLinks,
  renderDangerLink,
  renderFacts,
  renderLink,
} from './page/shell.ts'
import type { MoreDetails, RowOperations, Subject } from './subject.ts'

/** The row of the path of a page, with what an operation needs. */
export async function findRow<Row, Target, Changed, Listed>(
  { find, pages }: Subject<Row, Target, Changed, Listed>,
  request: AdminRequest,
  verb?: string,
): Promise<Row | AdminFailure> {
  if (!find || !pages) throw new Error('Cannot find a row without a function that does')
  const row = await find(request, readId(request))
  if (row instanceof AdminFailure) return row.code === 'not_found' ? (pages.unknown ?? row) : row
  return pages.prepare?.(request, row, verb) ?? row
}

/** The id in the path of a request. */
export function readId({ params }: Pick<AdminRequest, 'params'>): string {
  return Object.values(params)[0] ?? ''
}

/** The endpoint of one row. */
export function defineOneEndpoint<Row, Target, Changed, Listed>({
  find,
  api,
}: Subject<Row, Target, Changed, Listed>): readonly AdminEndpoint[] {
  if (!find || !api?.one) return []
  const { describe, ...one } = api.one
  return [
    defineEndpoint({
      method: 'GET',
      path: api.path,
      ...one,
      async handle(call) {
        const row = await find(call, readId(call))
        return row instanceof AdminFailure ? row : describe(row, call)
      },
    }),
  ]
}

/** The page of one row. */
export function defineDetailsRoutes<Row, Target, Changed, Listed>(
  subject: Subject<Row, Target, Changed, Listed>,
): readonly AdminRoute[] {
  const { pages } = subject
  if (!pages?.details) return []
  return [
    {
      method: 'GET',
      path: pages.path,
      async handle(request) {
        const row = await findRow(subject, request)
        return row instanceof AdminFailure ? row : renderDetails(subject, request, row)
      },
    },
  ]
}

export async function renderDetails<Row, Target, Changed, Listed>(
  { pages, operations }: Subject<Row, Target, Changed, Listed>,
  request: AdminRequest,
  row: Row,
  more?: MoreDetails,
): Promise<Html> {
  if (!pages?.details) throw new Error('Cannot show a page without its details')
  const { columns, title, lead, done = {}, actions, listRecords } = pages.details
  const links = request.mayChange && renderActionLinks(operations, buildRowPath(pages, request), row)
  const { above, facts = [], below } = more ?? (await pages.details.more?.(request, row)) ?? {}
  return renderAdminPage(
    request,
    {
      section: pages.section,
      title: title(row),
      lead: lead?.(row),
      actions: actions || links ? html`${actions}${links}` : undefined,
      done: readDone(request, done),
    },
    html`${above}
${renderFacts([
  ...listDetails(columns, row, request),
  ...facts,
  ...(listRecords ? [['Audit', renderAuditLinks(...listRecords(row))] as const] : []),
])}
${below}`,
  )
}

/** The path of the page of the row of a request, below the area. */
export function buildRowPath({ path }: { readonly path: string }, request: AdminRequest): string {
  return path.replace(/:\w+$/, encodeURIComponent(readId(request)))
}

/** The links to the pages of the operations that are offered. */
function renderActionLinks<Row, Target, Changed>(
  operations: RowOperations<Row, Target, Changed>,
  path: string,
  row: Row,
): Html {
  return html`${Object.entries(operations).map(
    ([verb, { path: last = verb, page, link }]) =>
      link?.isOffered(row) && html`${renderActionLink(`${path}/${last}`, link, page)}\n`,
  )}`
}

function renderActionLink(
  path: string,
  { text, isMain = false }: { readonly text: string; readonly isMain?: boolean },
  page: { readonly isDangerous?: false } | undefined,
): Html {
  if (page && page.isDangerous !== false) return renderDangerLink(path, text)
  return renderLink(path, text, `btn${isMain ? '' : ' btn--quiet'} btn--small`)
}
