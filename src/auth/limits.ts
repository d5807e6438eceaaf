/**
 * What one request may ask of the auth server, and what it may leave behind (docs/limits.md). Exceeding a limit of a
 * request is answered with a 4xx that names the limit. The limits of scopes are in `src/scope/limits.ts`.
 */
export const LIMITS = {
  /** Apps that the portal lists. One that is not listed can be launched by its client id. */
  appsListed: 100,
  /** How long a client's key set is not fetched again, in milliseconds, whatever its headers say. */
  keySetPauseMs: 5_000,
  /** Key sets of clients that are fetched at the same time. */
  keySetFetches: 32,
  /** Key sets of clients that are kept in memory. */
  keySetsKept: 1_000,
  /** Passwords that are compared at the same time; each takes a processor for some 50 ms. */
  passwordsAtOnce: 2,
  /** Logins that wait with a username or password that is not right. */
  loginsWaiting: 400,
  /** Logins that wait with one username from one network. */
  loginsWaitingPerUsername: 100,
} as const
