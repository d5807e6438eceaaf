import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  type Html,
  html,
  renderDanger,
  renderDateTime,
  renderFacts,
  renderPageHead,
  renderTable,
} from '../../../web/ui/index.ts'
import { makeRecord, writeRecords } from '../../base/audit.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { readParameters } from '../../base/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { type BulkExport, listExports, removeExport } from '../../oauth/exports.ts'
import type { Login } from '../../users/find-login.ts'
import { requireLogin } from '../../users/login.ts'
import { describeExportLevel, renderExportState, renderExportTypes } from '../parts/exports.ts'
import { renderSignedInPage } from '../parts/page-parts.ts'

/** The bulk exports of backend services that a person registered. */
export interface OwnExports {
  readonly items: readonly BulkExport[]
  readonly next: string | undefined
}

export function listOwnExports(context: AuthContext, { user }: Login): Promise<OwnExports> {
  return listExports(context, { registeredBy: user.id, limit: LIMITS.ownExports })
}

export function addOwnExportRoutes(app: FastifyInstance, context: AuthContext): void {
  const find = async (request: FastifyRequest, { user }: Login) => {
    const id = readParameters(request.params).get('id') ?? ''
    const { items } = await listExports(context, { registeredBy: user.id, id, limit: 1 })
    return items[0]
  }

  app.get(
    `${paths.manageExports}/:id/end`,
    requireLogin(context, async (request, reply, login) => {
      const found = await find(request, login)
      return found
        ? reply.sendPage(renderEndPage(context, login, found))
        : reply.sendProblem({ kind: 'not-found' })
    }),
  )

  app.post(
    `${paths.manageExports}/:id/end`,
    requireLogin(context, async (request, reply, login) => {
      const found = await find(request, login)
      const hasEnded = found !== undefined && (await endExport(context, request, login, found))
      return hasEnded
        ? reply.redirect(`${paths.manage}?export=ended`, 303)
        : reply.sendProblem({ kind: 'not-found' })
    }),
  )
}

/** Recorded like the end by an administrator. */
function endExport(
  context: AuthContext,
  request: FastifyRequest,
  { user }: Login,
  { id }: BulkExport,
): Promise<boolean> {
  return context.store.db.transaction().execute(async trx => {
    const before = await removeExport(trx, id)
    if (!before) return false
    const event = { kind: 'admin', status: 200, method: 'manage', request: `bulk-export end ${id}` } as const
    await writeRecords(context, trx, {
      ...makeRecord(context, request, { ...event, user }),
      details: { before },
    })
    return true
  })
}

/** Nothing for a person without such exports. */
export function renderOwnExports({ items, next }: OwnExports): Html | undefined {
  if (items.length === 0) return undefined
  return html`<section class="after" aria-labelledby="s-exports"><h2 class="section__title" id="s-exports">Data exports of apps that you registered</h2>
<div class="card card--clip">${renderTable(
    {
      caption: 'Data exports, newest first',
      kind: 'table--top table--stack',
      columns: [
        'App',
        'Of',
        'Types',
        'State',
        { head: 'Started', isNowrap: true },
        { head: 'Files until', isNowrap: true },
        { head: 'Action', isHidden: true },
      ],
    },
    items.map(one => [
      html`<b>${one.clientName}</b>`,
      describeExportLevel(one),
      renderExportTypes(one),
      renderExportState(one),
      renderDateTime(one.startedAt),
      renderDateTime(one.expiresAt),
      renderDanger(html`End<span class="sr"> export of ${one.clientName}</span>`, {
        href: buildEndUrl(one),
        size: 'small',
      }),
    ]),
  )}</div>
<p class="small muted after">These apps export data by themselves, not on behalf of a user.${next !== undefined && ` Only the ${LIMITS.ownExports} newest exports are shown.`}</p></section>`
}

function renderEndPage(context: AuthContext, login: Login, one: BulkExport): Html {
  return renderSignedInPage(
    context,
    login,
    { title: `End export of ${one.clientName}`, current: 'manage', width: 'flow' },
    html`${renderPageHead(
      `End this export of ${one.clientName}?`,
      'Its files cannot be downloaded any more, and downloads stop within 5 seconds. The app can start another export.',
    )}
<form class="card card__body stack" method="post" action="${buildEndUrl(one)}">
${renderFacts([
  ['App', one.clientName],
  ['Of', describeExportLevel(one)],
  ['Types', one.types.split(' ').join(', ')],
  ['State', renderExportState(one)],
  ['Started', renderDateTime(one.startedAt)],
  ['Files until', renderDateTime(one.expiresAt)],
])}
<div class="actions">${renderDanger('End export')}<a class="btn btn--quiet" href="${paths.manage}">Cancel</a></div>
</form>`,
  )
}

function buildEndUrl({ id }: BulkExport): string {
  return `${paths.manageExports}/${encodeURIComponent(id)}/end`
}
