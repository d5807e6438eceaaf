import { parseIdleSeconds } from '../../web/http/index.ts'
import { findLoginByHash } from '../users/find-login.ts'
import { isIdle, recordLoginUse } from '../users/idle.ts'
import type { AccessToken } from './access-token.ts'
import type { AuthContext } from './context.ts'
import { hasScope } from './grants/grant.ts'

/** With which our own app says how many seconds ago its user was active. */
export const IDLE_HEADER = 'sallyport-idle-seconds'

/**
 * Our own app and the pages of this server are in use together: what the user does in the app counts for the sign-in, and the
 * app closes its records when the sign-in was idle for too long (LOGIN-20). Apps of others neither extend a sign-in nor learn of
 * it, and access with `offline_access` does not depend on it: undefined for them.
 */
export async function reportAppUse(
  context: AuthContext,
  { grant, clientId }: Pick<AccessToken, 'grant' | 'clientId'>,
  idleSeconds: unknown,
): Promise<AppUse | undefined> {
  const { settings, store, clock } = context
  if (clientId !== settings.app.clientId || !grant || hasScope(grant.scope, 'offline_access'))
    return undefined
  const row = await store.db
    .selectFrom('grant')
    .select('login_id_hash')
    .where('id', '=', grant.id)
    .executeTakeFirst()
  const login = row?.login_id_hash && (await findLoginByHash(store.db, context, row.login_id_hash))
  if (!login) return undefined
  const now = clock()
  if (isIdle(login, settings, now)) return { isIdle: true, idleSeconds: undefined }
  const seconds = parseIdleSeconds(idleSeconds)
  if (seconds === undefined) return { isIdle: false, idleSeconds: undefined }
  const usedAt = now - seconds * 1000
  await recordLoginUse(store, settings, login, usedAt)
  return { isIdle: false, idleSeconds: (now - Math.max(login.lastUsedAt, usedAt)) / 1000 }
}

interface AppUse {
  readonly isIdle: boolean
  /** Since the last use of the sign-in, in the app or on the pages of this server, if the app reports its own. */
  readonly idleSeconds: number | undefined
}
