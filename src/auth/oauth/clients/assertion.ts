import type { Insertable, Kysely } from 'kysely'
import { LruMap } from '../../../cache/index.ts'
import { isFailure } from '../../../core/index.ts'
import {
  decodeJwt,
  type Jwt,
  type Claims as JwtClaims,
  type VerificationKey,
  verifySignatureInThread,
} from '../../../jwt/index.ts'
import { prepareQuery, type Schema, sha256 } from '../../../store/index.ts'
import { type Fault, makeFault } from '../../base/fault.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import type { AuthContext, KeySets } from '../context.ts'
import { type Client, findClient } from './client.ts'
import { assertionAlgorithms, readClientKeys, UNAVAILABLE } from './key-sets.ts'

type Header = Readonly<Record<string, unknown>>

/**
 * Finds the key that an assertion names (SMART 2.2): `jku` must be the registered URL if it is there, and exactly one key
 * must have the `kid` and fit the `alg`.
 */
async function findKey(keySets: KeySets, client: Client, header: Header): Promise<VerificationKey | Fault> {
  const { alg, kid, typ, jku, crit } = header
  const algorithm = assertionAlgorithms.find(it => it === alg)
  if (algorithm === undefined) return makeFault('alg is neither RS384 nor ES384')
  if (typeof kid !== 'string' || kid === '') return makeFault('kid is missing')
  if (typ !== undefined && !(typeof typ === 'string' && /^(client-authentication\+)?jwt$/i.test(typ)))
    return makeFault('typ is not JWT')
  if (crit !== undefined) return makeFault('crit is not supported')
  if (jku !== undefined && jku !== client.jwksUrl) return makeFault('jku is not the registered jwks_uri')
  const keys = await loadKeys(keySets, client, kid)
  if (isFailure(keys)) return keys
  const fitting = keys.filter(key => key.kid === kid && key.algorithms.includes(algorithm))
  const [key] = fitting
  if (!key) return makeFault('no key of the client has this kid and alg')
  return fitting.length === 1 ? key : makeFault('several keys of the client have this kid and alg')
}

async function loadKeys(
  keySets: KeySets,
  client: Client,
  kid: string,
): Promise<readonly VerificationKey[] | Fault> {
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

const LEEWAY_SECONDS = 10

interface AssertionClaims {
  readonly jti: string
  /** In seconds. */
  readonly exp: number
}

/** Checks audience, times and `jti` (RFC 7523, 3). */
function checkClaims(claims: JwtClaims, audiences: readonly string[], now: number): AssertionClaims | Fault {
  const { aud, exp, nbf, iat, jti } = claims
  const seconds = now / 1000
  if (!isForUs(aud, audiences)) return makeFault('aud is not this server')
  if (!isTime(exp)) return makeFault('exp is missing')
  if (exp <= seconds) return makeFault('exp is in the past')
  if (exp > seconds + MAX_SECONDS + LEEWAY_SECONDS) return makeFault('exp is more than five minutes ahead')
  if ([nbf, iat].some(time => time !== undefined && !(isTime(time) && time <= seconds + LEEWAY_SECONDS)))
    return makeFault('nbf or iat is in the future')
  if (typeof jti !== 'string' || jti === '' || jti.length > 1024)
    return makeFault('jti is missing or longer than 1024 characters')
  return { jti, exp }
}

// Another audience could replay an assertion that names several.
function isForUs(aud: unknown, audiences: readonly string[]): boolean {
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  return named.length > 0 && named.every(one => audiences.some(audience => audience === one))
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
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
): Promise<AssertedClient | Fault> {
  const assertion = decodeAssertion(sent.assertion)
  if (!assertion) return makeFault(`it is not a JWT of at most ${LIMITS.assertionCharacters} characters`)
  const { iss, sub } = assertion.claims
  // PostgreSQL does not accept a NUL.
  if (typeof iss !== 'string' || iss !== sub || iss.includes('\0'))
    return makeFault('iss and sub are not both the client_id')
  if (sent.clientId !== undefined && sent.clientId !== iss)
    return makeFault('iss is not the client_id of the request')
  const client = await findClient(context.store.db, context, iss)
  if (client?.authMethod !== 'private_key_jwt')
    return makeFault('the client is not registered for private_key_jwt')
  const claims = checkClaims(assertion.claims, listAudiences(context), context.clock())
  if (isFailure(claims)) return claims
  const key = await findKey(context.keySets, client, assertion.header)
  if (isFailure(key)) return key
  if (!(await verifySignatureInThread(assertion, key))) return makeFault('the signature does not match')
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
