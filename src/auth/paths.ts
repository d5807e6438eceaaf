/** Every address of the auth server, below the issuer (contract 2). */
export const paths = {
  login: '/login',
  logout: '/logout',
  portal: '/portal',
  portalLaunch: '/portal/launch',
  authorize: '/oauth2/authorize',
  /** Where an authorization request goes on after the login page. */
  resume: '/oauth2/resume',
  /** Where a standalone launch chooses its patient. */
  pick: '/oauth2/pick',
  consent: '/oauth2/consent',
  token: '/oauth2/token',
  jwks: '/oauth2/jwks',
  openidConfiguration: '/.well-known/openid-configuration',
  serverMetadata: '/.well-known/oauth-authorization-server',
} as const
