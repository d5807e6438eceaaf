import type { OAuthWords } from './reason.ts'

const LAUNCH_AGAIN = 'Launch the app again.'
// One sentence for several reasons: a stolen code or token reveals nothing.
const CODE_INVALID = 'The code is not valid for this request.'
const REFRESH_TOKEN_INVALID = 'The refresh token is not valid.'

/** Requests to the token endpoint and its neighbours. */
export const TOKENS = {
  'body-not-form': {
    error: 'invalid_request',
    sentence: 'The body must be application/x-www-form-urlencoded.',
    cause: 'The endpoint does not support the content type of the body.',
    remedy: 'Send the parameters as a form (application/x-www-form-urlencoded), not as JSON.',
  },
  'body-not-json': {
    error: 'invalid_request',
    sentence: 'The body must be application/json.',
    cause: 'The endpoint does not support the content type of the body.',
    remedy: 'Send “Content-Type: application/json”.',
  },
  'parameter-missing': {
    error: 'invalid_request',
    sentence: 'The parameter {parameter} is missing.',
    cause: 'The request lacks the parameter {parameter}, or its value is empty.',
    remedy: 'Send the parameter that the reason names, in the form of the request, not in its URL.',
  },
  'token-redirect-uri-missing': {
    error: 'invalid_request',
    sentence: 'The parameter redirect_uri is missing.',
    cause: 'The request has no redirect_uri.',
    remedy: 'Send the redirect_uri of the authorization request: the same one again in the token request.',
  },
  'code-verifier-missing': {
    error: 'invalid_request',
    sentence: 'The parameter code_verifier is missing.',
    cause: 'The request has no code_verifier, but the authorization request had a code_challenge (PKCE).',
    remedy:
      'Keep the code_verifier of the launch until the token request, for example in the sessionStorage, and send it in the form.',
  },
  'grant-type-missing': {
    error: 'invalid_request',
    sentence: 'The parameter grant_type is missing.',
    cause: 'The request does not say what kind of request it is.',
    remedy: 'Send grant_type authorization_code, refresh_token or client_credentials.',
  },
  'grant-type-unsupported': {
    error: 'unsupported_grant_type',
    sentence: 'The grant_type is not supported.',
    cause: 'The token endpoint does not know this kind of request.',
    remedy: 'Send grant_type authorization_code, refresh_token or client_credentials.',
  },
  'code-unknown': {
    error: 'invalid_grant',
    sentence: CODE_INVALID,
    detail: 'it is unknown, or belongs to another client',
    cause: 'The code is unknown, or another app got it.',
    remedy: 'Send the code of this launch unchanged, with the client_id of the authorization request.',
  },
  'code-redirect-uri-differs': {
    error: 'invalid_grant',
    sentence: CODE_INVALID,
    detail: 'the redirect_uri is not that of the request',
    compares: 'redirect_uri',
    cause: 'The redirect_uri of the token request differs from that of the authorization request.',
    remedy: 'Send the same redirect_uri in both requests, character by character.',
  },
  'code-verifier-wrong': {
    error: 'invalid_grant',
    sentence: CODE_INVALID,
    detail: 'the code_verifier is wrong',
    cause:
      'The code_verifier does not belong to the code_challenge of the authorization request. The app has created a second pair, or lost the first one, or encoded it differently.',
    remedy:
      'Keep the code_verifier until the token request, one for each launch, and send it unchanged. The challenge is the base64url of its SHA-256, without “=”.',
  },
  'code-expired': {
    error: 'invalid_grant',
    sentence: CODE_INVALID,
    detail: 'it has expired',
    cause: 'The code has expired. A code is valid for a minute.',
    remedy: 'Exchange the code as soon as the browser returns to the app.',
  },
  'code-used': {
    error: 'invalid_grant',
    sentence: CODE_INVALID,
    detail: 'it was used before, so its grant is revoked',
    cause: 'The code was used before. It may have been stolen, so all access of this launch has ended.',
    remedy:
      'Exchange each code once. A page that is reloaded must not send its code again. Then launch the app again.',
  },
  'code-grant-ended': {
    error: 'invalid_grant',
    sentence: CODE_INVALID,
    detail: 'the grant or the login has ended',
    cause: 'The access or the sign-in ended before the code was exchanged.',
    remedy: LAUNCH_AGAIN,
  },
  'refresh-token-unknown': {
    error: 'invalid_grant',
    sentence: REFRESH_TOKEN_INVALID,
    detail: 'it is unknown, expired, revoked, or belongs to another client',
    cause:
      'The refresh token is unknown, has expired, or was revoked, or the sign-in has ended (“online_access”).',
    remedy: 'Launch the app again. With “offline_access” the access outlives the sign-in.',
  },
  'refresh-token-used': {
    error: 'invalid_grant',
    sentence: REFRESH_TOKEN_INVALID,
    detail: 'it was used before, so its grant is revoked',
    cause:
      'The refresh token was used before. It may have been stolen, so all access of this launch has ended.',
    remedy:
      'Store the new refresh token of each response, and send one refresh at a time. Then launch the app again.',
  },
  'resource-not-granted': {
    error: 'invalid_target',
    sentence: 'The resource is not that of the authorization.',
    compares: 'resource',
    cause: 'The token request names another resource than the authorization request.',
    remedy: 'Send the same “resource” in both requests, or omit it in the token request.',
  },
  'scope-exceeds-grant': {
    error: 'invalid_scope',
    sentence: 'The scope exceeds the granted scope.',
    cause: 'A refresh requests more than was granted.',
    remedy: 'Request the granted scopes or fewer, or omit “scope”. For more, launch the app again.',
  },
  'program-scope-differs': {
    error: 'invalid_scope',
    sentence: 'This client may request {scope} only.',
    cause: 'A program of the administration API can request only the scope that it is registered for.',
    remedy: 'Request {scope}, or register a program with the other scope.',
  },
  'client-credentials-not-allowed': {
    error: 'unauthorized_client',
    sentence: 'Only a client with private_key_jwt may use client_credentials.',
    cause: 'The request needs a client that authenticates with a signed assertion (private_key_jwt).',
    remedy: 'Register the app with its public keys, and send a client_assertion.',
  },
  'system-scope-missing': {
    error: 'invalid_scope',
    sentence: 'The parameter scope is missing.',
    cause: 'A backend service must say which scopes it wants.',
    remedy: 'Send “scope” with system/ scopes that the app is registered for.',
  },
  'fhir-server-unreachable': {
    error: 'temporarily_unavailable',
    sentence: 'The FHIR server is unreachable. Try again.',
    cause: 'The auth server could not ask the FHIR server which records the user may open.',
    remedy: 'Check that the FHIR server is running, and send the request again.',
  },
  'patient-access-lost': {
    error: 'invalid_grant',
    sentence: 'The user no longer has access to this patient.',
    cause: 'The user lost access to the patient after the launch.',
    remedy: 'Launch the app for a patient whom the user may see.',
  },
} as const satisfies Readonly<Record<string, OAuthWords>>

/** Tokens and launch links of the command line. */
export const COMMANDS = {
  'app-without-launch-url': {
    error: 'invalid_request',
    sentence: 'The app {client} has no launch URL: see client set --launch-url.',
    cause: 'The app has no launch URL, so that it can only start by itself.',
    remedy: 'Set the launch URL in the registration of the app.',
  },
  'launch-needs-patient': {
    error: 'invalid_request',
    sentence: 'A launch needs a patient.',
    cause: 'The command names no patient, and the user is not a patient.',
    remedy: 'Set --patient to the id of a Patient.',
  },
  'scope-needs-patient': {
    error: 'invalid_request',
    sentence: 'The scope {scope} needs a patient.',
    cause: 'The command names no patient, and no scope could be granted without one.',
    remedy: 'Set --patient to the id of a Patient.',
  },
  'command-app-unknown': {
    error: 'invalid_request',
    sentence: 'There is no app {client}, or the app is disabled: see client list.',
    cause: 'No app has this id, or an administrator disabled it.',
    remedy: 'Name a registered app.',
  },
  'command-user-unknown': {
    error: 'invalid_request',
    sentence: 'There is no user {username}, or the user is disabled or opens no records.',
    cause: 'No account has this username, or it cannot open records.',
    remedy: 'Name a user who can sign in and open records.',
  },
  'user-is-relative': {
    error: 'invalid_request',
    sentence: 'The user {username} is a related person, who must sign in.',
    cause: 'Only the FHIR server knows for whom a related person acts.',
    remedy: 'Launch the app in a browser, and sign in as this user.',
  },
  'user-sees-another-patient': {
    error: 'invalid_request',
    sentence: 'The user {username} may see only Patient/{patient}.',
    cause: 'A patient can see only the own record.',
    remedy: 'Name the patient of the user, or another user.',
  },
  'app-is-backend-service': {
    error: 'invalid_request',
    sentence: 'The app {client} is a backend service: it gets tokens by client credentials.',
    cause: 'A backend service acts without a user.',
    remedy: 'Request a token at the token endpoint, with grant_type client_credentials.',
  },
  'command-scope-not-grantable': {
    error: 'invalid_request',
    sentence: 'None of the scopes can be granted to {client}. The app is registered for: {registered}.',
    cause: 'The app is registered for none of the scopes.',
    remedy: 'Name scopes that the app is registered for, or register it for more.',
  },
} as const satisfies Readonly<Record<string, OAuthWords>>
