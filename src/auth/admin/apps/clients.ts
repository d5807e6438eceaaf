import { isDeepStrictEqual } from 'node:util'
import { type Selectable, sql, type Transaction } from 'kysely'
import { Type } from 'typebox'
import { isFailure } from '../../../core/index.ts'
import { containsText, isPresent, type Schema, sha256 } from '../../../store/index.ts'
import { makeFault } from '../../base/fault.ts'
import { type Client, findStoredRow, toClient } from '../../oauth/clients/client.ts'
import { CLIENT_FIELDS, describeApp, PLAIN_FIELDS } from '../../oauth/clients/fields.ts'
import {
  type ClientChanges,
  deleteClient,
  insertClient,
  setClientApproved,
  updateClient,
} from '../../oauth/clients/store-client.ts'
import {
  CLIENT_DEFAULTS,
  type ClientFault,
  type ClientProperties,
  describeClientFaults,
  nameValue,
  type Registrar,
} from '../../oauth/clients/validate.ts'
import { revokeClientTokens } from '../../oauth/revoked-tokens.ts'
import { ADMIN_SCOPE, isProgramScope } from '../../words/program-scopes.ts'
import {
  type Admin,
  AdminFailure,
  type AdminOperation,
  compare,
  cutPage,
  failAdmin,
  type ListPage,
  type PageRequest,
  type Properties,
  perform,
} from '../base/action.ts'
import { defineFlag, type Filters, listConditions, type Wanted } from '../subject/filters.ts'
import type { RowOperations } from '../subject/subject.ts'

export type ClientRow = Selectable<Schema['client']>

/** A client, and its secret if it got a new one. Only its hash is stored, so show the secret now. */
export interface ChangedClient {
  readonly client: ClientRow
  readonly secret: string | undefined
}

/** What pages offer depends on it. The settings describe the demo app, so that it does not change on a page. */
export interface ShownClient extends ClientRow {
  readonly isConfigured: boolean
}

/** The operations on clients, by verb. The audit trail and the command line name them `client approve`. */
export const CLIENT_OPERATIONS = {
  add: { signIn: 'asks' },
  approve: {
    signIn: 'asks',
    api: { title: 'Approve a client that registered itself' },
    page: {
      title: name => `Approve ${name}?`,
      text: 'The app registered itself. After the approval, pages no longer mark it as unverified, and show its logo.',
      button: 'Approve app',
      isDangerous: false,
    },
    link: { text: 'Approve', isMain: true, isOffered: client => !client.approved },
    command: {
      done: 'Approved',
      help: `
An app that registered itself (POST /oauth2/register without the initial access token) is unverified: pages mark it as
unverified, and the auth server redirects errors to it only after the user has made a decision. Check the URLs and scopes of
the app first: client show --id <id>`,
    },
    perform: approveClient,
  },
  set: {
    signIn: 'asks',
    path: 'edit',
    link: { text: 'Change', isOffered: client => !client.isConfigured },
  },
  'rotate-secret': {
    signIn: 'asks',
    api: { title: 'Replace the secret' },
    page: {
      title: name => `Rotate the secret of ${name}?`,
      text: 'The server generates a new secret and shows it once. The old secret stops working at once.',
      button: 'Rotate secret',
    },
    link: { text: 'Rotate secret', isOffered: client => client.auth_method === 'client_secret' },
    perform: rotateClientSecret,
  },
  disable: {
    signIn: 'asks about administrators',
    api: { title: 'Disable a client and end its access' },
    page: {
      title: name => `Disable ${name}?`,
      text: 'The app is treated like an unknown one. Its access tokens are refused within 5 seconds, for all users.',
      button: 'Disable app',
      endsAccess: true,
    },
    link: { text: 'Disable', isOffered: client => !client.disabled },
    command: {
      done: 'Disabled',
      help: `
The app is treated like an unknown one. FHIR servers refuse its access tokens within 5 seconds. After client enable, users have
to consent again.`,
    },
    perform: (admin, id) => setClientDisabled(admin, id, true),
  },
  enable: {
    signIn: 'asks',
    api: { title: 'Enable a client' },
    page: {
      title: name => `Enable ${name}?`,
      text: 'The app can be launched again. It does not get its earlier access back.',
      button: 'Enable app',
      isDangerous: false,
    },
    link: { text: 'Enable', isOffered: client => client.disabled },
    command: { done: 'Enabled' },
    perform: (admin, id) => setClientDisabled(admin, id, false),
  },
  remove: {
    signIn: 'asks about administrators',
    api: { method: 'DELETE', path: '', title: 'Remove a client and its access' },
    page: {
      title: name => `Remove ${name}?`,
      text: 'The app loses its registration and all access. Its access tokens are refused within 5 seconds, for all users.',
      button: 'Remove app',
      endsAccess: true,
    },
    link: { text: 'Remove', isOffered: client => !client.isConfigured },
    command: { done: 'Removed', help: "\nFHIR servers refuse the app's access tokens within 5 seconds." },
    perform: removeClient,
  },
} as const satisfies RowOperations<ShownClient, string, ChangedClient>

type ClientVerb = keyof typeof CLIENT_OPERATIONS

export function nameOperation(verb: ClientVerb): AdminOperation {
  return { name: `client ${verb}`, signIn: CLIENT_OPERATIONS[verb].signIn }
}

/** A property of a client that cannot be stored. */
export function failProperty(fault: ClientFault): AdminFailure {
  if (fault.reason === 'client-id-in-use') return new AdminFailure('client-id-taken', {}, fault)
  const faults = describeClientFaults(fault, one =>
    makeFault('member-invalid', { name: CLIENT_FIELDS[one.property].member, fault: nameValue(one) }),
  )
  return new AdminFailure('client-property-invalid', { faults }, fault)
}

/** Registers a client. */
export async function addClient(
  admin: Admin,
  id: string,
  app: ClientProperties,
  secret?: string,
): Promise<ChangedClient | AdminFailure> {
  return perform(admin, async trx => {
    const added = await insertClient(trx, id, {
      app,
      secret,
      now: admin.clock(),
      ...describeRegistrar(admin),
    })
    if (isFailure(added)) return failProperty(added)
    const client = await getRow(trx, id)
    return {
      operation: nameOperation('add'),
      target: { type: 'client', id },
      result: { client, secret: added.secret },
      after: toProperties(client),
    }
  })
}

/** Changes a client. A new scope revokes the access that users gave it. */
export async function changeClient(
  admin: Admin,
  id: string,
  changes: ClientChanges,
  verb: ClientVerb = 'set',
): Promise<ChangedClient | AdminFailure> {
  return performOnClient(admin, id, verb, async trx => {
    const changed = await updateClient(trx, id, { changes, ...describeRegistrar(admin) })
    if (isFailure(changed)) return failProperty(changed)
    return { secret: changed?.secret }
  })
}

/**
 * Registers a client, or gives it these properties and this secret if one has the id. Without a difference nothing changes,
 * and nothing is recorded.
 */
export async function ensureClient(
  admin: Admin,
  id: string,
  app: Pick<ClientProperties, 'authMethod' | 'scope'> & Partial<ClientProperties>,
  secret: string,
): Promise<'added' | 'changed' | 'unchanged' | AdminFailure> {
  const row = await findStoredRow(admin.store.db, id)
  if (!row) {
    const added = await addClient(admin, id, { ...CLIENT_DEFAULTS, ...app }, secret)
    return isFailure(added) ? added : 'added'
  }
  const client = toClient(row)
  const stored = new Map<string, unknown>(Object.entries(client))
  const differing = Object.entries(app).filter(([name, value]) => !isDeepStrictEqual(stored.get(name), value))
  const hasOtherSecret = app.authMethod === 'client_secret' && client.secretHash !== sha256(secret)
  if (differing.length === 0 && !hasOtherSecret) return 'unchanged'
  const changes: ClientChanges = {
    ...Object.fromEntries(differing),
    ...(hasOtherSecret && { newSecret: secret }),
  }
  const changed = await changeClient(admin, id, changes)
  return isFailure(changed) ? changed : 'changed'
}

/** Approves a client that registered itself (CLIENT-3). */
export function approveClient(admin: Admin, id: string): Promise<ChangedClient | AdminFailure> {
  return performOnClient(admin, id, 'approve', async trx => {
    await setClientApproved(trx, id, describeRegistrar(admin))
    return {}
  })
}

/** Replaces the secret. The client cannot authenticate with the old one from now on. */
export async function rotateClientSecret(admin: Admin, id: string): Promise<ChangedClient | AdminFailure> {
  const client = await findClientRow(admin, id)
  if (isFailure(client)) return client
  return client.auth_method === 'client_secret'
    ? changeClient(admin, id, { newSecret: true }, 'rotate-secret')
    : failAdmin('client-without-secret', { id })
}

/** A disabled client is treated like an unknown one, and its access ends. It does not get the access back. */
export function setClientDisabled(
  admin: Admin,
  id: string,
  disabled: boolean,
): Promise<ChangedClient | AdminFailure> {
  return performOnClient(admin, id, disabled ? 'disable' : 'enable', async (trx, client) => {
    const now = admin.clock()
    const enabled = client.disabled && !disabled && { enabled_at: now }
    if (disabled) await revokeClientTokens(trx, client, now)
    await trx
      .updateTable('client')
      .set({ disabled, ...enabled })
      .where('client_id', '=', id)
      .execute()
    return {}
  })
}

/** Deletes a client with its grants. */
export function removeClient(admin: Admin, id: string): Promise<ChangedClient | AdminFailure> {
  return perform(admin, async trx => {
    const client = await lockRow(trx, id)
    if (!client) return failUnknown(id)
    await deleteClient(trx, id, admin.clock())
    return {
      operation: nameOperation('remove'),
      target: { type: 'client', id },
      isAboutAdministrator: client.scope === ADMIN_SCOPE,
      result: { client, secret: undefined },
      before: toProperties(client),
    }
  })
}

/** Performs an action on a client, and records the properties that changed. */
function performOnClient(
  admin: Admin,
  id: string,
  verb: ClientVerb,
  change: (
    trx: Transaction<Schema>,
    client: ClientRow,
  ) => Promise<{ readonly secret?: string | undefined } | AdminFailure>,
): Promise<ChangedClient | AdminFailure> {
  return perform(admin, async trx => {
    const before = await lockRow(trx, id)
    if (!before) return failUnknown(id)
    const changed = await change(trx, before)
    if (isFailure(changed)) return changed
    const client = await getRow(trx, id)
    const { before: old, after } = compare(toProperties(before), toProperties(client))
    return {
      operation: nameOperation(verb),
      target: { type: 'client', id },
      isAboutAdministrator: before.scope === ADMIN_SCOPE,
      result: { client, secret: changed.secret },
      before: old,
      after: { ...after, ...(changed.secret !== undefined && { secret: 'replaced' }) },
    }
  })
}

function describeRegistrar({ actor, isForLoopback = false }: Admin): Registrar {
  return {
    isByAdministrator: actor.kind !== 'developer',
    isForLoopback,
    accountId: actor.kind === 'clinician' || actor.kind === 'developer' ? actor.id : undefined,
  }
}

/** Finds a client and locks it, so that simultaneous changes follow each other. */
function lockRow(trx: Transaction<Schema>, id: string): Promise<ClientRow | undefined> {
  return trx
    .updateTable('client')
    .set(({ ref }) => ({ name: ref('name') }))
    .where('client_id', '=', id)
    .where(isPresent)
    .returningAll()
    .executeTakeFirst()
}

async function getRow(trx: Transaction<Schema>, id: string): Promise<ClientRow> {
  return trx.selectFrom('client').selectAll().where('client_id', '=', id).executeTakeFirstOrThrow()
}

function failUnknown(id: string): AdminFailure {
  return failAdmin('client-unknown', { id })
}

/** The properties of a client for the audit trail: of its keys the ids, and of its secret nothing. */
function toProperties(client: ClientRow): Properties {
  const { jwks, ...metadata } = describeClient(client)
  return { ...metadata, ...(client.jwks !== null && { keys: listKeyIds(client.jwks) }) }
}

function listKeyIds(jwks: string): readonly unknown[] {
  const { keys = [] }: { keys?: readonly { readonly kid?: unknown }[] } = JSON.parse(jwks)
  return keys.map(({ kid }) => kid)
}

/** Describes a client in the names of RFC 7591 and of this server, without its secret. */
export function describeClient(row: ClientRow): Properties {
  const client = toClient(row)
  const grantTypes = listGrantTypes(client)
  const flags = PLAIN_FIELDS.filter(({ kind }) => kind === 'flag')
  return {
    client_id: client.id,
    client_id_issued_at: Math.floor(client.createdAt / 1000),
    ...describeApp(client),
    token_endpoint_auth_method: AUTH_METHODS[client.authMethod],
    grant_types: grantTypes,
    response_types: grantTypes.includes('authorization_code') ? ['code'] : [],
    ...Object.fromEntries(flags.map(({ member, property }) => [member, Boolean(client[property])])),
    approved: Boolean(client.approved),
    disabled: Boolean(row.disabled),
  }
}

const AUTH_METHODS = {
  none: 'none',
  client_secret: 'client_secret_basic',
  private_key_jwt: 'private_key_jwt',
} as const satisfies Record<ClientRow['auth_method'], string>

function listGrantTypes({ scope, redirectUris }: Client): readonly string[] {
  const scopes = scope.split(' ')
  const isRefreshed = scopes.includes('online_access') || scopes.includes('offline_access')
  const isForSystems = scopes.some(part => /^(?:system\/|__)/.test(part) || isProgramScope(part))
  return [
    ...(redirectUris.length > 0 ? ['authorization_code', ...(isRefreshed ? ['refresh_token'] : [])] : []),
    ...(isForSystems ? ['client_credentials'] : []),
  ]
}

export async function findClientRow(
  { store }: Pick<Admin, 'store'>,
  id: string,
): Promise<ClientRow | AdminFailure> {
  return (await findStoredRow(store.db, id)) ?? failUnknown(id)
}

/** The filters of lists of clients, each with its condition for the table `client`. */
export const CLIENT_FILTERS = {
  text: {
    schema: Type.String({ maxLength: 200 }),
    about: 'Part of the id or the name.',
    name: 'search',
    where: (text: string) => containsText(['client_id', 'name'], text),
  },
  approved: defineFlag('False for apps that registered themselves.', sql`approved`),
  disabled: defineFlag('Whether the app is disabled.', sql`disabled`),
} as const satisfies Filters

type ClientFilter = Wanted<typeof CLIENT_FILTERS>

/** Lists clients by id. */
export async function listClients(
  context: Pick<Admin, 'store' | 'clock' | 'rules'>,
  { after, limit, ...wanted }: ClientFilter & PageRequest,
): Promise<ListPage<ClientRow>> {
  const rows = await selectWanted(context, wanted)
    .selectAll()
    .$if(after !== undefined, query => query.where('client_id', '>', after ?? ''))
    .orderBy('client_id')
    .limit(limit + 1)
    .execute()
  return cutPage(rows, { limit }, row => row.client_id)
}

/** How many clients meet the filter. */
export async function countClients(
  context: Pick<Admin, 'store' | 'clock' | 'rules'>,
  wanted: ClientFilter,
): Promise<number> {
  const { count } = await selectWanted(context, wanted)
    .select(({ fn }) => fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

function selectWanted(context: Pick<Admin, 'store' | 'clock' | 'rules'>, wanted: ClientFilter) {
  return context.store.db
    .selectFrom('client')
    .where(isPresent)
    .where(({ and }) => and(listConditions(CLIENT_FILTERS, wanted, context)))
}
