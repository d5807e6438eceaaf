import type { OAuthWords, StatusWords } from './reason.ts'

const ADVICE = {
  again: 'Sign in again.',
  later: 'Try again in a few minutes.',
  administrator: 'Ask your administrator, and give the reference below.',
} as const

/** Every way in which a sign-in with a provider ends without a login. The sentence is the title of the page. */
export const PROVIDER_SIGN_IN = {
  expired: {
    status: 400,
    sentence: 'This sign-in has ended',
    cause: 'It was already completed, it took longer than 10 minutes, or it was started in another browser.',
    remedy: ADVICE.again,
  },
  unreachable: {
    status: 503,
    sentence: 'The sign-in provider is not available',
    cause: 'Sallyport could not reach the server that checks your account.',
    remedy: ADVICE.later,
  },
  busy: {
    status: 503,
    sentence: 'Too many sign-ins are in progress',
    cause: 'More people than expected are signing in from your network.',
    remedy: ADVICE.later,
  },
  denied: {
    status: 403,
    sentence: 'You were not signed in',
    cause: 'The sign-in was cancelled, or the sign-in provider refused it.',
    remedy: ADVICE.again,
  },
  'bad-response': {
    status: 502,
    sentence: 'The sign-in could not be verified',
    cause: 'The response of the sign-in provider did not pass a security check.',
    remedy: `${ADVICE.again} If this happens again, ask your administrator, and give the reference below.`,
  },
  'bad-callback': {
    status: 400,
    sentence: 'The sign-in could not be verified',
    cause: 'A part of the URL of this page is missing, appears twice, or comes from another sign-in.',
    remedy: ADVICE.again,
  },
  'weak-authentication': {
    status: 403,
    sentence: 'A stronger sign-in is required',
    cause: 'A stronger way of signing in is required, such as a second factor, or a more recent sign-in.',
    remedy: ADVICE.again,
  },
  'not-allowed': {
    status: 403,
    sentence: 'Your account may not use Sallyport',
    cause:
      'You are signed in at your organization, but your account is not in a group that may use Sallyport.',
    remedy: ADVICE.administrator,
  },
  'too-many-groups': {
    status: 403,
    sentence: 'Your groups could not be read',
    cause: 'Your account is in so many groups that the sign-in provider does not list them.',
    remedy: ADVICE.administrator,
  },
  'unknown-subject': {
    status: 403,
    sentence: 'Your account is not known here',
    cause: 'You are signed in at your organization, but your account is not linked to a clinician.',
    remedy: ADVICE.administrator,
  },
  disabled: {
    status: 403,
    sentence: 'Your account is disabled',
    cause: 'An administrator disabled your clinician account.',
    remedy: ADVICE.administrator,
  },
  'username-taken': {
    status: 403,
    sentence: 'Your username is already in use here',
    cause: 'Another clinician has the username of your account. Accounts are never merged by name.',
    remedy: ADVICE.administrator,
  },
  'bad-claims': {
    status: 403,
    sentence: 'Your account is incomplete',
    cause: 'The sign-in provider did not send the details that identify you in the health record.',
    remedy: ADVICE.administrator,
  },
  'no-practitioner': {
    status: 403,
    sentence: 'You are not in the health record',
    cause: 'The FHIR server has no practitioner that matches your account.',
    remedy: ADVICE.administrator,
  },
  'several-practitioners': {
    status: 403,
    sentence: 'Your account matches several practitioners',
    cause: 'The FHIR server has more than one practitioner that matches your account.',
    remedy: ADVICE.administrator,
  },
  'no-patient': {
    status: 403,
    sentence: 'You are not in the health record',
    cause: 'The FHIR server has no patient that matches your account.',
    remedy: ADVICE.administrator,
  },
  'several-patients': {
    status: 403,
    sentence: 'Your account matches several patients',
    cause: 'The FHIR server has more than one patient that matches your account.',
    remedy: ADVICE.administrator,
  },
  'other-users': {
    status: 403,
    sentence: 'This sign-in is for other users',
    cause: 'Patients and clinicians sign in with different providers.',
    remedy: 'Choose another way to sign in.',
  },
  'fhir-unavailable': {
    status: 503,
    sentence: 'The health record is not available',
    cause: 'Sallyport could not check your account, because the FHIR server did not respond.',
    remedy: ADVICE.later,
  },
} as const satisfies Readonly<Record<string, StatusWords>>

const WAIT = 'Wait a few minutes, and try again.'

/** Sign-ins and proofs that this server checks itself. */
export const OWN_SIGN_IN = {
  'password-wrong': {
    status: 401,
    sentence: 'Wrong username or password',
    cause: 'No account has this username and this password, or an administrator disabled it.',
    remedy: 'Check both, and sign in again. An administrator can set a new password.',
  },
  'password-too-many': {
    status: 429,
    sentence: 'Too many failed attempts',
    cause: 'Somebody entered too many wrong passwords for this username, or from this network.',
    remedy: WAIT,
  },
  'account-locked': {
    status: 401,
    sentence: 'The account is locked after too many wrong passwords',
    cause:
      'After many wrong passwords, the user can sign in only in a browser or network where they have signed in before.',
    remedy: 'An administrator can unlock the account, or set a new password.',
  },
  'factor-wrong': {
    status: 401,
    sentence: 'Wrong second factor',
    cause: 'The password was right, but the code, the recovery code or the passkey was not.',
    remedy: 'Check the clock of the phone, and enter the current code, or use a recovery code.',
  },
  'factor-wrong-again': {
    status: 429,
    sentence: 'Wrong second factor',
    cause: 'The password was right, but the second factor was wrong again, after too many attempts.',
    remedy: WAIT,
  },
  'factor-too-many': {
    status: 429,
    sentence: 'Too many failed attempts',
    cause: 'Too many wrong codes were entered for this account.',
    remedy: WAIT,
  },
  'factor-too-many-today': {
    status: 429,
    sentence: 'Too many wrong codes in 24 hours',
    cause: 'Too many wrong codes were entered for this account within a day.',
    remedy: 'Use a passkey or a recovery code, or ask an administrator to remove the second factor.',
  },
  'passkey-wrong': {
    status: 401,
    sentence: 'The passkey could not be verified',
    cause: 'The passkey is unknown here, was removed, or its page was open for too long.',
    remedy: 'Try again, or sign in with the password.',
  },
  'activation-link-ended': {
    status: 400,
    sentence: 'Activation link refused: {why}',
    cause: 'The activation link is unknown, has expired, or was used before.',
    remedy: 'Ask an administrator for a new link.',
  },
  'activation-links-too-many': {
    status: 429,
    sentence: 'Too many activation links',
    cause: 'Too many activation links that do not work were tried from this network.',
    remedy: WAIT,
  },
  'current-password-wrong': {
    status: 401,
    sentence: 'The current password is incorrect.',
    cause: 'A user who is signed in entered a wrong current password to change it.',
    remedy: 'Enter the password of the last sign-in, or ask an administrator for a new one.',
  },
} as const satisfies Readonly<Record<string, StatusWords>>

const CHECK_PROVIDER = 'Check the settings of the provider, and the client at the provider.'

/** Logout tokens of providers (OIDC Back-Channel Logout, 2.6). */
export const LOGOUT_TOKENS = {
  'logout-token-issuer-unknown': describeLogoutToken('The logout_token has no known issuer'),
  'logout-token-keys-unreachable': {
    error: 'temporarily_unavailable',
    sentence: 'The keys of the provider could not be fetched',
    cause: 'The server could not fetch the keys of the provider, so it could not verify the logout token.',
    remedy: 'Check that the provider can be reached. It sends the token again.',
  },
  'logout-token-signature-invalid': describeLogoutToken('The signature of the logout_token is invalid'),
  'logout-token-of-another-audience': describeLogoutToken('The logout_token has another audience'),
  'logout-token-iat-wrong': describeLogoutToken('The logout_token has no iat, or one in the future'),
  'logout-token-expired': describeLogoutToken('The logout_token has expired'),
  'logout-token-without-jti': describeLogoutToken('The logout_token has no jti'),
  'logout-token-without-event': describeLogoutToken('The logout_token has no logout event'),
  'logout-token-with-nonce': describeLogoutToken('The logout_token has a nonce, like an id_token'),
  'logout-token-without-subject': describeLogoutToken('The logout_token has neither sub nor sid'),
  'logout-token-used': describeLogoutToken('The logout_token was used before'),
} as const satisfies Readonly<Record<string, OAuthWords>>

function describeLogoutToken<const Sentence extends string>(sentence: Sentence) {
  return {
    error: 'invalid_request',
    sentence,
    cause: `A provider asked to end a sign-in, but its token was refused: ${sentence}.`,
    remedy: CHECK_PROVIDER,
  } as const
}
