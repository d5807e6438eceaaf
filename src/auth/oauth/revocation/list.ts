import { hash } from 'node:crypto'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import { createCachedFetch } from '../../../cache/index.ts'
import { getMcpUrl } from '../../../config/index.ts'
import type { Store } from '../../../store/index.ts'
import { LIMITS } from '../../base/limits.ts'
import type { AuthContext } from '../context.ts'
import { areAgentsOff } from '../grants/agents-switch.ts'
import { computeMaxTokenSeconds } from '../hooks.ts'

/** The list that FHIR servers fetch every two seconds, so that they need no introspection for each request. */
export interface RevocationList {
  /** Hashes of a `jti` or of the grant id that it begins with. */
  readonly revoked: readonly string[]
  /** Hashes of the audiences whose tokens are all refused now. */
  readonly refused: readonly string[]
  /** Seconds after which the revoked tokens have expired. */
  readonly lifetime: number
  /** The next value of `since`. */
  readonly next: number
}

// A revocation may be committed some time after its timestamp, and clocks of instances differ.
const OVERLAP_MS = 30_000

// FHIR servers request the list every two seconds. One that has not done so for this long gets all revocations.
const RECENT_MS = 10_000

/**
 * The lists as JSON: the recent revocations, or all. Each is generated once for all requests within a short time, because
 * the requests need no login (REVOKE-4).
 */
export function createRevocationLists(context: AuthContext): (since: number) => Buffer | Promise<Buffer> {
  const { clock } = context
  const makeList = (freshForMs: number, rangeMs?: number) =>
    createCachedFetch<Buffer>({
      clock,
      fetch: async () => ({ value: await serializeRevocations(context, rangeMs), freshForMs }),
    })
  const recent = makeList(LIMITS.recentRevocationsMs, RECENT_MS + OVERLAP_MS)
  const all = makeList(LIMITS.revocationsMs)
  return since => (since < clock() - RECENT_MS ? all : recent).get('')
}

async function serializeRevocations(
  { store, settings, clock, settle }: AuthContext,
  rangeMs?: number,
): Promise<Buffer> {
  await settle()
  const lifetimeMs = (computeMaxTokenSeconds(settings) + 60) * 1000
  const list = await listRevocations(store, { now: clock(), lifetimeMs, rangeMs })
  const refused = (await areAgentsOff(store.db)) ? [computeRevocationKey(getMcpUrl(settings))] : []
  return Buffer.from(JSON.stringify({ ...list, refused } satisfies RevocationList))
}

/**
 * The revocations within `rangeMs` until now, or all. The list is public, so it contains hashes, and no ids of grants or
 * tokens.
 */
async function listRevocations(
  { db }: Pick<Store, 'db'>,
  { now, lifetimeMs, rangeMs }: { now: number; lifetimeMs: number; rangeMs: number | undefined },
): Promise<Omit<RevocationList, 'refused'>> {
  const [grants, others] = await Promise.all([
    db
      .selectFrom('grant')
      .select('id')
      .where('revoked_at', '>', now - (rangeMs ?? lifetimeMs))
      .execute(),
    db
      .selectFrom('revocation')
      .select(['id', 'expires_at'])
      .$if(rangeMs !== undefined, query => query.where('revoked_at', '>', now - (rangeMs ?? 0)))
      .where('expires_at', '>', now)
      .execute(),
  ])
  const longestMs = others.reduce((most, { expires_at }) => Math.max(most, expires_at - now), lifetimeMs)
  const ids = new Set([...grants, ...others].map(({ id }) => id))
  return { revoked: await computeRevocationKeys(ids), lifetime: Math.ceil(longestMs / 1000), next: now }
}

const KEYS_AT_ONCE = 1_000

/** Other requests are served between the hashes. */
async function computeRevocationKeys(ids: ReadonlySet<string>): Promise<readonly string[]> {
  const keys: string[] = []
  for (const id of ids) if (keys.push(computeRevocationKey(id)) % KEYS_AT_ONCE === 0) await yieldTurn()
  return keys
}

/** 132 bits of the SHA-256, enough against collisions. */
export function computeRevocationKey(id: string): string {
  return hash('sha256', id, 'base64url').slice(0, 22)
}
