import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/index.ts'
import { MAX_SCOPE_LIST_CHARACTERS } from '../../smart/index.ts'
import { REFRESH_RETRY_MS } from '../../store/index.ts'

/**
 * The limits of the auth server (docs/limits.md). A request that exceeds a limit gets a 4xx response that names the limit.
 * The limits of scopes are in `src/smart/scope.ts`.
 */
export const LIMITS = {
  /** Seconds of an access token of a launch with an extension. */
  extensionTokenSeconds: 3_600,
  /** Apps that the portal lists at once. A search finds the others. */
  appsListed: 8,
  /** Patients with the family names of a page, with whom its patients are compared. */
  namesCompared: 200,
  /** Patients whose names are compared with a name that nobody has, each time. */
  namesSuggested: 50,
  /** Recent patients and recent apps that the portal lists first. */
  recentListed: 5,
  /** Encounters of a patient that the portal lists at once, and in all. */
  encountersListed: 20,
  encountersRead: 500,
  /** Patients that `/manage` lists for an app, and patients of all apps whose names are read. */
  patientsListed: 50,
  patientsNamed: 100,
  /** Bulk exports of a person's own apps that `/manage` lists. */
  ownExports: 100,
  /** Clinicians whose names and roles a page about access to a record reads, and whose names and roles are kept. */
  staffNamed: 50,
  staffKept: 1_000,
  /** Proposals of assistants that their page lists, and characters of a resource on the page of one. */
  proposalsListed: 100,
  proposalJson: 60_000,
  /** Records of a relative that the start page shows, and the last visits of each. */
  homeRecords: 5,
  homeVisits: 3,
  /** Grants of other people for a record, the last used ones, that the start page reads. */
  homeGrants: 2_000,
  /** Records that a page about access to a record reads at once, and how often; its visits, and the people to filter by. */
  accessRecords: 2_000,
  accessRounds: 5,
  visitsListed: 200,
  accessChoices: 200,
  /** Downloads of patients that run at the same time in one process, in all and of one user. */
  accessDownloads: 20,
  accessDownloadsPerUser: 2,
  /** Characters of the position of a later page of patients. */
  positionCharacters: 8_000,
  /** Characters and words of a patient search, in the portal and in the picker. */
  searchCharacters: 200,
  searchWords: 20,
  /** Minimum time between two fetches of a client's key set, in milliseconds. */
  keySetPauseMs: 5_000,
  /** Concurrent fetches of key sets, and how many of them for unapproved clients. */
  keySetFetches: 32,
  keySetFetchesOfStrangers: 16,
  /** Cached key sets. */
  keySetsKept: 1_000,
  /** How long the list of recent revocations, and the list of all, are cached. */
  recentRevocationsMs: 250,
  revocationsMs: 5_000,
  /** Results of granting requested scopes. */
  grantedScopesKept: 200,
  /** Tokens of the portal that are reused; further users get new ones. */
  portalTokensKept: 1_000,
  /** Concurrent password comparisons; each occupies a processor for about 50 ms. */
  passwordsAtOnce: 2,
  /** Waiting logins with a wrong username or password. */
  loginsWaiting: 400,
  /** When a login is refused for which the queue has no room. A right password is accepted until then. */
  loginBusyMs: 3_000,
  /** Waiting logins with one username from one network. */
  loginsWaitingPerUsername: 100,
  /** Characters of the parameters of an authorization request, which is stored while its user logs in, and of a logout. */
  parameters: {
    client_id: 256,
    state: 4_096,
    nonce: 1_024,
    scope: MAX_SCOPE_LIST_CHARACTERS,
    login_hint: 256,
    acr_values: 1_024,
    claims: 4_096,
    id_token_hint: 8_192,
    launch: 256,
  },
  /** Pending authorization requests of browsers without a login: from one network, and in all. */
  pendingPerNetwork: 2_000,
  pending: 10_000,
  /** Sign-ins with a provider that one browser may have in progress, each with a cookie. */
  signInsPerBrowser: 10,
  /** RelatedPersons of an account: every page of its user reads all of them. */
  relatedPersons: 50,
  /** Wrong codes of authenticator apps in 24 hours, for an account: from each known browser and network, and from all others. */
  wrongCodesPerDay: 20,
  /** Users whose sign-ins in one browser are remembered: people share computers. */
  usersPerBrowser: 10,
  /** Wrong passwords of an account in a row, over all addresses. NIST SP 800-63B-4, 3.2.2, allows 100. */
  wrongPasswords: 50,
  /** Second factors of an account, and characters of the name of one. */
  factors: 10,
  factorNameCharacters: 60,
  /** Characters of a client's URL, and items of a list in its metadata. */
  urlCharacters: 2_000,
  urls: 20,
  /** Members of the metadata of a client, and its contacts. */
  metadataMembers: 100,
  contacts: 5,
  nameCharacters: 200,
  descriptionCharacters: 500,
  /** Records and launches on a page of `/activity`, and the first OAuth events that are added to a launch. */
  activityRecords: 100,
  activityLaunches: 30,
  activityFirstEvents: 8,
  /** Characters and expected values of a comparison in the details of an OAuth event. */
  detailCharacters: 1_000,
  detailValues: 5,
  /** Grants that the record of a sign-out names. */
  grantsRecorded: 100,
  /** People who may act for a patient, on the start page. */
  homeRepresentatives: 20,
  /** Earlier access on a page of `/manage`, and the ends of it that are read for one. */
  pastAccess: 30,
  pastEnds: 500,
  /** Apps on a page of `/apps`. */
  appsPerPage: 50,
  /** Keys of a client's key set, and its characters where the client is registered with it. */
  keys: 50,
  keySetCharacters: 64_000,
  /** Characters of a client assertion. */
  assertionCharacters: 8_192,
  /** Cards of a CDS service, links of a card, and the characters of a summary or label, a detail and an `appContext`. */
  cdsCards: 10,
  cdsLinks: 5,
  cdsSummaryCharacters: 200,
  cdsDetailCharacters: 4_000,
  appContextCharacters: 4_000,
  /** How long a CDS service may take, and for how many patients services are called at once. */
  cdsMs: 5_000,
  cdsCalls: 20,
  /** Characters of `intent` and `tenant`, and the items, URLs and JSON of `fhirContext`. */
  contextTextCharacters: 200,
  fhirContextItems: 50,
  fhirContextUrlCharacters: 1_000,
  fhirContextCharacters: 16_000,
  /** Characters of a registration without the initial access token, and the number of such clients. */
  registrationCharacters: 32_000,
  unapprovedClients: 10_000,
  /** Items of a page of the administration API, and characters of its position. */
  adminPage: 100,
  cursorCharacters: 500,
  /** Characters of a policy file that the administration API validates. */
  policyCharacters: 20_000,
  /** Bytes of a form with a file, and of one with an exported file; files that are checked at the same time in one process. */
  fileBytes: 256 * 1024,
  exportedFileBytes: 8 * 1024 * 1024,
  fileChecks: 2,
  /**
   * Records of an export of the audit trail or of a download of visits, and exports that run at the same time in one process.
   * A record takes about 50 µs with its response: the largest export takes less than the 2 s that one request may take.
   */
  exportedRecords: 25_000,
  exports: 2,
  /** `POST /audit-records`: octets and records of a request, records of a client in a minute, and clients that are counted. */
  auditRecordsBytes: 1_000_000,
  auditRecords: 500,
  auditRecordsPerMinute: 60_000,
  /** A request to `/audit-records` counts as so many records at least, also one that is refused. */
  auditRequestCost: 20,
  auditSenders: 1_000,
  /** How late and how early an audit record of another server may be. */
  auditRecordsLateMs: 7 * DAY_MS,
  auditRecordsEarlyMs: 5 * MINUTE_MS,
} as const

const SECOND_MS = 1000

/** Lifetimes in milliseconds. The lifetime of access tokens is a setting. */
export const LIFETIME = {
  launchToken: 5 * MINUTE_MS,
  /** From the arrival of an authorization request to its code. */
  interaction: 10 * MINUTE_MS,
  code: 60 * SECOND_MS,
  login: 8 * HOUR_MS,
  /** How long a browser or network is known after a sign-in. */
  knownSender: 180 * DAY_MS,
  /** An unused `offline_access` refresh token; each use restarts it. §170.315(g)(10) requires three months. */
  offlineRefresh: 100 * DAY_MS,
  /** How long a refresh request may be repeated if the response was lost. */
  refreshRetry: REFRESH_RETRY_MS,
  portalToken: 60 * SECOND_MS,
  /** The access of a CDS service, which ends with its response. */
  cdsToken: 60 * SECOND_MS,
  /** The launch link of a card. */
  cdsLink: 5 * MINUTE_MS,
} as const

/** How recent a sign-in must be before an administrator gives access (ADMIN-4). */
export const RECENT_SECONDS = 300

/** How far the clocks of this server and of an identity provider may differ. */
export const CLOCK_TOLERANCE_SECONDS = 60
