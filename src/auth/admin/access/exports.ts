import { sql } from 'kysely'
import { Type } from 'typebox'
import { isFailure } from '../../../core/index.ts'
import { CLOSED, Time } from '../../../endpoint/index.ts'
import { html, renderBadge, renderDateTime } from '../../../web/ui/index.ts'
import {
  type Admin,
  type AdminFailure,
  failAdmin,
  type ListPage,
  type PageRequest,
  perform,
} from '../base/action.ts'
import { findWantedApps } from '../base/find-named.ts'
import { renderDangerLink, renderLink } from '../page/shell.ts'
import { defineList } from '../subject/list.ts'
import type { Subject } from '../subject/operations.ts'

/** A bulk export that has neither ended nor expired. What it selects is encrypted: only the FHIR server reads it. */
interface ExportDescription {
  readonly id: string
  readonly issuer: string
  readonly clientId: string
  readonly level: string
  readonly types: string
  readonly startedAt: number
  readonly expiresAt: number
  readonly files: number | undefined
}

interface ExportFilter extends PageRequest {
  readonly clientIds?: readonly string[] | undefined
  readonly id?: string
}

async function listExports(
  { store, clock }: Pick<Admin, 'store' | 'clock'>,
  { after, limit, clientIds, id }: ExportFilter,
): Promise<ListPage<ExportDescription>> {
  const [, startedAt, last] = /^(\d{1,15})\.(.{1,100})$/.exec(after ?? '') ?? []
  const rows = await store.db
    .selectFrom('export_job')
    .select(['id', 'issuer', 'client_id', 'level', 'types', 'started_at', 'expires_at', 'files'])
    .where('expires_at', '>', clock())
    .$if(clientIds !== undefined, query => query.where('client_id', 'in', clientIds ?? []))
    .$if(id !== undefined, query => query.where('id', '=', id ?? ''))
    .$if(startedAt !== undefined, query =>
      query.where(sql<boolean>`(started_at, id) < (${Number(startedAt)}, ${last})`),
    )
    .orderBy('started_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute()
  const shown = rows.slice(0, limit)
  const end = rows.length > limit ? shown.at(-1) : undefined
  return {
    items: shown.map(row => ({
      id: row.id,
      issuer: row.issuer,
      clientId: row.client_id,
      level: row.level,
      types: row.types,
      startedAt: row.started_at,
      expiresAt: row.expires_at,
      files: row.files ?? undefined,
    })),
    next: end && `${end.started_at}.${end.id}`,
  }
}

const LEVELS: Readonly<Record<string, string>> = {
  system: 'Everything',
  patient: 'All patients',
  group: 'A group',
}

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
export const EXPORTS = defineList<ExportDescription, typeof FILTERS>({
  columns: {
    id: { schema: Type.String(), about: 'Not a secret: it gives no access.', of: 'id', table: 'ID' },
    client_id: {
      schema: Type.String(),
      of: 'clientId',
      page: [
        'App',
        ({ clientId, issuer }) =>
          issuer === '' ? renderLink(`/apps/${encodeURIComponent(clientId)}`, clientId) : clientId,
      ],
      table: 'APP',
    },
    level: {
      schema: Type.String(),
      about: '`system`, `patient` or `group`.',
      of: 'level',
      page: ['Of', ({ level }) => LEVELS[level] ?? level],
      table: 'OF',
    },
    types: {
      schema: Type.String(),
      about: 'The exported resource types, separated by spaces.',
      of: 'types',
      page: ['Types', ({ types }) => renderTypes(types)],
    },
    files: {
      schema: Type.Optional(Type.Integer()),
      about: 'The number of files. Missing as long as it is not known.',
      of: 'files',
      page: [
        'Files',
        ({ files }) => (files === undefined ? renderBadge('Being prepared') : files.toLocaleString('en')),
      ],
      table: 'FILES',
    },
    started_at: { schema: Time, of: 'startedAt', page: 'Started', table: 'STARTED' },
    expires_at: { schema: Time, of: 'expiresAt', page: 'Expires', table: 'EXPIRES' },
    end: { page: ['', ({ id }) => renderDangerLink(`/exports/${id}/end`, 'End')] },
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

function renderTypes(types: string) {
  const names = types.split(' ')
  return html`<details class="more"><summary>${names.length === 1 ? '1 type' : `${names.length} types`}</summary><p class="small">${names.join(', ')}</p></details>`
}

export function endExport(admin: Admin, id: string): Promise<{ readonly id: string } | AdminFailure> {
  return perform(admin, async trx => {
    const row = await trx
      .deleteFrom('export_job')
      .where('id', '=', id)
      .returning(['client_id', 'level', 'types'])
      .executeTakeFirst()
    if (!row) return failAdmin('export-unknown', { id })
    const operation = { name: 'bulk-export end', signIn: 'never asks' } as const
    return { operation, target: id, result: { id }, before: row }
  })
}

/** A bulk export, which an administrator can end. */
export const EXPORT: Subject<ExportDescription, string, { readonly id: string }> = {
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
    async find({ admin, params: { id = '' } }) {
      const [found] = (await listExports(admin, { id, after: undefined, limit: 1 })).items
      return found ?? failAdmin('export-unknown', { id })
    },
    getBack: () => '/exports',
    listFacts: async (_, { clientId, level, startedAt, expiresAt, types, files }) => [
      ['App', html`<code>${clientId}</code>`],
      ['Of', LEVELS[level] ?? level],
      ['Types', types.split(' ').join(', ')],
      ['Files', files?.toLocaleString('en') ?? 'Being prepared'],
      ['Started', renderDateTime(startedAt)],
      ['Expires', renderDateTime(expiresAt)],
    ],
    show: () => '/exports?done=ended',
  },
  command: { noun: 'export', option: 'id' },
}
