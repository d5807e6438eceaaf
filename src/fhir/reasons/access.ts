import { shareButHint } from './words.ts'

const SEND_ACCESS_TOKEN = 'Send the value of “access_token” in the token response.'
const SEND_UNCHANGED =
  'Send the access token of the token response unchanged. After the server has got new keys or a new database, launch the app again.'
const NOT_OURS =
  'The token is not signed with a key of the auth server. It was changed, cut off, or issued by another server.'
const CHECK_CLOCKS =
  'Check the clocks of the servers, and send the access token of the token response unchanged.'
const WRONG_HEADER =
  'The header of the token is not that of an access token of the auth server: its alg, kid or crit is wrong.'
const FEWER_SCOPES = 'Request fewer scopes. One scope with * replaces many.'
const TRY_AGAIN = 'Check that the auth server is running, and try again.'

const INVALID = {
  status: 401,
  code: 'login',
  sentence: 'The access token is not valid on this FHIR server.',
  challenge: 'Bearer error="invalid_token"',
} as const

/** Tokens that are not accepted. The response says why: the caller has the token, and everything that it is compared with is public. */
export const TOKENS = {
  'token-revoked': {
    ...INVALID,
    hint: 'The token is not accepted: it was revoked.',
    cause:
      'The access has ended: the user signed out or removed it, the app revoked the token, or a code or refresh token was used twice.',
    remedy: 'Launch the app again.',
  },
  'token-not-a-jwt': {
    ...INVALID,
    hint: 'The token is not accepted: it is not a JWT.',
    cause:
      'It is not an access token. It may be the refresh token, or “undefined” or “null” if the app has lost the access token.',
    remedy: SEND_ACCESS_TOKEN,
  },
  'token-too-long': {
    ...INVALID,
    hint: 'The token is not accepted: it is longer than {most} characters.',
    cause: 'The token is longer than any access token of the auth server.',
    remedy: SEND_ACCESS_TOKEN,
  },
  'token-alg-wrong': {
    ...INVALID,
    hint: 'The token is not accepted: alg is not {expected}.',
    cause: WRONG_HEADER,
    remedy: SEND_UNCHANGED,
  },
  'token-kid-missing': {
    ...INVALID,
    hint: 'The token is not accepted: kid is missing.',
    cause: WRONG_HEADER,
    remedy: SEND_UNCHANGED,
  },
  'token-crit-unsupported': {
    ...INVALID,
    hint: 'The token is not accepted: crit is not understood.',
    cause: WRONG_HEADER,
    remedy: SEND_UNCHANGED,
  },
  'token-typ-wrong': {
    ...INVALID,
    hint: 'The token is not accepted: typ is not {expected}.',
    cause: 'It is another kind of token, probably the ID token.',
    remedy: SEND_ACCESS_TOKEN,
  },
  'token-iss-wrong': {
    ...INVALID,
    hint: 'The token is not accepted: iss is not {expected}.',
    cause: 'Another auth server issued the token.',
    remedy: 'Use the token endpoint that the SMART configuration of this FHIR server names.',
  },
  'token-aud-wrong': {
    ...INVALID,
    hint: 'The token is not accepted: aud is not {expected}.',
    cause: 'The token is for another FHIR server.',
    remedy:
      'Send it to the FHIR base URL of the launch (“iss”), or request a token with “aud” of this server.',
  },
  'token-exp-missing': {
    ...INVALID,
    hint: 'The token is not accepted: exp is missing.',
    cause: 'The token has no end.',
    remedy: CHECK_CLOCKS,
  },
  'token-not-yet-valid': {
    ...INVALID,
    hint: 'The token is not accepted: nbf is to come.',
    cause: 'The token begins to be valid later.',
    remedy: CHECK_CLOCKS,
  },
  'token-key-unknown': {
    ...INVALID,
    hint: 'The token is not accepted: kid is not a key of the issuer.',
    cause: NOT_OURS,
    remedy: SEND_UNCHANGED,
  },
  'token-signature-wrong': {
    ...INVALID,
    hint: 'The token is not accepted: the signature is wrong.',
    cause: NOT_OURS,
    remedy: SEND_UNCHANGED,
  },
  'token-scopes-too-many': {
    ...INVALID,
    hint: 'The token is not accepted: it has more than {most} granular scopes.',
    cause: 'The token has more scopes than the FHIR server reads.',
    remedy: FEWER_SCOPES,
  },
  'token-parameters-too-many': {
    ...INVALID,
    hint: 'The token is not accepted: it has more than {most} search parameters in scopes that combine several.',
    cause: 'The token has more scopes than the FHIR server reads.',
    remedy: FEWER_SCOPES,
  },
} as const

const LIMIT_REQUEST = 'Limit the request to the patient of the token, or request scopes for more.'

const OUTSIDE = {
  status: 403,
  code: 'forbidden',
  sentence: 'Not within the granted patient, user or filter.',
  remedy: LIMIT_REQUEST,
} as const

/** A scope covers the type and the permission, but not the resources of the request. */
export const NOT_WITHIN = {
  'response-not-within': {
    ...OUTSIDE,
    cause: 'The response of the FHIR server had a resource that is not within the grant.',
  },
  ...shareButHint(OUTSIDE, {
    'not-the-patient': 'A patient/ scope covers only the patient of the token',
    'no-patient-claim': 'The token has no patient claim, so its patient/ scopes grant nothing',
    'no-user-claim': 'The token has no fhirUser claim, so its user/ scopes grant nothing',
    'shared-type-read-only': 'A patient/ scope can read {type}, which is shared, but never write it',
    'type-without-patient-scope': 'No patient/ scope covers {type}, or its filter cannot be evaluated',
    'resource-not-covered':
      'No granted scope covers this resource; a scope without a filter, or with a wider context, might',
    'policy-excludes-type':
      'The policy gives {user} no access to {type}, which may contain data of any patient',
    'policy-without-patients': 'The policy gives {user} no patients',
    'policy-of-other-patients': 'The policy gives {user} other patients',
    'operation-needs-whole-type': 'This operation needs a scope without a filter for {type}',
    'operation-needs-all-data': 'This operation needs access to all data, such as {scope}',
    'content-not-within': 'The content of the write is not within the grant',
    'stored-not-within': 'The stored resource is not within the grant',
    'provenance-without-patient':
      'A Provenance in X-Provenance needs the granted patient as one of its targets',
    'search-not-limited':
      'This server cannot limit the request to the grant: the search must name the patient of the token and every filter of the scope, and no other value of these parameters',
    'search-of-all':
      'This server cannot limit the request to the grant: a search of all data cannot be limited',
    'reverse-include-not-limited':
      'This server cannot limit the request to the grant: a reverse include may add resources outside the grant',
    'chain-not-limited':
      'This server cannot limit the request to the grant: a chain searches data outside the grant',
    'condition-not-limited':
      'This server cannot limit the request to the grant: a condition may match resources outside the grant',
    'reference-not-limited':
      'This server cannot limit the request to the grant: a conditional reference may match resources outside the grant',
    'patch-not-checked':
      'This server cannot limit the request to the grant: it cannot check the result of a patch',
    'validated-not-checked':
      'This server cannot limit the request to the grant: it cannot check the resource that is validated',
    'provenance-not-checked':
      'This server cannot limit the request to the grant: X-Provenance creates a resource that it cannot check',
    'stored-not-provided':
      'This server cannot limit the request to the grant: it does not provide the stored content',
    'body-not-read': 'This server cannot limit the request to the grant: the body was not read',
    'response-without-body':
      'This server cannot limit the request to the grant: a response without a body cannot be checked',
  }),
}

const INSUFFICIENT = {
  status: 403,
  code: 'forbidden',
  remedy:
    'Make the app request a scope that permits this, register the app for it, and launch the app again: a token keeps the scopes that it was issued with.',
  challenge: 'Bearer error="insufficient_scope", scope="{narrow}"',
} as const

/** No granted scope covers the type and the permission. */
export const INSUFFICIENT_SCOPE = {
  'insufficient-scope': {
    ...INSUFFICIENT,
    sentence: 'Insufficient scope for {method} on {type}. Required: {narrow} or {wide}',
    cause: 'No granted scope covers {method} on {type}.',
  },
  'insufficient-scope-of-context': {
    ...INSUFFICIENT,
    sentence: 'Insufficient scope for {method} on {type}. Required: {narrow} or {wide}',
    cause: 'No granted scope of a context that the FHIR server accepts covers {method} on {type}.',
    remedy:
      'Make the app request scopes of another context, or make the FHIR server accept these (“contexts” of the interceptor, or the setting smart.fhir.scope-contexts).',
  },
  'insufficient-scope-for-protected': {
    ...INSUFFICIENT,
    sentence: 'Insufficient scope for {method} on {type}. Required: {narrow}',
    hint: '{type} changes how the server works: only a system/ scope that names the type permits this',
  },
} as const

/** Requests that are refused before their content counts. */
export const REFUSALS = {
  'no-bearer': {
    status: 401,
    code: 'login',
    sentence: 'Missing or non-Bearer Authorization header. All FHIR requests need a SMART access token.',
    cause: 'The request has no access token.',
    remedy: 'Send the header “Authorization: Bearer” with the access token of the token response.',
    challenge: 'Bearer',
  },
  'expired-token': {
    status: 401,
    code: 'expired',
    sentence: 'The access token has expired.',
    remedy: 'Refresh it at the token endpoint before its “expires_in” ends, or launch the app again.',
    challenge: 'Bearer error="invalid_token"',
  },
  // 503 and not 401, which would make a client discard a valid token.
  'no-keys': {
    status: 503,
    code: 'transient',
    sentence: 'The access token cannot be verified yet: no key set.',
    cause: 'The FHIR server could not reach the auth server, so it could not verify the token.',
    remedy: TRY_AGAIN,
    retryAfter: '2',
  },
  'no-configuration': {
    status: 503,
    code: 'transient',
    sentence: 'The SMART configuration is not available yet: the auth server is unreachable.',
    cause: 'The FHIR server could not reach the auth server.',
    remedy: TRY_AGAIN,
    retryAfter: '2',
  },
  'no-trail': {
    status: 503,
    code: 'transient',
    sentence: 'The request cannot be recorded in the audit trail, so it was refused.',
    cause: 'Too many audit records of the FHIR server wait for the auth server.',
    remedy: TRY_AGAIN,
    retryAfter: '2',
  },
  broken: {
    status: 500,
    code: 'exception',
    sentence: 'The request could not be checked, so it was refused.',
    cause: 'The access check failed with an unexpected error.',
    remedy: 'The log of the FHIR server has the cause, under the reference of the request.',
  },
  ...INSUFFICIENT_SCOPE,
} as const
