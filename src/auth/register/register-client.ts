import { randomUUID } from 'node:crypto'
import type { Transaction } from 'kysely'
import { createRandomToken, type Schema, sha256 } from '../../store/index.ts'
import { storeOrigins } from '../client/origins.ts'
import type { AuthContext } from '../context.ts'
import type { AuthMethod, ClientMetadata } from './metadata.ts'

/** RFC 7591, 3.2.1. */
export type Registered = Readonly<Record<string, unknown>>

/** Registers a client with a new id. It is never first-party, so it needs consent. */
export async function registerClient(
  trx: Transaction<Schema>,
  { clock }: Pick<AuthContext, 'clock'>,
  metadata: ClientMetadata,
  { approved }: { readonly approved: boolean },
): Promise<Registered & { readonly client_id: string }> {
  const id = randomUUID()
  const secret = hasSecret(metadata.authMethod) ? createRandomToken() : undefined
  await trx
    .insertInto('client')
    .values({
      client_id: id,
      name: metadata.name ?? id,
      description: null,
      logo_url: metadata.logoUrl ?? null,
      auth_method: hasSecret(metadata.authMethod) ? 'client_secret' : metadata.authMethod,
      secret_hash: secret === undefined ? null : sha256(secret),
      jwks: metadata.jwks ?? null,
      jwks_url: metadata.jwksUrl ?? null,
      redirect_uris: JSON.stringify(metadata.redirectUris),
      post_logout_redirect_uris: JSON.stringify(metadata.postLogoutRedirectUris),
      launch_url: metadata.launchUrl ?? null,
      scope: metadata.scope,
      first_party: false,
      approved,
      created_at: clock(),
    })
    .execute()
  await storeOrigins(trx, id)
  return {
    client_id: id,
    client_id_issued_at: Math.floor(clock() / 1000),
    ...(secret === undefined ? {} : { client_secret: secret, client_secret_expires_at: 0 }),
    ...describeClient(metadata),
  }
}

function hasSecret(method: AuthMethod): method is 'client_secret_basic' | 'client_secret_post' {
  return method === 'client_secret_basic' || method === 'client_secret_post'
}

function describeClient(metadata: ClientMetadata): Registered {
  const { name, logoUrl, launchUrl, jwks, jwksUrl, grantTypes } = metadata
  return {
    ...(name === undefined ? {} : { client_name: name }),
    ...(logoUrl === undefined ? {} : { logo_uri: logoUrl }),
    ...(launchUrl === undefined ? {} : { initiate_login_uri: launchUrl }),
    ...(jwks === undefined ? {} : { jwks: JSON.parse(jwks) }),
    ...(jwksUrl === undefined ? {} : { jwks_uri: jwksUrl }),
    token_endpoint_auth_method: metadata.authMethod,
    grant_types: grantTypes,
    response_types: grantTypes.includes('authorization_code') ? ['code'] : [],
    redirect_uris: metadata.redirectUris,
    post_logout_redirect_uris: metadata.postLogoutRedirectUris,
    scope: metadata.scope,
  }
}
