import { randomUUID } from 'node:crypto'
import type { Transaction } from 'kysely'
import type { Schema } from '../../store/index.ts'
import { addApp } from '../apps/operations.ts'
import { AppFault } from '../apps/validate.ts'
import type { ClientMetadata } from './metadata.ts'

/** RFC 7591, 3.2.1. */
export type Registered = Readonly<Record<string, unknown>>

/** Registers a client with a new id. It is never first-party, so it needs consent. */
export async function registerClient(
  trx: Transaction<Schema>,
  metadata: ClientMetadata,
  { approved, now }: { readonly approved: boolean; readonly now: number },
): Promise<Registered & { readonly client_id: string }> {
  const added = await addApp(trx, randomUUID(), { app: { ...metadata.app, approved }, now })
  if (added instanceof AppFault) throw new Error(`Cannot register a checked client: ${added.text}`)
  const { id, secret } = added
  return {
    client_id: id,
    client_id_issued_at: Math.floor(now / 1000),
    ...(secret === undefined ? {} : { client_secret: secret, client_secret_expires_at: 0 }),
    ...describeClient(metadata),
  }
}

function describeClient({ app, authMethod, grantTypes }: ClientMetadata): Registered {
  const { name, logoUrl, launchUrl, jwks, jwksUrl } = app
  return {
    ...(name === undefined ? {} : { client_name: name }),
    ...(logoUrl === undefined ? {} : { logo_uri: logoUrl }),
    ...(launchUrl === undefined ? {} : { initiate_login_uri: launchUrl }),
    ...(jwks === undefined ? {} : { jwks: JSON.parse(jwks) }),
    ...(jwksUrl === undefined ? {} : { jwks_uri: jwksUrl }),
    token_endpoint_auth_method: authMethod,
    grant_types: grantTypes,
    response_types: grantTypes.includes('authorization_code') ? ['code'] : [],
    redirect_uris: app.redirectUris,
    post_logout_redirect_uris: app.postLogoutRedirectUris,
    scope: app.scope,
  }
}
