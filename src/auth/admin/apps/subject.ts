import { Type } from 'typebox'
import { isFailure } from '../../../core/index.ts'
import { Members } from '../../../endpoint/index.ts'
import { type Html, html } from '../../../web/ui/index.ts'
import { isConfigured } from '../../oauth/clients/client.ts'
import { listScopeNotes } from '../../oauth/grants/scope-notes.ts'
import { isProgramScope } from '../../words/program-scopes.ts'
import { REVOKED } from '../access/access-list.ts'
import { describeEnding, renderGrants } from '../access/given.ts'
import { type AdminFailure, failAdmin } from '../base/action.ts'
import { describeColumns, toJson } from '../subject/columns.ts'
import type { AdminRequest } from '../subject/page/route.ts'
import { renderSecret } from '../subject/page/shell.ts'
import type { Subject } from '../subject/subject.ts'
import {
  buildAppPath,
  CLIENT_COLUMNS,
  CLIENTS,
  DONE,
  findListed,
  type ListedClient,
  SECTION,
} from './client-list.ts'
import { changeByMetadata, Metadata, NewClient, registerByMetadata } from './client-metadata.ts'
import {
  type ChangedClient,
  CLIENT_OPERATIONS,
  describeClient,
  findClientRow,
  type ShownClient,
} from './clients.ts'

const Client = describeColumns(CLIENT_COLUMNS)
const ClientWithSecret = Members({
  ...Client.properties,
  client_secret: Type.Optional(Type.String({ description: 'A new secret. It is not shown again.' })),
  warnings: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Scopes that are never granted as registered, with the reason. Absent if there are none.',
    }),
  ),
})

/** Registered apps. */
export const APPS: Subject<ListedClient & ShownClient, string, ChangedClient, ListedClient> = {
  name: 'client',
  lists: [CLIENTS],
  operations: {
    ...CLIENT_OPERATIONS,
    add: {
      ...CLIENT_OPERATIONS.add,
      isOnAll: true,
      api: {
        title: 'Register a client',
        description: 'Without `token_endpoint_auth_method` the client gets a secret. It is approved.',
        path: '',
        input: NewClient,
        status: 201,
      },
      perform: (admin, _, metadata) => registerByMetadata(admin, metadata),
    },
    set: {
      ...CLIENT_OPERATIONS.set,
      api: {
        title: 'Change a client',
        description:
          'Absent members keep their values. A new scope revokes the access that users gave the client.',
        method: 'PATCH',
        path: '',
        input: Metadata,
      },
      perform: changeByMetadata,
    },
    remove: { ...CLIENT_OPERATIONS.remove, api: { ...CLIENT_OPERATIONS.remove.api, result: Client } },
  },
  toTarget: id => id,
  async find({ admin, context }, id) {
    const row = await findClientRow(admin, id)
    if (isFailure(row)) return row
    const listed = await findListed(admin, row)
    return { ...listed, isConfigured: isConfigured(context.settings, { id }) }
  },
  api: {
    path: '/clients/:client_id',
    one: {
      title: 'One client, with its last use',
      result: Client,
      describe: client => toJson(CLIENT_COLUMNS, client),
    },
    result: ClientWithSecret,
    // A registration or a change has the same notes as on pages and on the command line.
    describe({ client, secret }, { context }, verb) {
      const isStated = verb === 'add' || verb === 'set'
      const warnings = isStated ? listScopeNotes(client.scope, context.settings.fhir.searchPermission) : []
      return {
        ...describeClient(client),
        ...(secret !== undefined && { client_secret: secret }),
        ...(warnings.length > 0 && { warnings }),
      }
    },
  },
  pages: {
    section: SECTION,
    path: '/apps/:id',
    unknown: failAdmin('client-not-shown'),
    details: {
      columns: CLIENT_COLUMNS,
      title: ({ name }) => name,
      lead: ({ description }) => description ?? undefined,
      done: { ...DONE, revoked: REVOKED },
      listRecords: ({ client_id: id }) => [
        ['Records of this app', { app: id }],
        ['Changes to this app', { target: `app/${id}` }],
      ],
      more: async (request, { client_id: id, scope }) => ({
        below:
          !isProgramScope(scope) &&
          html`<h2 class="section__title subhead">Users who gave access</h2>
${await renderGrants(request, { clientIds: [id] }, buildAppPath(id))}`,
      }),
    },
    getName: client => client.name,
    listFacts: async (request, { client_id: id }, { endsAccess }) => [
      ['Client id', html`<code>${id}</code>`],
      ...(endsAccess ? [await describeEnding(request, { clientIds: [id] })] : []),
    ],
    show: (request, changed, { verb }) =>
      verb === 'remove' ? '/apps?done=removed' : showChanged(request, changed, 'saved'),
  },
  command: { noun: 'app', option: 'id' },
}

/** Shows a new secret; otherwise the page of the app. */
export function showChanged(
  request: AdminRequest,
  changed: ChangedClient | AdminFailure,
  done: string,
): Html | string | AdminFailure {
  if (isFailure(changed)) return changed
  const { client, secret } = changed
  const path = buildAppPath(client.client_id)
  if (secret === undefined) return `${path}?done=${done}`
  return renderSecret(request, {
    section: SECTION,
    title: `Secret of ${client.name}`,
    label: `Client secret of ${client.client_id}`,
    value: secret,
    back: path,
  })
}
