import type { OAuthWords, StatusWords } from './reason.ts'

// One sentence for several reasons, so that it does not reveal which clients exist.
const NOT_AUTHENTICATED = 'The client is unknown or could not be authenticated.'
const AMBIGUOUS = 'The client authentication is ambiguous or malformed.'
const ONE_WAY = 'Authenticate in one way only: the Authorization header, the form, or an assertion.'
const REGISTER_AGAIN =
  'Correct the member of the registration that the reason names, and register the app again.'

export const CLIENT_AUTHENTICATION = {
  'client-not-named': {
    error: 'invalid_client',
    sentence: 'The request names no client.',
    cause: 'The request does not say which app it is from.',
    remedy:
      'Send “client_id”: a public app in the form, an app with a secret in the form or in the Authorization header (Basic).',
  },
  'client-not-registered': {
    error: 'invalid_client',
    sentence: NOT_AUTHENTICATED,
    detail: 'the client is not registered',
    cause:
      'No app is registered with the client_id {clientId}, or an administrator disabled the app.{suggestion}',
    remedy:
      'Use the client_id that the registration of the app returned, register the app, or ask an administrator to enable it.',
  },
  'client-of-refresh-token-unknown': {
    error: 'invalid_client',
    sentence: NOT_AUTHENTICATED,
    detail: 'the client is not registered',
    cause:
      'The request names no client, and the refresh token is unknown, so that it does not say which app it is from.',
    remedy: 'Send “client_id”, and the refresh token of the last response. Otherwise launch the app again.',
  },
  'client-unusable': {
    error: 'invalid_client',
    sentence: NOT_AUTHENTICATED,
    detail: 'the client is disabled or cannot be used here',
    cause: 'An administrator disabled the app, or it cannot be used on this server.',
    remedy: 'Ask an administrator to enable the app.',
  },
  'public-client-sent-secret': {
    error: 'invalid_client',
    sentence: NOT_AUTHENTICATED,
    detail: 'a public client sent a secret',
    cause: 'The app is registered as a public client, which has no secret.',
    remedy: 'Send only the client_id, or register the app as a confidential client.',
  },
  'client-secret-wrong': {
    error: 'invalid_client',
    sentence: NOT_AUTHENTICATED,
    detail: 'the secret is missing or wrong',
    cause: 'The app is registered with a secret, and the request has none or a wrong one.',
    remedy: 'Send the secret once, in the Authorization header (Basic) or in the form.',
  },
  'client-assertion-missing': {
    error: 'invalid_client',
    sentence: NOT_AUTHENTICATED,
    detail: 'the client must use private_key_jwt',
    cause:
      'The app is registered with its public keys, but the request has no signed assertion (private_key_jwt).',
    remedy: 'Send a client_assertion, or register the app with a secret.',
  },
  'client-assertion-type-unknown': {
    error: 'invalid_request',
    sentence: 'The client_assertion_type must be {type}.',
    cause: 'The request has a client_assertion of an unknown type, or a type without an assertion.',
    remedy: 'Send “client_assertion_type={type}” and “client_assertion”.',
  },
  'client-authentication-repeated': {
    error: 'invalid_request',
    sentence: 'The client must use one authentication method only.',
    cause: AMBIGUOUS,
    remedy: ONE_WAY,
  },
  'basic-header-malformed': {
    error: 'invalid_client',
    sentence: 'The Authorization header is not a Basic header with id and secret.',
    cause:
      'The Authorization header is not “Basic” with the base64 of the client_id, a colon and the secret.',
    remedy: ONE_WAY,
  },
  'clients-differ': {
    error: 'invalid_request',
    sentence: 'The client_id and the Authorization header name different clients.',
    cause: AMBIGUOUS,
    remedy: ONE_WAY,
  },
  'public-client-not-authenticated': {
    error: 'invalid_client',
    sentence: 'A public client cannot be authenticated.',
    cause:
      'The app is registered as a public client, which cannot prove who it is, so it may not introspect.',
    remedy: 'Register the app as a confidential client, or send an access token with a system/ read scope.',
  },
  'assertion-malformed': describeAssertion('it is not a JWT of at most {longest} characters'),
  'assertion-parties-differ': describeAssertion('iss and sub are not both the client_id'),
  'assertion-of-another-client': describeAssertion('iss is not the client_id of the request'),
  'assertion-not-registered': describeAssertion('the client is not registered for private_key_jwt'),
  'assertion-aud-wrong': describeAssertion('aud is not this server'),
  'assertion-exp-missing': describeAssertion('exp is missing'),
  'assertion-expired': describeAssertion('exp is in the past'),
  'assertion-too-long-valid': describeAssertion('exp is more than five minutes ahead'),
  'assertion-from-the-future': describeAssertion('nbf or iat is in the future'),
  'assertion-jti-malformed': describeAssertion('jti is missing or longer than 1024 characters'),
  'assertion-used': describeAssertion('jti was used before'),
  'assertion-alg-unsupported': describeAssertion('alg is neither RS384 nor ES384'),
  'assertion-kid-missing': describeAssertion('kid is missing'),
  'assertion-typ-wrong': describeAssertion('typ is not JWT'),
  'assertion-crit-unsupported': describeAssertion('crit is not supported'),
  'assertion-jku-not-registered': describeAssertion('jku is not the registered jwks_uri'),
  'assertion-key-unknown': describeAssertion('no key of the client has this kid and alg'),
  'assertion-key-ambiguous': describeAssertion('several keys of the client have this kid and alg'),
  'assertion-signature-wrong': describeAssertion('the signature does not match'),
  'assertion-keys-unavailable': describeAssertion('the key set of the client is not available'),
  'assertion-keys-too-many': describeAssertion(
    'the server is already fetching {most} key sets, try again later',
  ),
} as const satisfies Readonly<Record<string, OAuthWords>>

/** Client ids are not secret, and developers need the check to fix their client. */
function describeAssertion<const Check extends string>(check: Check) {
  return {
    error: 'invalid_client',
    sentence: `The client assertion was refused: ${check}.`,
    detail: check,
    cause: `The signed assertion of the app was refused: ${check}.`,
    remedy:
      'Sign a new assertion for each request, with a registered key: “iss” and “sub” are the client_id, “aud” is the token endpoint, “exp” is at most five minutes ahead, and “jti” is new.',
  } as const
}

/** Registrations of clients (RFC 7591). */
export const REGISTRATION = {
  'metadata-malformed': {
    error: 'invalid_client_metadata',
    sentence: 'The body must be a JSON object.',
    cause: 'The body of the registration is JSON, but not an object.',
    remedy: REGISTER_AGAIN,
  },
  'metadata-has-too-many-members': {
    error: 'invalid_client_metadata',
    sentence: 'The body has more than {most} members.',
    cause: 'The registration has more members than the server reads.',
    remedy: 'Leave out the members that this server does not know, and register the app again.',
  },
  'metadata-text-malformed': {
    error: 'invalid_client_metadata',
    sentence: 'The {member} must be a string of at most {longest} characters {form}.',
    cause: 'The {member} of the registration is not a text, is too long, or has control characters.',
    remedy: REGISTER_AGAIN,
  },
  'metadata-list-malformed': {
    error: 'invalid_client_metadata',
    sentence: 'The {member} must be a list of at most {most} strings.',
    cause: 'The {member} of the registration is not a list of texts, or is too long.',
    remedy: REGISTER_AGAIN,
  },
  'metadata-redirect-uris-malformed': {
    error: 'invalid_redirect_uri',
    sentence: 'The redirect_uris must be a list of at most {most} URLs.',
    cause: 'The redirect_uris of the registration are not a list of texts, or too many.',
    remedy: REGISTER_AGAIN,
  },
  'metadata-auth-method-unsupported': {
    error: 'invalid_client_metadata',
    sentence: 'The token_endpoint_auth_method is not supported.',
    cause: 'The app asks for a way to authenticate that this server does not know.',
    remedy:
      'Register the app with one of “token_endpoint_auth_methods_supported” of the SMART configuration, or none.',
  },
  'metadata-grant-type-unsupported': {
    error: 'invalid_client_metadata',
    sentence: 'A grant type is not supported.',
    cause: 'The app asks for a grant type that this server does not know.',
    remedy: 'Register the app with authorization_code, refresh_token or client_credentials.',
  },
  'metadata-response-type-unsupported': {
    error: 'invalid_client_metadata',
    sentence: 'The only response type is code.',
    cause: 'The app asks for another response type than code.',
    remedy: 'Register the app with the response type code, or without “response_types”.',
  },
  'metadata-credentials-need-keys': {
    error: 'invalid_client_metadata',
    sentence: 'The grant type client_credentials needs private_key_jwt.',
    cause:
      'A backend service authenticates with a signed assertion (private_key_jwt), and the app asks for another way.',
    remedy: 'Register the app with private_key_jwt and its public keys.',
  },
  'metadata-property-invalid': {
    error: 'invalid_client_metadata',
    sentence: '{faults}',
    cause: 'The registration breaks a rule: {faults}',
    remedy: REGISTER_AGAIN,
  },
  'metadata-redirect-uri-invalid': {
    error: 'invalid_redirect_uri',
    sentence: '{faults}',
    cause: 'The registration breaks a rule: {faults}',
    remedy: REGISTER_AGAIN,
  },
  'metadata-system-scopes-need-credentials': {
    error: 'invalid_client_metadata',
    sentence: 'The system/ scopes need the grant type client_credentials.',
    cause: 'The app asks for system/ scopes, which only a backend service can have.',
    remedy: 'Register the app with the grant type client_credentials, or without system/ scopes.',
  },
  'metadata-own-scopes': {
    error: 'invalid_client_metadata',
    sentence: 'Only an administrator can register scopes of this server itself.',
    cause: 'The app asks for a scope of the administration of this server.',
    remedy: 'Have an administrator register the app.',
  },
  'metadata-system-scopes-of-stranger': {
    error: 'invalid_client_metadata',
    sentence: 'The system/ scopes need the initial access token, or the command line.',
    cause: 'An app cannot register itself for system/ scopes.',
    remedy: 'Send the initial access token, or have an administrator register the app.',
  },
  'metadata-too-long': {
    error: 'invalid_client_metadata',
    sentence: 'The metadata is longer than {longest} characters.',
    cause: 'The registration is longer than an app without the initial access token may store.',
    remedy: 'Shorten the registration, or send the initial access token.',
  },
  'too-many-unapproved-clients': {
    error: 'access_denied',
    sentence: 'There are {most} unapproved clients: an administrator must approve or remove some first.',
    cause: 'Too many apps have registered themselves, and no administrator has approved them.',
    remedy: 'Ask an administrator to approve or remove apps, or send the initial access token.',
  },
} as const satisfies Readonly<Record<string, OAuthWords>>

/** Introspections by a resource server. */
export const INTROSPECTION = {
  'introspection-token-refused': {
    status: 401,
    sentence: 'The bearer token of the caller: {error}',
    cause: 'The caller may not introspect: its access token is not valid, or has no system/ scope.',
    remedy: 'Authenticate as a confidential client, or send an access token with a system/ read scope.',
  },
} as const satisfies Readonly<Record<string, StatusWords>>
