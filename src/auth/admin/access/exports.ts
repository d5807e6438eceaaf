import { Type } from 'typebox'
import { OneOf, Time } from '../../../endpoint/index.ts'
import { html } from '../../../web/ui/index.ts'
import { type BulkExport, EXPORT_STATES, listExports, removeExport } from '../../oauth/exports.ts'
import { describeExportLevel, renderExportState, renderExportTypes } from '../../pages/parts/exports.ts'
import { type Admin, type AdminFailure, failAdmin, perform } from '../base/action.ts'
import { APP_FILTER } from '../base/find-named.ts'
import { defineArea } from '../subject/area.ts'
import { describeColumns, listDetails, toJson } from '../subject/columns.ts'
import { defineList } from '../subject/list.ts'
import { renderLink } from '../subject/page/shell.ts'
import type { Subject } from '../subject/subject.ts'

const FILTERS = {
  client_id: { ...APP_FILTER, help: 'Only exports of this app: its id or its name.' },
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
  read: (admin, { client_id: clientIds, ...page }) => listExports(admin, { clientIds, ...page }),
  api: { path: '/exports', title: 'Bulk exports that have neither ended nor expired, newest first' },
  page: {
    section: 'access',
    path: '/exports',
    title: 'Bulk exports',
    lead: 'Backend services that export data. No copy is stored: a file is made while it is downloaded. An export that ends cannot be downloaded any more.',
    caption: 'Bulk exports, newest first',
    fields: [],
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
    more: 'For one of them: bulk-export show <id>. To end it: bulk-export end <id>.',
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
const EXPORT: Subject<BulkExport, string, { readonly id: string }> = {
  name: 'bulk-export',
  lists: [EXPORTS],
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
  find: ({ admin }, id) => findExport(admin, id),
  api: {
    path: '/exports/:id',
    one: {
      title: 'One bulk export that has neither ended nor expired',
      result: describeColumns(EXPORTS.columns),
      describe: found => toJson(EXPORTS.columns, found),
    },
  },
  pages: {
    section: 'access',
    path: '/exports/:id',
    details: {
      columns: EXPORTS.columns,
      title: ({ clientName }) => `Export of ${clientName}`,
      listRecords: ({ clientId }) => [['Records of this app', { app: clientId }]],
    },
    listFacts: async (request, row) =>
      listDetails(EXPORTS.columns, row, request).map(([name, value]) => [name, html`${value}`]),
    show: () => '/exports?done=ended',
  },
  command: { noun: 'export', option: 'id', find: findExport },
}

export const EXPORT_AREA = defineArea(EXPORT)
