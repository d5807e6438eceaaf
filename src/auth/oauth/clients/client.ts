import type { Kysely, Selectable } from 'kysely'
import type { Settings } from '../../../config/index.ts'
import { containsText, isPresent, prepareQuery, type Schema } from '../../../store/index.ts'
import { computeClientMark, isUsableClient } from '../../users/validity/rule.ts'
import type { AuthContext } from '../context.ts'
import { mayDescribe } from './client-host.ts'

/** A registered app. */
export interface Client {
  readonly id: string
  readonly name: string
  readonly description: string | undefined
  readonly logoUrl: string | undefined
  /** Of its maker, as it was registered. */
  readonly websiteUrl: string | undefined
  readonly policyUrl: string | undefined
  readonly termsUrl: string | undefined
  readonly contacts: readonly string[]
  readonly authMethod: Schema['client']['auth_method']
  readonly secretHash: string | undefined
  /** The client's JWK Set, or its URL. */
  readonly jwks: string | undefined
  readonly jwksUrl: string | undefined
  readonly redirectUris: readonly string[]
  readonly postLogoutRedirectUris: readonly string[]
  readonly launchUrl: string | undefined
  /** The scopes that it may be granted. */
  readonly scope: string
  /** A first-party client needs no consent page. */
  readonly firstParty: boolean
  /** Whether an administrator approved it. A client that registered itself is unverified until then. */
  readonly approved: boolean
  /** False for a SMART 1 app, which may omit PKCE. */
  readonly pkceRequired: boolean
  /** Whether its authorization responses have `iss` (RFC 9207). */
  readonly issParameter: boolean
  readonly createdAt: number
  /** When a temporary client ends. It may use every redirect URI of its origin. */
  readonly expiresAt: number | undefined
  /** When an administrator last enabled it again. */
  readonly enabledAt: number | undefined
  /** Differs after every change that ends its grants. */
  readonly mark: string
  /** Whether it was made for loopback: so is what it adds. */
  readonly isForLoopback: boolean
  /** Whether nobody registered it: a document describes it, whose URL is its id. */
  readonly isDescribed: boolean
}

type ClientContext = Pick<AuthContext, 'rules' | 'clock'>

/** Finds a client that may be used. */
export async function findClient(
  db: Kysely<Schema>,
  { rules, clock }: ClientContext,
  id: string,
): Promise<Client | undefined> {
  const [row] = (await selectClient(db, { id })).rows
  if (!row || !isUsableClient(row, rules, clock())) return undefined
  const client = toClient(row)
  return client.isDescribed && !mayDescribe(id, rules.agents, rules) ? undefined : client
}

const selectClient = prepareQuery((db, { id }: { id: string }) =>
  db.selectFrom('client').selectAll().where('client_id', '=', id),
)

/** Whether the settings of the server describe this app, at every start. */
export function isConfigured({ app }: Pick<Settings, 'app'>, { id }: Pick<Client, 'id'>): boolean {
  return id === app.clientId
}

/** Finds a client, whether it may be used or not. */
export async function findRegisteredClient(db: Kysely<Schema>, id: string): Promise<Client | undefined> {
  const row = await findStoredRow(db, id)
  return row && toClient(row)
}

/** The row of a client that was not removed. */
export function findStoredRow(db: Kysely<Schema>, id: string) {
  return db.selectFrom('client').selectAll().where('client_id', '=', id).where(isPresent).executeTakeFirst()
}

/** Clients with a launch URL, by name, unverified ones last: those with these ids, or whose names contain a text. */
export async function findLaunchableClients(
  { store: { db }, rules, clock }: Pick<AuthContext, 'store' | 'rules' | 'clock'>,
  { ids, text, limit }: { readonly ids?: readonly string[]; readonly text?: string; readonly limit: number },
): Promise<readonly Client[]> {
  const rows = await db
    .selectFrom('client')
    .selectAll()
    .where('launch_url', 'is not', null)
    .where('disabled', '=', false)
    .$if(ids !== undefined, query => query.where('client_id', 'in', ids ?? []))
    .$if(text !== undefined, query => query.where(containsText(['name'], text ?? '')))
    .orderBy('approved', 'desc')
    .orderBy('name')
    .$if(!rules.onLoopback, query => query.where('for_loopback', '=', false))
    .$if(!rules.developerTools, query => query.where('expires_at', 'is', null))
    .limit(limit)
    .execute()
  return rows.filter(row => isUsableClient(row, rules, clock())).map(toClient)
}

export function toClient(row: Selectable<Schema['client']>): Client {
  return {
    id: row.client_id,
    name: row.name,
    description: row.description ?? undefined,
    logoUrl: row.logo_url ?? undefined,
    websiteUrl: row.website_url ?? undefined,
    policyUrl: row.policy_url ?? undefined,
    termsUrl: row.terms_url ?? undefined,
    contacts: parseList(row.contacts),
    authMethod: row.auth_method,
    secretHash: row.secret_hash ?? undefined,
    jwks: row.jwks ?? undefined,
    jwksUrl: row.jwks_url ?? undefined,
    redirectUris: parseList(row.redirect_uris),
    postLogoutRedirectUris: parseList(row.post_logout_redirect_uris),
    launchUrl: row.launch_url ?? undefined,
    scope: row.scope,
    firstParty: row.first_party,
    approved: row.approved,
    pkceRequired: row.pkce_required,
    issParameter: row.iss_parameter,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    enabledAt: row.enabled_at ?? undefined,
    mark: computeClientMark(row),
    isForLoopback: Boolean(row.for_loopback),
    isDescribed: row.document_until !== null,
  }
}

export function parseList(json: string): readonly string[] {
  const values: unknown = JSON.parse(json)
  return Array.isArray(values) ? values.filter(value => typeof value === 'string') : []
}
