import { Type } from 'typebox'
import { isFailure } from '../../../core/index.ts'
import { CLOSED, OneOf, Time } from '../../../endpoint/index.ts'
import { html } from '../../../web/ui/index.ts'
import { type BulkExport, EXPORT_STATES, listExports, removeExport } from '../../oauth/exports.ts'
import { describeExportLevel, renderExportState, renderExportTypes } from '../../pages/parts/exports.ts'
import { type Admin, type AdminFailure, failAdmin, perform } from '../base/action.ts'
import { type AdminEndpoint, defineEndpoint } from '../base/endpoint.ts'
import { findWantedApps } from '../base/find-named.ts'
import { describeColumns, listDetails, toJson } from '../subject/columns.ts'
import { defineListEndpoint } from '../subject/endpoint.ts'
import { defineList } from '../subject/list.ts'
import { defineListRoutes } from '../subject/list-page.ts'
import { defineOperationEndpoints, defineOperationRoutes, type Subject } from '../subject/operations.ts'
import type { AdminRoute } from '../subject/page/route.ts'
import {
  renderActionLinks,
  renderAdminPage,
  renderAuditLinks,
  renderFacts,
  renderLink,
} from '../subject/page/shell.ts'

const FILTERS = {
  client_id: {
    schema: Type.String(),
    about: 'The id of an app.',
    help: 'Only exports of this app: its id or its name.',
    name: 'app',
    option: 'client',
  },
}

/** The bulk exports of backend services. */
export const EXPORTS = defineList<BulkExport, typeof FILTERS>({
  columns: {
    id: {
      schema: Type.String(),
      about: 'Not a secret: it gives no access.',
      of: 'id',
      detail: ['ID', ({ id }) => html`<code>${id}</code>`],
      table: 'ID',
    },
    client_id: {
      schema: Type.String(),
      of: 'clientId',
      page: ['App', ({ id, clientName }) => renderLink(`/exports/${id}`, clientName)],
      detail: [
        'App',
        ({ clientId, clientName, issuer }) =>
          issuer === '' ? renderLink(`/apps/${encodeURIComponent(clientId)}`, clientName) : clientId,
      ],
      table: 'APP',
    },
    level: {
      schema: Type.String(),
      about: '`system`, `patient` or `group`.',
      of: 'level',
      page: ['Of', describeExportLevel],
      detail: 'Of',
      table: 'OF',
    },
    types: {
      schema: Type.String(),
      about: 'The exported resource types, separated by spaces.',
      of: 'types',
      page: ['Types', renderExportTypes],
      detail: ['Types', ({ types }) => types.split(' ').join(', ')],
    },
    state: {
      schema: OneOf(EXPORT_STATES),
      about:
        'The files are prepared while the client asks for them: `started` if it never did, `idle` if it has stopped. `ready`: they can be downloaded.',
      of: 'state',
      page: ['State', renderExportState],
      detail: 'State',
      table: 'STATE',
    },
    asked_at: {
      schema: Type.Optional(Time),
      about: 'When the client last asked for the files, until they are ready. Missing if it never did.',
      of: 'askedAt',
    },
    files: {
      schema: Type.Optional(Type.Integer()),
      about: 'The number of files. Missing as long as it is not known.',
      of: 'files',
      table: 'FILES',
    },
    started_at: {
      schema: Time,
      of: 'startedAt',
      page: 'Started',
      detail: 'Started',
      table: 'STARTED',
    },
    expires_at: {
      schema: Time,
      of: 'expiresAt',
      page: 'Expires',
      detail: 'Expires',
      table: 'EXPIRES',
    },
  },
  filters: FILTERS,
  async read(admin, { client_id, after, limit }) {
    const clientIds = await findWantedApps(admin, client_id)
    return isFailure(clientIds) ? clientIds : listExports(admin, { clientIds, after, limit })
  },
  api: { path: '/exports', title: 'Bulk exports that have neither ended nor expired, newest first' },
  page: {
    section: 'access',
    path: '/exports',
    title: 'Bulk exports',
    lead: 'Backend services that export data. No copy is stored: a file is made while it is downloaded. An export that ends cannot be downloaded any more.',
    caption: 'Bulk exports, newest first',
    notFound: {
      title: 'No export',
      text: 'No app has a bulk export that has neither ended nor expired. The audit trail has all earlier ones.',
    },
    done: { ended: 'The export has ended. Downloads stop within 5 seconds.' },
  },
  csv: {
    path: '/exports.csv',
    operation: { name: 'bulk-export download', signIn: 'never asks', isForAuditors: true },
  },
  command: {
    name: 'bulk-export list',
    nouns: 'exports',
    about: 'Prints the bulk exports that have neither ended nor expired, newest first.',
    more: 'To end one: bulk-export end <id>',
    none: 'No app exports data.',
  },
})

export function endExport(admin: Admin, id: string): Promise<{ readonly id: string } | AdminFailure> {
  return perform(admin, async trx => {
    const row = await removeExport(trx, id)
    if (!row) return failAdmin('export-unknown', { id })
    const operation = { name: 'bulk-export end', signIn: 'never asks' } as const
    return { operation, target: id, result: { id }, before: row }
  })
}

async function findExport(admin: Admin, id: string): Promise<BulkExport | AdminFailure> {
  const [found] = (await listExports(admin, { id, limit: 1 })).items
  return found ?? failAdmin('export-unknown', { id })
}

/** A bulk export, which an administrator can end. */
export const EXPORT: Subject<BulkExport, string, { readonly id: string }> = {
  name: 'bulk-export',
  operations: {
    end: {
      signIn: 'never asks',
      api: {
        method: 'DELETE',
        path: '',
        title: 'End a bulk export',
        description: 'Its files cannot be downloaded any more. Downloads stop within 5 seconds.',
      },
      page: {
        title: () => 'End this export?',
        text: 'Its files cannot be downloaded any more, and downloads stop within 5 seconds. The app can start another export as long as it has access.',
        button: 'End export',
      },
      link: { text: 'End export', isOffered: () => true },
      command: {
        done: 'Ended',
        help: `
Ends a bulk export. Its files cannot be downloaded any more, and downloads stop within 5 seconds.`,
      },
      perform: endExport,
    },
  },
  toTarget: id => id,
  api: {
    path: '/exports/:id',
    result: Type.Object({ id: Type.String() }, CLOSED),
    describe: changed => changed,
  },
  pages: {
    section: 'access',
    path: '/exports/:id',
    find: ({ admin, params: { id = '' } }) => findExport(admin, id),
    getBack: (_, { id }) => `/exports/${id}`,
    listFacts: async (request, row) =>
      listDetails(EXPORTS.columns, row, request).map(([name, value]) => [name, html`${value}`]),
    show: () => '/exports?done=ended',
  },
  command: { noun: 'export', option: 'id' },
}

export const exportRoutes: readonly AdminRoute[] = [
  ...defineListRoutes(EXPORTS),
  {
    method: 'GET',
    path: '/exports/:id',
    async handle(request) {
      const { admin, params } = request
      const found = await findExport(admin, params.id ?? '')
      if (isFailure(found)) return found
      return renderAdminPage(
        request,
        {
          section: 'access',
          title: `Export of ${found.clientName}`,
          actions: renderActionLinks(request, `/exports/${found.id}`, found, EXPORT.operations),
        },
        renderFacts([
          ...listDetails(EXPORTS.columns, found, request),
          ['Audit', renderAuditLinks(['Records of this app', { app: found.clientId }])],
        ]),
      )
    },
  },
  ...defineOperationRoutes(EXPORT),
]

export const exportEndpoints: readonly AdminEndpoint[] = [
  ...defineListEndpoint(EXPORTS),
  defineEndpoint({
    method: 'GET',
    path: '/exports/:id',
    title: 'One bulk export that has neither ended nor expired',
    result: describeColumns(EXPORTS.columns),
    async handle({ admin, params: { id = '' } }) {
      const found = await findExport(admin, id)
      return isFailure(found) ? found : toJson(EXPORTS.columns, found)
    },
  }),
  ...defineOperationEndpoints(EXPORT),
]
