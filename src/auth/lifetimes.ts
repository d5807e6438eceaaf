import { REFRESH_RETRY_MS } from '../store/index.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** How long things live, in milliseconds. The access token's life is a setting. */
export const LIFETIME = {
  /** Service.md 8. */
  launchToken: 5 * MINUTE,
  /** From the arrival of an authorization request to its code (contract 4, launch token text). */
  interaction: 10 * MINUTE,
  code: 60 * SECOND,
  login: 8 * HOUR,
  /** An unused `offline_access` refresh token; each use starts it anew. (g)(10) asks for three months, whichever they are. */
  offlineRefresh: 100 * 24 * HOUR,
  /** A refresh whose response was lost may be asked again this long. */
  refreshRetry: REFRESH_RETRY_MS,
  portalToken: 60 * SECOND,
} as const
