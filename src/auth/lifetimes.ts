import { REFRESH_RETRY_MS } from '../store/index.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Lifetimes in milliseconds. The lifetime of access tokens is a setting. */
export const LIFETIME = {
  launchToken: 5 * MINUTE,
  /** From the arrival of an authorization request to its code. */
  interaction: 10 * MINUTE,
  code: 60 * SECOND,
  login: 8 * HOUR,
  /** An unused `offline_access` refresh token; each use restarts it. §170.315(g)(10) requires three months. */
  offlineRefresh: 100 * 24 * HOUR,
  /** How long a refresh request may be repeated if the response was lost. */
  refreshRetry: REFRESH_RETRY_MS,
  portalToken: 60 * SECOND,
  /** The access of a CDS service, which ends with its response. */
  cdsToken: 60 * SECOND,
  /** The launch link of a card. */
  cdsLink: 5 * MINUTE,
} as const

/** How recent a sign-in must be before keys, secrets and administrators change (ADMIN-4). */
export const RECENT_SECONDS = 300

/** How far the clocks of this server and of an identity provider may differ. */
export const CLOCK_TOLERANCE_SECONDS = 60
