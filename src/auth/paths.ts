/** Every address of the auth server, below the issuer (contract 2). */
export const paths = {
  login: '/login',
  logout: '/logout',
  portal: '/portal',
  portalLaunch: '/portal/launch',
  /** The same for a real EHR. */
  launchContexts: '/launch-contexts',
  /** Where a clinician sees which apps have access. */
  manage: '/manage',
  manageRemove: '/manage/remove',
  activity: '/activity',
  authorize: '/oauth2/authorize',
  /** Where an authorization request goes on after the login page. */
  resume: '/oauth2/resume',
  /** Where a standalone launch chooses its patient. */
  pick: '/oauth2/pick',
  consent: '/oauth2/consent',
  token: '/oauth2/token',
  jwks: '/oauth2/jwks',
  introspect: '/oauth2/introspect',
  revoke: '/oauth2/revoke',
  /** Where FHIR servers learn what was revoked. */
  revocations: '/oauth2/revocations',
  userinfo: '/oauth2/userinfo',
  register: '/oauth2/register',
  endSession: '/oauth2/logout',
  /** The answer of the person in front of the browser. */
  endSessionConfirmed: '/oauth2/logout/confirm',
  openidConfiguration: '/.well-known/openid-configuration',
  serverMetadata: '/.well-known/oauth-authorization-server',
  /** For FHIR servers that tell it at their own base (`sallyport/interceptor`). */
  smartConfiguration: '/.well-known/smart-configuration',
} as const
