import type { StatusWords } from './reason.ts'

const SEND_ACCESS_TOKEN = 'Send the value of “access_token” in the token response.'
const SEND_UNCHANGED =
  'Send the access token of the token response unchanged. After the server has got new keys or a new database, launch the app again.'
const NOT_OURS =
  'The token is not signed with a key of the auth server. It was changed, cut off, or issued by another server.'
const TRY_AGAIN = 'Check that the auth server is running, and try again.'
const NOT_ACCEPTED = 'The token is not accepted'

/** Why the FHIR server did not accept a token, or could not decide. Decisions by scopes are explained by the scopes. */
export const FHIR_REASONS = {
  'no-bearer': {
    status: 401,
    sentence: 'Missing or non-Bearer Authorization header.',
    cause: 'The request has no access token.',
    remedy: 'Send the header “Authorization: Bearer” with the access token of the token response.',
  },
  'expired-token': {
    status: 401,
    sentence: 'The access token has expired.',
    cause: 'The access token has expired.',
    remedy: 'Refresh it at the token endpoint before its “expires_in” ends, or launch the app again.',
  },
  'token-revoked': {
    status: 401,
    sentence: NOT_ACCEPTED,
    cause:
      'The access has ended: the user signed out or removed it, the app revoked the token, or a code or refresh token was used twice.',
    remedy: 'Launch the app again.',
  },
  'token-not-a-jwt': {
    status: 401,
    sentence: NOT_ACCEPTED,
    cause:
      'It is not an access token. It may be the refresh token, or “undefined” or “null” if the app has lost the access token.',
    remedy: SEND_ACCESS_TOKEN,
  },
  'token-too-long': {
    status: 401,
    sentence: NOT_ACCEPTED,
    cause: 'The token is longer than any access token of the auth server.',
    remedy: SEND_ACCESS_TOKEN,
  },
  'token-header-wrong': {
    status: 401,
    sentence: NOT_ACCEPTED,
    cause:
      'The header of the token is not that of an access token of the auth server: its alg, kid or crit is wrong.',
    remedy: SEND_UNCHANGED,
  },
  'token-typ-wrong': {
    status: 401,
    sentence: NOT_ACCEPTED,
    cause: 'It is another kind of token, probably the ID token.',
    remedy: SEND_ACCESS_TOKEN,
  },
  'token-iss-wrong': {
    status: 401,
    sentence: NOT_ACCEPTED,
    cause: 'Another auth server issued the token.',
    remedy: 'Use the token endpoint that the SMART configuration of this FHIR server names.',
  },
  'token-aud-wrong': {
    status: 401,
    sentence: NOT_ACCEPTED,
    cause: 'The token is for another FHIR server.',
    remedy:
      'Send it to the FHIR base URL of the launch (“iss”), or request a token with “aud” of this server.',
  },
  'token-times-wrong': {
    status: 401,
    sentence: NOT_ACCEPTED,
    cause: 'The token has no end, or begins to be valid later.',
    remedy: 'Check the clocks of the servers, and send the access token of the token response unchanged.',
  },
  'token-key-unknown': { status: 401, sentence: NOT_ACCEPTED, cause: NOT_OURS, remedy: SEND_UNCHANGED },
  'token-signature-wrong': { status: 401, sentence: NOT_ACCEPTED, cause: NOT_OURS, remedy: SEND_UNCHANGED },
  'token-scopes-too-many': {
    status: 401,
    sentence: NOT_ACCEPTED,
    cause: 'The token has more scopes than the FHIR server reads.',
    remedy: 'Request fewer scopes. One scope with * replaces many.',
  },
  'no-keys': {
    status: 503,
    sentence: 'The access token cannot be verified yet: no key set.',
    cause: 'The FHIR server could not reach the auth server, so it could not verify the token.',
    remedy: TRY_AGAIN,
  },
  'no-configuration': {
    status: 503,
    sentence: 'The SMART configuration is not available yet: the auth server is unreachable.',
    cause: 'The FHIR server could not reach the auth server.',
    remedy: TRY_AGAIN,
  },
  'no-trail': {
    status: 503,
    sentence: 'The request cannot be recorded in the audit trail, so it was refused.',
    cause: 'Too many audit records of the FHIR server wait for the auth server.',
    remedy: TRY_AGAIN,
  },
  broken: {
    status: 500,
    sentence: 'The request could not be checked, so it was refused.',
    cause: 'The access check failed with an unexpected error.',
    remedy: 'The log of the FHIR server has the cause, under the reference of the request.',
  },
} as const satisfies Readonly<Record<string, StatusWords>>
