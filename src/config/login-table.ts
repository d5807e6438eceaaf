import { claimRule, fhirUserRule } from './providers/fields.ts'
import { loginProviders } from './providers/providers.ts'
import { defineDerived, defineFixed, defineOpen, none } from './setting-row.ts'
import * as types from './setting-types.ts'

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
      'Sign-in providers of the hospital (OpenID Connect or LDAP), as a [list](how-to/sign-in.md#settings-of-a-provider).',
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
  'login.single.issuer': defineOpen({
    name: 'smart.login.issuer',
    type: types.issuer,
    otherwise: 'none',
    about: 'Issuer of a single OpenID Connect provider, which needs no list. Its id is `default`.',
  }),
  'login.single.clientId': defineOpen({
    name: 'smart.login.client-id',
    type: types.clientId,
    otherwise: 'none',
    about: 'Client id of this server at the single provider.',
  }),
  'login.single.clientSecret': defineOpen({
    name: 'smart.login.client-secret',
    type: types.headerText,
    otherwise: 'none: a public client',
    about: 'Client secret of this server at the single provider.',
    secret: true,
  }),
  'login.single.name': defineOpen({
    name: 'smart.login.name',
    type: types.headerText,
    otherwise: '`Single sign-on`',
    about: 'Name of the single provider on the sign-in page.',
  }),
  'login.single.fhirUser': defineOpen({
    name: 'smart.login.fhir-user',
    type: fhirUserRule,
    otherwise: '`fhirUser`',
    about:
      "How the Practitioner of a user follows from the claims of the single provider: a claim's name, a template if it has `{` and no `?`, a search if it has `?`.",
  }),
  'login.single.allow': defineOpen({
    name: 'smart.login.allow',
    type: claimRule,
    otherwise: 'every user of the provider',
    about: 'Users of the single provider who may sign in: one of the values must be in the claim.',
  }),
  'login.single.admin': defineOpen({
    name: 'smart.login.admin',
    type: claimRule,
    otherwise: 'none',
    about: 'Users of the single provider who are administrators: one of the values must be in the claim.',
  }),
  'login.single.users': defineFixed({
    name: 'smart.login.users',
    type: types.oneOf('clinicians', 'patients'),
    initial: 'clinicians',
    about:
      'Whom the single provider signs in: `clinicians`, or `patients` with related persons, which needs `smart.login.acr-values`.',
  }),
  'login.single.acrValues': defineDerived({
    name: 'smart.login.acr-values',
    type: types.acrValues,
    otherwise: 'none',
    derive: none,
    about:
      'Accepted authentication classes (`acr`) of the single provider. If empty, every class is accepted.',
  }),
  'login.single.provision': defineFixed({
    name: 'smart.login.provision',
    type: types.flag,
    initial: 'false',
    about:
      'Whether an unknown user of the single provider gets an account. Otherwise only users that were linked (`clinician link`) may sign in.',
  }),
}
