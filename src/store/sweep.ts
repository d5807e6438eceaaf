import type { Instant } from './schema.ts'
import type { Store } from './store.ts'

const HOUR = 3_600_000

/**
 * Codes and grants are kept beyond their use so that a replay still finds and revokes its grant, and so that access
 * tokens of a revoked grant stay revoked.
 */
const KEPT = { loginFailure: HOUR, code: HOUR, grant: 48 * HOUR, signingKey: 168 * HOUR } as const

/**
 * How long a refresh may be retried: the successor of a used refresh token stays readable. Longer than any client
 * waits for a response.
 */
export const REFRESH_RETRY_MS = 60_000

/** Deletes expired rows (STORE-3). Safe to run on several instances at once. */
export async function sweep({ db }: Store, now: Instant): Promise<void> {
  await db
    .deleteFrom('launch_token')
    .where('expires_at', '<', now - HOUR)
    .execute()
  await db.deleteFrom('authorization_request').where('expires_at', '<', now).execute()
  await db.deleteFrom('pending_sign_in').where('expires_at', '<', now).execute()
  await db.deleteFrom('login').where('expires_at', '<', now).execute()
  await db
    .deleteFrom('login_failure')
    .where('at', '<', now - KEPT.loginFailure)
    .execute()
  await db.deleteFrom('app_launch').where('expires_at', '<', now).execute()
  await db
    .deleteFrom('app_session')
    .where(({ or, eb }) =>
      or([eb('idle_expires_at', '<', now), eb('max_expires_at', '<', now), eb('renewable_until', '<', now)]),
    )
    .execute()
  await db
    .deleteFrom('authorization_code')
    .where('expires_at', '<', now - KEPT.code)
    .execute()
  await db.deleteFrom('refresh_token').where('expires_at', '<', now).execute()
  await db
    .updateTable('refresh_token')
    .set({ successor_sealed: null })
    .where('successor_sealed', 'is not', null)
    .where('used_at', '<', now - REFRESH_RETRY_MS)
    .execute()
  await db.deleteFrom('revocation').where('expires_at', '<', now).execute()
  await db.deleteFrom('used_assertion').where('expires_at', '<', now).execute()
  await db
    .deleteFrom('signing_key')
    .where('retired_at', '<', now - KEPT.signingKey)
    .execute()
  await db
    .deleteFrom('grant')
    .where('last_used_at', '<', now - KEPT.grant)
    .where(({ or, eb, not, exists, selectFrom }) =>
      or([
        eb('revoked_at', '<', now - KEPT.grant),
        not(exists(selectFrom('refresh_token').select('grant_id').whereRef('grant_id', '=', 'grant.id'))),
      ]),
    )
    .execute()
}

/** A failed sweep is reported and repeated at the next interval. */
export function startSweeping(
  store: Store,
  { clock = Date.now, everyMs = 60_000, onError }: SweepingOptions,
): { stop(): Promise<void> } {
  let running: Promise<void> = Promise.resolve()
  const round = () => {
    running = running.then(() => sweep(store, clock())).catch(onError)
  }
  round()
  const timer = setInterval(round, everyMs)
  timer.unref()
  return {
    stop: () => {
      clearInterval(timer)
      return running
    },
  }
}

interface SweepingOptions {
  readonly clock?: () => number
  readonly everyMs?: number
  readonly onError: (error: unknown) => void
}
