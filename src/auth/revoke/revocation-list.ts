import { hash } from 'node:crypto'
import type { Store } from '../../store/index.ts'

/** The list that FHIR servers fetch every two seconds, so that they need not ask on each request. */
export interface RevocationList {
  /** Hashes of a `jti` or of the grant id that it begins with. */
  readonly revoked: readonly string[]
  /** Seconds after which the revoked tokens have expired. */
  readonly lifetime: number
  /** The next value of `since`. */
  readonly next: number
}

// A revocation may be committed some time after its timestamp, and clocks of instances differ.
const OVERLAP_MS = 30_000

/**
 * The revocations since a time. The list is public, so it has hashes and no ids of grants or tokens.
 */
export async function listRevocations(
  { db }: Pick<Store, 'db'>,
  { now, lifetimeMs, since = 0 }: { now: number; lifetimeMs: number; since?: number },
): Promise<RevocationList> {
  const from = Math.max(since - OVERLAP_MS, now - lifetimeMs)
  const [grants, others] = await Promise.all([
    db.selectFrom('grant').select('id').where('revoked_at', '>', from).execute(),
    db.selectFrom('revocation').select('id').where('revoked_at', '>', from).execute(),
  ])
  const revoked = new Set([...grants, ...others].map(({ id }) => computeRevocationKey(id)))
  return { revoked: [...revoked], lifetime: Math.ceil(lifetimeMs / 1000), next: now }
}

/** 132 bits of the SHA-256, enough against collisions. */
export function computeRevocationKey(id: string): string {
  return hash('sha256', id, 'base64url').slice(0, 22)
}
