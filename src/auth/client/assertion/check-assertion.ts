import type { Kysely } from 'kysely'
import { decodeJwt, type Jwt, verifySignature } from '../../../jwt/index.ts'
import { type Schema, sha256 } from '../../../store/index.ts'
import type { AuthContext } from '../../context.ts'
import { LIMITS } from '../../limits.ts'
import { paths } from '../../paths.ts'
import { type Client, findClient } from '../client.ts'
import { type AssertionClaims, checkClaims } from './check-claims.ts'
import { findKey } from './find-key.ts'

/** A client that an assertion authenticates, and the claims by which a replay is recognized. */
export interface AssertedClient {
  readonly client: Client
  readonly claims: AssertionClaims
}

/**
 * Authenticates a client by its assertion (`private_key_jwt`; RFC 7523, 3; SMART 2.2), or says what is wrong with it.
 * `consumeAssertion` then uses it up.
 */
export async function checkAssertion(
  context: AuthContext,
  sent: { readonly assertion: string; readonly clientId: string | undefined },
): Promise<AssertedClient | string> {
  const assertion = decodeAssertion(sent.assertion)
  if (!assertion) return `it is not a JWT of at most ${LIMITS.assertionCharacters} characters`
  const { iss, sub } = assertion.claims
  // PostgreSQL does not accept a NUL.
  if (typeof iss !== 'string' || iss !== sub || iss.includes('\0'))
    return 'iss and sub are not both the client_id'
  if (sent.clientId !== undefined && sent.clientId !== iss) return 'iss is not the client_id of the request'
  const client = await findClient(context.store, iss)
  if (client?.authMethod !== 'private_key_jwt') return 'the client is not registered for private_key_jwt'
  const claims = checkClaims(assertion.claims, listAudiences(context), context.clock())
  if (typeof claims === 'string') return claims
  const key = await findKey(context.keySets, client, assertion.header)
  if (typeof key === 'string') return key
  if (!verifySignature(assertion, key)) return 'the signature does not match'
  return { client, claims }
}

/** Do not trust anything in it before its signature is verified. */
export function decodeAssertion(assertion: string): Jwt | undefined {
  return assertion.length <= LIMITS.assertionCharacters ? decodeJwt(assertion) : undefined
}

// RFC 7523, 3 and SMART require the token endpoint, newer OAuth profiles the issuer. Both name this server only.
function listAudiences({ settings }: AuthContext): readonly string[] {
  return [settings.issuerUrl + paths.token, settings.issuerUrl]
}

/**
 * An assertion can be used once, on any instance (RFC 7523, 3): the database has one row per client and `jti`, and only
 * one of several simultaneous requests can insert it.
 */
export async function consumeAssertion(
  db: Kysely<Schema>,
  { client, claims: { jti, exp } }: AssertedClient,
): Promise<boolean> {
  const result = await db
    .insertInto('used_assertion')
    .values({ client_id: client.id, jti_hash: sha256(jti), expires_at: Math.ceil(exp * 1000) })
    .onConflict(conflict => conflict.doNothing())
    .executeTakeFirst()
  return result.numInsertedOrUpdatedRows === 1n
}
