import type { Settings } from '../../config/index.ts'
import type { Store } from '../../store/index.ts'
import type { Login } from './find-login.ts'

type IdleSettings = Pick<Settings, 'loginIdleSeconds'>

/** How long before the end a page warns. If the idle time is short, it warns for a third of it. */
const WARNING_SECONDS = 60
/** How often a page reports that its user is active. If the idle time is short, it reports ten times in it. */
const REPORT_SECONDS = 30
/** A use is written only if it is later by at least this much, to save writes: with an idle time, and without one. */
const GRAIN_MS = { exact: 1_000, rough: 60_000 } as const

export function isIdle({ lastUsedAt }: Login, { loginIdleSeconds }: IdleSettings, now: number): boolean {
  return loginIdleSeconds > 0 && now - lastUsedAt >= loginIdleSeconds * 1000
}

/** Records that a login was in use at a moment. */
export async function recordLoginUse(
  { db }: Store,
  { loginIdleSeconds }: IdleSettings,
  { idHash, lastUsedAt }: Login,
  at: number,
): Promise<void> {
  if (at - lastUsedAt < GRAIN_MS[loginIdleSeconds > 0 ? 'exact' : 'rough']) return
  await db
    .updateTable('login')
    .set({ seen_at: at })
    .where('id_hash', '=', idHash)
    .where(({ or, eb }) => or([eb('seen_at', 'is', null), eb('seen_at', '<', at)]))
    .execute()
}

/** When a login ends unless it is used, for the pages that warn before. */
export interface LoginEnd {
  readonly secondsLeft: number
  /** Whether use moves the end. */
  readonly canStay: boolean
  /** How long before the end the page warns. */
  readonly warnSeconds: number
  /** How often the page reports use. */
  readonly reportSeconds: number
}

export function describeLoginEnd(
  { lastUsedAt, endsAt }: Login,
  { loginIdleSeconds }: IdleSettings,
  now: number,
): LoginEnd {
  const idleEnd = loginIdleSeconds > 0 ? lastUsedAt + loginIdleSeconds * 1000 : Number.POSITIVE_INFINITY
  const canStay = idleEnd < endsAt
  return {
    secondsLeft: Math.max(0, (Math.min(idleEnd, endsAt) - now) / 1000),
    canStay,
    warnSeconds: canStay ? Math.min(WARNING_SECONDS, loginIdleSeconds / 3) : WARNING_SECONDS,
    reportSeconds: loginIdleSeconds > 0 ? Math.min(REPORT_SECONDS, loginIdleSeconds / 10) : REPORT_SECONDS,
  }
}
