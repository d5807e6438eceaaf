/** The paths of the auth server, relative to the issuer. */
export const paths = {
  login: '/login',
  /** Followed by the id of a provider. */
  loginProviders: '/login/providers',
  /** The redirect URI at identity providers. */
  loginCallback: '/login/callback',
  /** A sign-in without a password. */
  loginPasskey: '/login/passkey',
  /** The steps of a sign-in after the password. */
  loginFactor: '/login/second-factor',
  loginNewPassword: '/login/new-password',
  loginEnrol: '/login/enrol',
  /** Links with which users choose a password lead here. */
  loginActivate: '/login/activate',
  /** Whether the browser is still signed in, for scripts of pages. */
  loginState: '/login/state',
  backchannelLogout: '/login/backchannel-logout',
  /** The redirect URI after a logout at an identity provider. */
  loggedOut: '/login/logged-out',
  logout: '/logout',
  portal: '/portal',
  portalLaunch: '/portal/launch',
  /** The cards of CDS services. */
  cards: '/portal/cards',
  cardsLaunch: '/portal/cards/launch',
  /** For EHRs that launch apps themselves. */
  launchContexts: '/launch-contexts',
  /** For FHIR servers that use the interceptor as a library. */
  auditRecords: '/audit-records',
  /** The start page of patients and relatives. */
  home: '/home',
  /** Changes that assistants propose, by id. */
  proposals: '/proposals',
  manage: '/manage',
  manageRemove: '/manage/remove',
  manageExports: '/manage/exports',
  /** The pages of the user's account begin with it. */
  account: '/account',
  accountPassword: '/account/password',
  accountSignIns: '/account/sign-ins',
  /** The second factors of the user. */
  accountFactors: '/account/factors',
  accountFactorsAdd: '/account/factors/add',
  accountFactorsRemove: '/account/factors/remove',
  accountFactorsRecoveryCodes: '/account/factors/recovery-codes',
  accountAccessLog: '/account/access-log',
  accountAccessLogCsv: '/account/access-log.csv',
  accountAccessLogJson: '/account/access-log.json',
  activity: '/activity',
  /** The pages of the administration area begin with it. */
  admin: '/admin',
  adminApi: '/admin/api',
  authorize: '/oauth2/authorize',
  /** An authorization request continues here after the login page. */
  resume: '/oauth2/resume',
  /** The patient picker of a standalone launch. */
  pick: '/oauth2/pick',
  consent: '/oauth2/consent',
  token: '/oauth2/token',
  jwks: '/oauth2/jwks',
  introspect: '/oauth2/introspect',
  revoke: '/oauth2/revoke',
  /** The revocation list for FHIR servers. */
  revocations: '/oauth2/revocations',
  userinfo: '/oauth2/userinfo',
  register: '/oauth2/register',
  endSession: '/oauth2/logout',
  /** The user's confirmation. */
  endSessionConfirmed: '/oauth2/logout/confirm',
  openidConfiguration: '/.well-known/openid-configuration',
  serverMetadata: '/.well-known/oauth-authorization-server',
  /** For FHIR servers that serve it at their own base (`sallyport/interceptor`). */
  smartConfiguration: '/.well-known/smart-configuration',
} as const

/** For a GET with side effects: a HEAD request would consume the code or the login for nothing. */
export const NO_HEAD_ROUTE = { exposeHeadRoute: false } as const
