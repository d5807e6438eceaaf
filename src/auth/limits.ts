import { LONGEST_SCOPE_LIST } from '../smart/index.ts'

/**
 * What one request may ask of the auth server, and what it may leave behind (docs/limits.md). Exceeding a limit of a
 * request is answered with a 4xx that names the limit. The limits of scopes are in `src/scope/limits.ts`.
 */
export const LIMITS = {
  /** Apps that the portal lists. One that is not listed can be launched by its client id. */
  appsListed: 100,
  /** Characters and words of a search for patients, in the portal and in the picker. */
  searchCharacters: 200,
  searchWords: 20,
  /** How long a client's key set is not fetched again, in milliseconds, whatever its headers say. */
  keySetPauseMs: 5_000,
  /** Key sets of clients that are fetched at the same time, and how many of them for clients that nobody approved. */
  keySetFetches: 32,
  keySetFetchesOfStrangers: 16,
  /** Key sets of clients that are kept in memory. */
  keySetsKept: 1_000,
  /** Passwords that are compared at the same time; each takes a processor for some 50 ms. */
  passwordsAtOnce: 2,
  /** Logins that wait with a username or password that is not right. */
  loginsWaiting: 400,
  /** Logins that wait with one username from one network. */
  loginsWaitingPerUsername: 100,
  /** Characters of the parameters of an authorization request, which are stored while its user logs in, and of a logout. */
  parameters: {
    client_id: 256,
    state: 4_096,
    nonce: 1_024,
    scope: LONGEST_SCOPE_LIST,
    login_hint: 256,
    id_token_hint: 8_192,
    launch: 256,
  },
  /** Authorization requests of browsers without a login that wait for one: from one network, and altogether. */
  pendingPerNetwork: 2_000,
  pending: 10_000,
  /** Characters of a URL of a client, and how many URLs or other texts a list of its metadata may have. */
  urlCharacters: 2_000,
  urls: 20,
  nameCharacters: 200,
  /** Keys of a client's key set, and its characters where the client is registered with it. */
  keys: 50,
  keySetCharacters: 64_000,
  /** Characters of a client assertion. */
  assertionCharacters: 8_192,
  /** The launch context that an EHR gives: `intent` and `tenant`, and the items, URLs and JSON of `fhirContext`. */
  contextTextCharacters: 200,
  fhirContextItems: 50,
  fhirContextUrlCharacters: 1_000,
  fhirContextCharacters: 16_000,
  /** Characters that a client without the initial access token may store, and how many such clients there may be. */
  registrationCharacters: 32_000,
  unapprovedClients: 10_000,
} as const
