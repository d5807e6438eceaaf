import type { Insertable, Kysely } from 'kysely'
import { LruMap } from '../../../cache/index.ts'
import { isFailure } from '../../../core/index.ts'
import {
  decodeJwt,
  isNumericDate,
  isToCome,
  type Jwt,
  type Claims as JwtClaims,
  LEEWAY_SECONDS,
  type VerificationKey,
  verifySignatureInThread,
} from '../../../jwt/index.ts'
import { prepareQuery, type Schema, sha256 } from '../../../store/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import type { AuthContext, KeySets } from '../context.ts'
import { type Client, findClient } from './client.ts'
import { assertionAlgorithms, readClientKeys, UNAVAILABLE } from './key-sets.ts'

type Header = Readonly<Record<string, unknown>>

/**
 * Finds the key that an assertion names (SMART 2.2): `jku` must be the registered URL if it is there, and exactly one key
 * must have the `kid` and fit the `alg`.
 */
async function findKey(
  keySets: KeySets,
  client: Client,
  header: Header,
): Promise<VerificationKey | AuthRefusal> {
  const { alg, kid, typ, jku, crit } = header
  const algorithm = assertionAlgorithms.find(it => it === alg)
  if (algorithm === undefined) return refuse('assertion-alg-unsupported')
  if (typeof kid !== 'string' || kid === '') return refuse('assertion-kid-missing')
  if (typ !== undefined && !(typeof typ === 'string' && /^(client-authentication\+)?jwt$/i.test(typ)))
    return refuse('assertion-typ-wrong')
  if (crit !== undefined) return refuse('assertion-crit-unsupported')
  if (jku !== undefined && jku !== client.jwksUrl) return refuse('assertion-jku-not-registered')
  const keys = await loadKeys(keySets, client, kid)
  if (isFailure(keys)) return keys
  const fitting = keys.filter(key => key.kid === kid && key.algorithms.includes(algorithm))
  const [key] = fitting
  if (!key) return refuse('assertion-key-unknown')
  return fitting.length === 1 ? key : refuse('assertion-key-ambiguous')
}

async function loadKeys(
  keySets: KeySets,
  client: Client,
  kid: string,
): Promise<readonly VerificationKey[] | AuthRefusal> {
  const { jwksUrl, approved } = client
  if (jwksUrl !== undefined) return keySets.find({ jwksUrl, approved }, kid)
  return client.jwks === undefined ? UNAVAILABLE : readInlineKeys(client.jwks)
}

const inlineKeySets = new LruMap<readonly VerificationKey[]>(LIMITS.keySetsKept)

// The key set itself is the map key, so a changed registration takes effect at once.
function readInlineKeys(jwks: string): readonly VerificationKey[] {
  const known = inlineKeySets.get(jwks)
  if (known) return known
  const keys = readClientKeys(JSON.parse(jwks)) ?? []
  inlineKeySets.set(jwks, keys)
  return keys
}

// SMART 2.2, asymmetric authentication: at most five minutes. Clocks may differ by some seconds.
const MAX_SECONDS = 300

interface AssertionClaims {
  readonly jti: string
  /** In seconds. */
  readonly exp: number
}

/** Checks audience, times and `jti` (RFC 7523, 3). */
function checkClaims(
  claims: JwtClaims,
  audiences: readonly string[],
  now: number,
): AssertionClaims | AuthRefusal {
  const { aud, exp, nbf, iat, jti } = claims
  const seconds = now / 1000
  if (!isForUs(aud, audiences)) return refuse('assertion-aud-wrong')
  if (!isNumericDate(exp)) return refuse('assertion-exp-missing')
  if (exp <= seconds) return refuse('assertion-expired')
  if (exp > seconds + MAX_SECONDS + LEEWAY_SECONDS) return refuse('assertion-too-long-valid')
  if ([nbf, iat].some(time => isToCome(time, now))) return refuse('assertion-from-the-future')
  if (typeof jti !== 'string' || jti === '' || jti.length > 1024) return refuse('assertion-jti-malformed')
  return { jti, exp }
}

// Another audience could replay an assertion that names several.
function isForUs(aud: unknown, audiences: readonly string[]): boolean {
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  return named.length > 0 && named.every(one => audiences.some(audience => audience === one))
}

/** A client that an assertion authenticates, and the claims by which a replay is recognized. */
export interface AssertedClient {
  readonly client: Client
  readonly claims: AssertionClaims
}

/**
 * Authenticates a client by its assertion (`private_key_jwt`; RFC 7523, 3; SMART 2.2).
 * `consumeAssertion` then uses it up.
 */
export async function checkAssertion(
  context: AuthContext,
  sent: { readonly assertion: string; readonly clientId: string | undefined },
): Promise<AssertedClient | AuthRefusal> {
  const assertion = decodeAssertion(sent.assertion)
  if (!assertion) return refuse('assertion-malformed', { longest: LIMITS.assertionCharacters })
  const { iss, sub } = assertion.claims
  // PostgreSQL does not accept a NUL.
  if (typeof iss !== 'string' || iss !== sub || iss.includes('\0')) return refuse('assertion-parties-differ')
  if (sent.clientId !== undefined && sent.clientId !== iss) return refuse('assertion-of-another-client')
  const client = await findClient(context.store.db, context, iss)
  if (client?.authMethod !== 'private_key_jwt') return refuse('assertion-not-registered')
  const claims = checkClaims(assertion.claims, listAudiences(context), context.clock())
  if (isFailure(claims)) return claims
  const key = await findKey(context.keySets, client, assertion.header)
  if (isFailure(key)) return key
  if (!(await verifySignatureInThread(assertion, key))) return refuse('assertion-signature-wrong')
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
  const row = { client_id: client.id, jti_hash: sha256(jti), expires_at: Math.ceil(exp * 1000) }
  const { numAffectedRows } = await insertAssertion(db, row)
  return numAffectedRows === 1n
}

const insertAssertion = prepareQuery(
  (db, { client_id, jti_hash, expires_at }: Insertable<Schema['used_assertion']>) =>
    db
      .insertInto('used_assertion')
      .values({ client_id, jti_hash, expires_at })
      .onConflict(conflict => conflict.doNothing()),
)
