import { Type } from 'typebox'
import { Time } from '../../../endpoint/index.ts'
import { type Html, html, renderBadge, renderDateTime } from '../../../web/ui/index.ts'
import { findStoredRow, isConfigured } from '../../oauth/clients/client.ts'
import { PLAIN_FIELDS, TEXT_FIELDS } from '../../oauth/clients/fields.ts'
import { listScopeNotes } from '../../oauth/grants/scope-notes.ts'
import { summarizeScopes } from '../../words/scopes.ts'
import { findLastUse } from '../access/last-use.ts'
import type { Admin } from '../base/action.ts'
import { type Attention, noteRows } from '../subject/attention.ts'
import type { SubjectColumn, SubjectColumns } from '../subject/columns.ts'
import { defineList } from '../subject/list.ts'
import type { AdminRequest } from '../subject/page/route.ts'
import { renderLink } from '../subject/page/shell.ts'
import { Keys, Texts } from './client-metadata.ts'
import { CLIENT_FILTERS, type ClientRow, countClients, describeClient, listClients } from './clients.ts'

export const SECTION = 'apps'

export function buildAppPath(id: string): string {
  return `/apps/${encodeURIComponent(id)}`
}

/** A registered app. */
export interface ListedClient extends ClientRow {
  /** Its metadata: RFC 7591, and of this server. */
  readonly metadata: ReturnType<typeof describeClient>
  readonly lastUse: number | undefined
}

/** With its last use. */
export async function findListed(admin: Pick<Admin, 'store'>, client: ClientRow): Promise<ListedClient> {
  const lastUse = await findLastUse(admin, client.client_id)
  return { ...client, metadata: describeClient(client), lastUse }
}

const SHOWN = {
  text: Type.Optional(Type.String()),
  list: Texts,
  flag: Type.Boolean(),
  other: Type.Unknown(),
} as const

const METADATA = {
  client_id: Type.String(),
  client_id_issued_at: Type.Integer({ description: 'Seconds since 1970.' }),
  ...Object.fromEntries(PLAIN_FIELDS.map(({ member, kind }) => [member, SHOWN[kind]])),
  client_name: Type.String(),
  scope: Type.String(),
  token_endpoint_auth_method: Type.String(),
  grant_types: Type.Array(Type.String(), {
    description: 'Derived from the scopes and the redirect URIs.',
  }),
  response_types: Type.Array(Type.String()),
  jwks: Type.Optional(Keys),
  jwks_uri: Type.Optional(Type.String()),
  approved: Type.Boolean({ description: 'False for a client that registered itself.' }),
  disabled: Type.Boolean(),
}

const KINDS: Readonly<Record<ClientRow['auth_method'], string>> = {
  none: 'Public',
  client_secret: 'With a secret',
  private_key_jwt: 'With keys',
}

const AUTHENTICATIONS = { none: 'public', client_secret: 'secret', private_key_jwt: 'keys' } as const

export const CLIENT_COLUMNS: SubjectColumns<ListedClient> = {
  app: {
    page: ['App', client => renderLink(buildAppPath(client.client_id), client.name)],
    table: ['ID', client => client.client_id],
  },
  id: {
    page: ['Client id', client => html`<code class="url">${client.client_id}</code>`],
    detail: ['Client id', client => html`<code>${client.client_id}</code>`],
    table: ['NAME', client => client.name],
  },
  authentication: { table: ['AUTHENTICATION', client => AUTHENTICATIONS[client.auth_method]] },
  consent: { table: ['CONSENT', client => (client.first_party ? 'not asked' : 'asked')] },
  state: {
    page: ['State', renderState],
    detail: ['State', renderOwnState],
    table: ['STATE', describeClientState],
  },
  kind: {
    page: ['Kind', client => KINDS[client.auth_method]],
    detail: [
      'Kind',
      client =>
        html`${KINDS[client.auth_method]}${client.first_party && ', first-party: no consent page'}${!client.pkce_required && ', PKCE is optional'}`,
    ],
  },
  permissions: { detail: ['Permissions', renderPermissions] },
  ...Object.fromEntries(
    Object.entries(METADATA).map(([name, schema]) => [
      name,
      { schema, of: ({ metadata }: ListedClient) => metadata[name], ...describeField(name) },
    ]),
  ),
  keys: {
    detail: [
      'Key set',
      ({ jwks, jwks_url }) =>
        jwks_url === null ? (jwks === null ? undefined : 'Registered here') : renderLines([jwks_url]),
    ],
  },
  launch_url: { table: ['LAUNCH URL', client => client.launch_url ?? ''] },
  created_at: { detail: ['Registered', client => renderDateTime(client.created_at)] },
  last_used_at: {
    schema: Type.Optional(Time),
    of: 'lastUse',
    page: ['Last used', renderLastUse],
    detail: 'Last used',
  },
}

/** Of a property with one text or several. The head of the page has the name and the description. */
function describeField(name: string): Pick<SubjectColumn<ListedClient>, 'detail'> {
  const { label, property } = TEXT_FIELDS.find(({ member }) => member === name) ?? {}
  if (label === undefined || property === 'name' || property === 'description') return {}
  return { detail: [label, ({ metadata }) => renderLines([metadata[name] ?? []].flat())] }
}

function renderLines(texts: readonly unknown[]): Html | undefined {
  return texts.length === 0
    ? undefined
    : html`${texts.map(text => html`<span class="url url--block">${String(text)}</span>`)}`
}

function renderOwnState(client: ListedClient, { context }: AdminRequest): Html {
  const isFixed = isConfigured(context.settings, { id: client.client_id })
  return html`${renderState(client)}${isFixed && html`<span class="sub">The settings of the server describe this app.</span>`}`
}

function renderPermissions({ scope }: ListedClient, { context }: AdminRequest): Html {
  const notes = listScopeNotes(scope, context.settings.fhir.searchPermission)
  return html`${summarizeScopes(scope, 'its users')}<details class="more"><summary>Exact scopes</summary><p class="url url--block">${scope}</p></details>${notes.map(note => html`<span class="sub">${note}${!note.endsWith('?') && '.'}</span>`)}`
}

function renderState({ disabled, approved }: ClientRow): Html {
  if (disabled) return renderBadge('Disabled', 'bad')
  return approved ? renderBadge('Active', 'ok') : renderBadge('Unverified', 'warn')
}

export function describeClientState({ disabled, approved, for_loopback }: ClientRow): string {
  if (disabled) return 'disabled'
  if (for_loopback) return 'loopback only'
  return approved ? 'approved' : 'unverified'
}

function renderLastUse({ lastUse }: ListedClient): Html | string {
  return lastUse === undefined ? 'Never' : renderDateTime(lastUse)
}

/** After an action. */
export const DONE: Readonly<Record<string, string>> = {
  registered: 'The app is registered.',
  saved: 'The change is saved.',
  removed: 'The app is removed.',
}

export const CLIENTS = defineList<ListedClient, typeof CLIENT_FILTERS>({
  columns: CLIENT_COLUMNS,
  filters: CLIENT_FILTERS,
  states: {
    all: {
      text: 'All',
      filter: {},
      none: {
        title: 'No apps yet',
        text: 'Apps appear here when an administrator or a developer registers them, or when they register themselves.',
      },
    },
    unverified: {
      text: 'Unverified',
      filter: { approved: false, disabled: false },
      none: {
        title: 'No unverified apps',
        text: 'An app that registers itself appears here until an administrator approves it.',
      },
    },
    disabled: {
      text: 'Disabled',
      filter: { disabled: true },
      none: {
        title: 'No disabled apps',
        text: 'An app that an administrator disables appears here, and can be enabled again.',
      },
    },
  },
  async read(admin, wanted) {
    const { items, next } = await listClients(admin, wanted)
    return { items: await Promise.all(items.map(client => findListed(admin, client))), next }
  },
  count: countClients,
  api: { path: '/clients', title: 'Clients, by id' },
  page: {
    section: SECTION,
    title: 'Apps',
    lead: 'All registered apps, by client id.',
    caption: 'Apps, by client id',
    search: 'Find an app by name or client id',
    notFound: { title: 'No app found', text: 'No name or client id contains this text.' },
    done: DONE,
    actions: ({ mayChange }) => (mayChange ? renderLink('/apps/new', 'Register an app', 'btn') : undefined),
  },
  command: {
    name: 'client list',
    nouns: 'apps',
    more: 'To see all properties of an app: client show --id <id>',
  },
})

export const APP_ATTENTION: readonly Attention[] = [
  noteRows({
    code: 'apps-unverified',
    action: 'Review apps',
    list: CLIENTS,
    wanted: { state: 'unverified' },
    getName: client => client.name,
    describe: count => `${count === 1 ? '1 app waits' : `${count} apps wait`} for approval.`,
  }),
  {
    code: 'apps-unused',
    path: '/apps',
    action: 'Review apps',
    // The demo app needs no consent. Whoever does not use it should not have it.
    async find({ admin: { store, rules }, context: { settings } }) {
      const { clientId } = settings.app
      const row = rules.onLoopback ? undefined : await findStoredRow(store.db, clientId)
      if (!row || row.disabled) return undefined
      const grants = store.db.selectFrom('grant').select('id').where('client_id', '=', clientId).limit(1)
      if (await grants.executeTakeFirst()) return undefined
      const text = `${row.name} comes with this server, needs no consent, and nobody uses it: disable it unless you need it.`
      return { text, path: buildAppPath(clientId) }
    },
  },
]
