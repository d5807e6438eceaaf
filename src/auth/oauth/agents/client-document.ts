import type { Transaction } from 'kysely'
import { createCachedFetch } from '../../../cache/index.ts'
import type { Settings } from '../../../config/index.ts'
import { isFailure, isRecord } from '../../../core/index.ts'
import type { Schema, Store } from '../../../store/index.ts'
import { makeFault } from '../../base/fault.ts'
import type { FetchDocument } from '../../base/fetch-document.ts'
import { LIMITS } from '../../base/limits.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import type { FAULT_TABLES } from '../../words/faults.ts'
import { findStoredRow, toClient } from '../clients/client.ts'
import { mayDescribe } from '../clients/client-host.ts'
import { insertClient, updateClient } from '../clients/store-client.ts'
import { findJwksUrlFault, findRedirectUriFault } from '../clients/urls.ts'
import type { ClientProperties } from '../clients/validate.ts'
import type { DescribedClients } from '../context.ts'
import { readClientMetadata } from '../register/metadata.ts'

/**
 * Reads client ID metadata documents (draft-ietf-oauth-client-id-metadata-document) by the rules of `jwks_uri`. A document that
 * is no longer fresh must be readable again, or the client is refused. Anybody can cause a fetch, so they are limited.
 */
export function createDescribedClients(options: {
  readonly store: Store
  readonly settings: Settings
  readonly clock: () => number
  readonly fetchDocument: FetchDocument
}): DescribedClients {
  const { store, settings, clock } = options
  // A fault is remembered for a while, so that a document is not fetched for every request.
  const fetches = createCachedFetch<AuthRefusal | undefined>({
    clock,
    maxEntries: LIMITS.keySetsKept,
    async fetch(id) {
      const document = await options.fetchDocument(id)
      const app = document ? readDocument(id, document.json) : refuse('client-document-unavailable')
      if (isFailure(app)) return { value: app, freshForMs: LIMITS.keySetPauseMs }
      const freshForMs = Math.max(document?.freshForMs ?? 0, LIMITS.keySetPauseMs)
      const terms = { now: clock(), freshForMs, isForLoopback: settings.onLoopback }
      const refused = await store.db.transaction().execute(trx => storeDescribed(trx, id, app, terms))
      return { value: refused, freshForMs: refused ? LIMITS.keySetPauseMs : 0 }
    },
  })

  return {
    async refresh(id) {
      if (!isDocumentUrl(id) || !settings.agents.enabled) return undefined
      const row = await findStoredRow(store.db, id)
      if (row && row.document_until === null) return undefined
      if (!mayDescribe(id, settings.agents, settings)) return refuse('client-host-not-allowed', getHost(id))
      if (row?.disabled || (row?.document_until ?? 0) > clock()) return undefined
      // Whoever makes up URLs does not keep known agents from being refreshed.
      const most = row ? LIMITS.keySetFetches : LIMITS.keySetFetchesOfStrangers
      if (!fetches.isFetching(id) && fetches.countFetches() >= most)
        return refuse('client-documents-too-many', { most })
      return fetches.get(id)
    },
  }
}

function getHost(id: string): { readonly host: string } {
  return { host: new URL(id).host }
}

/** An absolute URL with a path, in the one spelling that a document can have. */
function isDocumentUrl(id: string): boolean {
  if (!/^https?:\/\//.test(id) || findJwksUrlFault(id) !== undefined) return false
  const url = new URL(id)
  return url.href === id && url.pathname !== '/'
}

/** What an agent may ask for if its document does not limit it. Its person, and the settings, decide. */
const SCOPE = 'openid fhirUser profile online_access offline_access patient/*.cruds user/*.rs'

type DocumentFault = Exclude<
  keyof (typeof FAULT_TABLES)['Documents of apps without a registration'],
  'document-property-invalid'
>

/** Members that mean nothing to an agent are ignored. A client without a registration has no secret. */
function readDocument(id: string, document: unknown): ClientProperties | AuthRefusal {
  const fail = (reason: DocumentFault) => refuse('client-document-invalid', { fault: makeFault(reason) })
  if (!isRecord(document)) return fail('document-not-an-object')
  if (document.client_id !== id) return fail('document-of-another-client')
  if (typeof document.client_name !== 'string') return fail('document-without-name')
  if ('client_secret' in document) return fail('document-with-secret')
  const { redirect_uris: uris, response_types: _, initiate_login_uri: __, ...rest } = document
  const redirectUris = Array.isArray(uris)
    ? uris.filter(uri => typeof uri === 'string' && findRedirectUriFault(uri) === undefined)
    : []
  if (redirectUris.length === 0) return fail('document-without-redirect-uri')
  const metadata = readClientMetadata({
    token_endpoint_auth_method: 'none',
    scope: SCOPE,
    ...rest,
    redirect_uris: redirectUris,
    post_logout_redirect_uris: [],
    grant_types: ['authorization_code', 'refresh_token'],
  })
  if (isFailure(metadata)) return refuse('client-document-invalid', { fault: metadata })
  return metadata.app.authMethod === 'client_secret' ? fail('document-needs-secret') : metadata.app
}

async function storeDescribed(
  trx: Transaction<Schema>,
  id: string,
  app: ClientProperties,
  { now, freshForMs, isForLoopback }: StoreTerms,
): Promise<AuthRefusal | undefined> {
  const row = await findStoredRow(trx, id)
  if (!row && (await countUnapproved(trx)) >= LIMITS.unapprovedClients)
    return refuse('client-documents-too-many', { most: LIMITS.unapprovedClients })
  const isApproved = row?.approved === true && isSame(app, toClient(row))
  const changed = { ...app, approved: isApproved }
  const stored = row
    ? await updateClient(trx, id, { changes: changed })
    : await insertClient(trx, id, { app: changed, now })
  if (isFailure(stored))
    return refuse('client-document-invalid', {
      fault: makeFault('document-property-invalid', { property: stored.property, fault: stored }),
    })
  await trx
    .updateTable('client')
    .set({ document_until: now + freshForMs, for_loopback: isForLoopback })
    .where('client_id', '=', id)
    .execute()
  return undefined
}

interface StoreTerms {
  readonly now: number
  readonly freshForMs: number
  readonly isForLoopback: boolean
}

/** An administrator approved what users see, and where their codes go. */
function isSame(a: Pick<ClientProperties, 'name' | 'redirectUris'>, b: typeof a): boolean {
  return JSON.stringify([a.name, a.redirectUris]) === JSON.stringify([b.name, b.redirectUris])
}

async function countUnapproved(trx: Transaction<Schema>): Promise<number> {
  const { count } = await trx
    .selectFrom('client')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('approved', '=', false)
    .executeTakeFirstOrThrow()
  return Number(count)
}
