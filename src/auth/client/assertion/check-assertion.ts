import type { Kysely } from 'kysely'
import { decodeJwt, type Jwt, verifySignature } from '../../../jwt/index.ts'
import { type Schema, sha256 } from '../../../store/index.ts'
import type { AuthContext } from '../../context.ts'
import { LIMITS } from '../../limits.ts'
import { paths } from '../../paths.ts'
import { type Client, findClient } from '../client.ts'
import { type Claims, checkClaims } from './check-claims.ts'
import { findKey } from './find-key.ts'

/** The client that an assertion proves, and the claims by which it is known again. */
export interface ProvenByAssertion {
  readonly client: Client
  readonly claims: Claims
}

/**
 * The client that an assertion proves (`private_key_jwt`; RFC 7523, 3; SMART 2.2), or what is wrong with it. It is not
 * used up yet: see `useAssertion`.
 */
export async function checkAssertion(
  context: AuthContext,
  sent: { readonly assertion: string; readonly clientId: string | undefined },
): Promise<ProvenByAssertion | string> {
  const assertion = decodeAssertion(sent.assertion)
  if (!assertion) return `it is not a JWT of at most ${LIMITS.assertionCharacters} characters`
  const { iss, sub } = assertion.claims
  // A NUL is in no id, and no database takes one.
  if (typeof iss !== 'string' || iss !== sub || iss.includes('\0'))
    return 'iss and sub are not both the client_id'
  if (sent.clientId !== undefined && sent.clientId !== iss) return 'iss is not the client_id of the request'
  const client = await findClient(context.store, iss)
  if (client?.authMethod !== 'private_key_jwt') return 'the client is not registered for private_key_jwt'
  const claims = checkClaims(assertion.claims, audiencesOf(context), context.clock())
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

// RFC 7523, 3 names the token endpoint, which SMART asks for; newer OAuth the issuer. Both are ours alone.
function audiencesOf({ settings }: AuthContext): readonly string[] {
  return [settings.issuerUrl + paths.token, settings.issuerUrl]
}

/**
 * An assertion is good once, on whichever instance it arrives (RFC 7523, 3). The store has one row per client and
 * `jti`: of several simultaneous uses one makes it.
 */
export async function useAssertion(
  db: Kysely<Schema>,
  { client, claims: { jti, exp } }: ProvenByAssertion,
): Promise<boolean> {
  const result = await db
    .insertInto('used_assertion')
    .values({ client_id: client.id, jti_hash: sha256(jti), expires_at: Math.ceil(exp * 1000) })
    .onConflict(conflict => conflict.doNothing())
    .executeTakeFirst()
  return result.numInsertedOrUpdatedRows === 1n
}
