import { LruMap } from '../../../cache/index.ts'
import type { VerificationKey } from '../../../jwt/index.ts'
import { LIMITS } from '../../limits.ts'
import type { Client } from '../client.ts'
import { assertionAlgorithms, readClientKeys } from './client-key.ts'
import { findMostFetches, type KeySets } from './key-sets.ts'

type Header = Readonly<Record<string, unknown>>

/**
 * Finds the key that an assertion names (SMART 2.2): `jku` must be the registered URL if it is there, and exactly one key
 * must have the `kid` and fit the `alg`. A string says why there is none.
 */
export async function findKey(
  keySets: KeySets,
  client: Client,
  header: Header,
): Promise<VerificationKey | string> {
  const { alg, kid, typ, jku, crit } = header
  const algorithm = assertionAlgorithms.find(it => it === alg)
  if (algorithm === undefined) return 'alg is neither RS384 nor ES384'
  if (typeof kid !== 'string' || kid === '') return 'kid is missing'
  if (typ !== undefined && !(typeof typ === 'string' && /^(client-authentication\+)?jwt$/i.test(typ)))
    return 'typ is not JWT'
  if (crit !== undefined) return 'crit is not supported'
  if (jku !== undefined && jku !== client.jwksUrl) return 'jku is not the registered jwks_uri'
  const keys = await loadKeys(keySets, client, kid)
  if (keys === 'unavailable') return 'the key set of the client is not available'
  if (keys === 'busy')
    return `the server is already fetching ${findMostFetches(client.approved)} key sets, try again later`
  const fitting = keys.filter(key => key.kid === kid && key.algorithms.includes(algorithm))
  const [key] = fitting
  if (!key) return 'no key of the client has this kid and alg'
  return fitting.length === 1 ? key : 'several keys of the client have this kid and alg'
}

async function loadKeys(
  keySets: KeySets,
  client: Client,
  kid: string,
): Promise<readonly VerificationKey[] | 'unavailable' | 'busy'> {
  const { jwksUrl, approved } = client
  if (jwksUrl !== undefined) return keySets.find({ jwksUrl, approved }, kid)
  return client.jwks === undefined ? 'unavailable' : readInlineKeys(client.jwks)
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
