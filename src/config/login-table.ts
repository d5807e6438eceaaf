import { loginProviders } from './providers/providers.ts'
import { defineDerived, defineFixed, none } from './setting-row.ts'
import * as types from './setting-types.ts'

/** Ends of the names of settings that described a provider without a list. */
const SINGLE_PROVIDER = [
  'issuer',
  'client-id',
  'client-secret',
  'name',
  'fhir-user',
  'allow',
  'admin',
  'users',
  'acr-values',
  'provision',
]

export const loginTable = {
  'login.passwords': defineFixed({
    name: 'smart.login.passwords',
    type: types.flag,
    initial: 'true',
    about:
      'Whether clinicians may sign in with a password of the clinician table. `false` needs a sign-in provider.',
  }),
  'login.secondFactor': defineFixed({
    name: 'smart.login.second-factor',
    type: types.oneOf('none', 'administrators', 'all'),
    initial: 'none',
    about:
      'Who needs a [second factor](how-to/second-factors.md) besides a password of this server or of a directory. `none`: users who added one themselves. `administrators`: also auditors.',
  }),
  minPasswordLength: defineDerived({
    name: 'smart.login.min-password-length',
    type: types.wholeNumber(8, 64),
    otherwise: '`15`; on loopback `8`',
    about:
      'Characters of a new password of this server. NIST SP 800-63B-4 requires 15 if a password alone signs users in, and 8 if everybody needs a second factor. Passwords that users have stay valid.',
    derive: ({ onLoopback }) => (onLoopback ? 8 : 15),
  }),
  activationLinkHours: defineFixed({
    name: 'smart.login.activation-link-hours',
    type: types.wholeNumber(1, 720),
    initial: '72',
    about:
      'How long an [activation link](how-to/administration.md#activation-links) works, with which a user chooses a password.',
  }),
  'login.providers': defineDerived({
    name: 'smart.login.providers',
    type: loginProviders,
    otherwise: 'none',
    about:
      'Sign-in providers of the hospital (OpenID Connect or LDAP), as a [list](how-to/sign-in.md#settings-of-a-provider). A variable or a file has it as JSON.',
    hasPassword: true,
    replaces: SINGLE_PROVIDER.map(name => `smart.login.${name}`),
    derive: none,
  }),
  'login.order': defineDerived({
    name: 'smart.login.order',
    type: types.signInMethods,
    otherwise: '`password`, then the providers as listed',
    about:
      'Order of the sign-in methods on the sign-in page: ids of providers, and `password` for the passwords of the clinician table. Methods that are not named follow in their usual order.',
    derive: none,
  }),
}
