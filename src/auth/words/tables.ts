/** All tables of reasons, by their titles in docs/errors.md. */
import { API_REASONS, LAUNCH_REASONS } from '../../app-reasons/index.ts'
import { FHIR_REASON_TABLES } from '../../fhir/index.ts'
import { ADMINISTRATION } from './administration.ts'
import { AUTHORIZATION, AUTHORIZATION_PAGES } from './authorization.ts'
import { CLIENT_AUTHENTICATION, INTROSPECTION, REGISTRATION } from './clients.ts'
import { LAUNCHES } from './launches.ts'
import { LINK_ERRORS, LINKS } from './links.ts'
import { PROPOSALS } from './proposals.ts'
import { LOGOUT_TOKENS, OWN_SIGN_IN, PROVIDER_SIGN_IN } from './sign-in.ts'
import { COMMANDS, TOKENS } from './tokens.ts'

export const REASON_TABLES = {
  ...FHIR_REASON_TABLES,
  'Authorization requests, and requests to sign out': { ...AUTHORIZATION, ...AUTHORIZATION_PAGES },
  'Authentication of apps': CLIENT_AUTHENTICATION,
  'Token requests': TOKENS,
  Introspection: INTROSPECTION,
  'Registration of apps': REGISTRATION,
  'Launches by the portal and by an EHR': LAUNCHES,
  'Proposals of assistants': PROPOSALS,
  'Links and errors for developers': { ...LINKS, ...LINK_ERRORS },
  'Commands for developers': COMMANDS,
  'Sign-in at this server': OWN_SIGN_IN,
  'Sign-in with a provider': PROVIDER_SIGN_IN,
  'Logout tokens of providers': LOGOUT_TOKENS,
  Administration: ADMINISTRATION,
  'App server: launches': LAUNCH_REASONS,
  'App server: session API': API_REASONS,
} as const
