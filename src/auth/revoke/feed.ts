import { hash } from 'node:crypto'
import type { Store } from '../../store/index.ts'

/** What FHIR servers ask for every two seconds, so that they need not ask on each request. */
export interface RevocationFeed {
  /** The revoked, each as the hash of a `jti` or of what it begins with. */
  readonly revoked: readonly string[]
  /** How long a revocation matters, in seconds: by then the tokens have expired by themselves. */
  readonly lifetime: number
  /** What to ask with the next time. */
  readonly next: number
}

// An instance may commit a revocation some time after it looked at its clock, and clocks of instances differ.
const OVERLAP_MS = 30_000

/**
 * The revocations since a moment. Public, so it holds no id that names a grant or token: whoever has the token can
 * find it in the list, nobody can find a token by it.
 */
export async function revocationFeed(
  { db }: Pick<Store, 'db'>,
  { now, lifetimeMs, since = 0 }: { now: number; lifetimeMs: number; since?: number },
): Promise<RevocationFeed> {
  const from = Math.max(since - OVERLAP_MS, now - lifetimeMs)
  const [grants, others] = await Promise.all([
    db.selectFrom('grant').select('id').where('revoked_at', '>', from).execute(),
    db.selectFrom('revocation').select('id').where('revoked_at', '>', from).execute(),
  ])
  const revoked = new Set([...grants, ...others].map(({ id }) => revocationMark(id)))
  return { revoked: [...revoked], lifetime: Math.ceil(lifetimeMs / 1000), next: now }
}

/** 128 bits of the SHA-256: nobody makes a token whose id has another's mark. */
export function revocationMark(id: string): string {
  return hash('sha256', id, 'base64url').slice(0, 22)
}
