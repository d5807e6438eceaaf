import { prepareQuery } from '../../store/index.ts'
import type { AppSettings } from '../context.ts'
import type { AppContext } from '../oauth/context.ts'
import { type Session, toSession } from '../session.ts'

type Issued = Pick<Session, 'issuer'>

/**
 * The sign-in at our own auth server ends after its idle time, and the records close with it (LOGIN-20). Undefined if that
 * server has no idle time, or another one issued the tokens.
 */
export function findLoginIdleSeconds(
  { issuerUrl, loginIdleSeconds }: AppSettings,
  { issuer }: Issued,
): number | undefined {
  return loginIdleSeconds > 0 && issuer === issuerUrl ? loginIdleSeconds : undefined
}

/** How long a session may be idle: never longer than the sign-in with which it began. */
export function computeIdleSeconds(settings: AppSettings, session: Issued): number {
  const { sessionIdleSeconds } = settings.app
  return Math.min(sessionIdleSeconds, findLoginIdleSeconds(settings, session) ?? sessionIdleSeconds)
}

/** How many seconds ago a session was used. */
export function measureIdleSeconds({ settings, clock }: AppContext, session: Session): number {
  const usedAt = session.idleExpiresAt - computeIdleSeconds(settings, session) * 1000
  return Math.max(0, (clock() - usedAt) / 1000)
}

/** The idle time is written only if it moves by at least this much. */
const GRAIN_MS = 1000

/** Restarts the idle time at a moment (SESSION-3). */
export async function useSession(
  { store, settings }: AppContext,
  session: Session,
  usedAt: number,
): Promise<Session> {
  const idleExpiresAt = usedAt + computeIdleSeconds(settings, session) * 1000
  const { idHash } = session
  const [row] = (await setIdleTime(store.db, { idHash, idleExpiresAt, before: idleExpiresAt - GRAIN_MS }))
    .rows
  return row ? toSession(row) : session
}

const setIdleTime = prepareQuery(
  (db, { idHash, idleExpiresAt, before }: { idHash: string; idleExpiresAt: number; before: number }) =>
    db
      .updateTable('app_session')
      .set({ idle_expires_at: idleExpiresAt })
      .where('id_hash', '=', idHash)
      .where('idle_expires_at', '<=', before)
      .returningAll(),
)
