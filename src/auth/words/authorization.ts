import type { OAuthWords, StatusWords } from './reason.ts'

const LAUNCH_AGAIN = 'Launch the app again.'
const ASK_AGAIN = 'Send the request again without prompt=none.'
const WITHOUT_PAGE = 'The app asked for a response without a page (prompt=none), but the user must'
const ONLY_CODE = 'The server answers an authorization request only with a code in the query.'
const SEND_CODE = 'Send “response_type=code”, and no “response_mode” or “response_mode=query”.'
const PKCE = 'PKCE protects the code on its way to the app.'
const SEND_CHALLENGE =
  'Send “code_challenge” (the base64url of the SHA-256 of a random code_verifier) and “code_challenge_method=S256”. An older app can be registered with PKCE optional.'
const SEND_AUD = 'Send “aud” with the FHIR base URL ({fhirBase}), which an EHR launch passes as “iss”.'
const SEND_ONCE = 'Send each parameter once. A library may add a parameter that your code adds as well.'
const SEND_PROMPT = 'Send “none”, or any of “login”, “consent” and “select_account”.'
const OFFER_AGAIN = 'The app should tell the user, and offer to start again.'
const FEWER_SCOPES = 'Request fewer scopes. One scope with * replaces many.'
const COMPARE_SCOPES =
  'Compare the requested scopes with those that the app is registered for. Request fewer, or register the app for more and launch it again.'
const KEEP_LAUNCH =
  'Send the value of the launch URL unchanged, with the client_id of the launched app, and sign in as the user who launched it.'
// One sentence for several reasons, so that a stolen launch does not reveal whose it is.
const LAUNCH_UNKNOWN = 'The launch is not known for this app and user.'

/** Authorization requests, and requests to sign out. */
export const AUTHORIZATION = {
  'parameter-unreadable': {
    error: 'invalid_request',
    sentence: 'The parameter {parameter} is repeated or unreadable.',
    cause: 'The parameter {parameter} was sent twice, or it contains a NUL character.',
    remedy: SEND_ONCE,
  },
  'some-parameter-unreadable': {
    error: 'invalid_request',
    sentence: 'A parameter is repeated or unreadable.',
    cause: 'A parameter was sent twice, or it contains a NUL character.',
    remedy: SEND_ONCE,
  },
  'parameter-too-long': {
    error: 'invalid_request',
    sentence: 'The parameter {parameter} is longer than {longest} characters.',
    cause: 'The parameter {parameter} is longer than the server accepts.',
    remedy: 'Shorten the parameter that the reason names. Keep a long state in the storage of the app.',
  },
  'request-object-unsupported': {
    error: 'request_not_supported',
    sentence: 'The parameter request is not supported.',
    cause: 'The app sends its request as a signed object, which this server does not read.',
    remedy: 'Send each parameter by itself, without “request”.',
  },
  'request-uri-unsupported': {
    error: 'request_uri_not_supported',
    sentence: 'The parameter request_uri is not supported.',
    cause: 'The app sends a URL of its request, which this server does not fetch.',
    remedy: 'Send each parameter by itself, without “request_uri”.',
  },
  'registration-unsupported': {
    error: 'registration_not_supported',
    sentence: 'The parameter registration is not supported.',
    cause: 'The app sends its registration with the authorization request.',
    remedy: 'Register the app before, and omit “registration”.',
  },
  'response-type-missing': {
    error: 'invalid_request',
    sentence: 'The parameter response_type is missing.',
    compares: 'response_type',
    cause: 'The request has no response_type.',
    note: ONLY_CODE,
    remedy: SEND_CODE,
  },
  'response-type-unsupported': {
    error: 'unsupported_response_type',
    sentence: 'Only the response_type code is supported.',
    compares: 'response_type',
    cause: 'The app sends another response_type than code.',
    note: ONLY_CODE,
    remedy: SEND_CODE,
  },
  'response-mode-unsupported': {
    error: 'invalid_request',
    sentence: 'Only the response_mode query is supported.',
    compares: 'response_mode',
    cause: 'The app sends another response_mode than query.',
    note: ONLY_CODE,
    remedy: SEND_CODE,
  },
  'code-challenge-missing': {
    error: 'invalid_request',
    sentence: 'The parameter code_challenge is missing: PKCE is required.',
    cause: 'The app does not use PKCE.',
    note: PKCE,
    remedy: SEND_CHALLENGE,
  },
  'code-challenge-method-unsupported': {
    error: 'invalid_request',
    sentence: 'The code_challenge_method must be S256.',
    compares: 'code_challenge_method',
    cause: 'The app does not use PKCE with S256.',
    note: PKCE,
    remedy: SEND_CHALLENGE,
  },
  'code-challenge-malformed': {
    error: 'invalid_request',
    sentence: 'The code_challenge is not the base64url of a SHA-256.',
    cause: 'The code_challenge does not have the 43 characters of a SHA-256 in base64url.',
    note: PKCE,
    remedy: SEND_CHALLENGE,
  },
  'aud-missing': {
    error: 'invalid_request',
    sentence: 'The parameter aud is missing.',
    compares: 'aud',
    cause: 'The request does not name the FHIR server that the token is for.',
    remedy: SEND_AUD,
  },
  'aud-of-another-server': {
    error: 'invalid_request',
    sentence: 'The aud is not the FHIR server of this authorization server.',
    compares: 'aud',
    cause: 'The request names another FHIR server.',
    remedy: SEND_AUD,
  },
  'resource-unknown': {
    error: 'invalid_target',
    sentence: 'This server issues no tokens for the resource.',
    compares: 'resource',
    cause: 'The request names another resource, or the endpoint of assistants, which is off.',
    remedy:
      'Send “resource” with the URL of the server that gets the token, as its metadata names it. For the FHIR server it is {fhirBase}, or omit “resource” and send “aud”.',
  },
  'agent-resource-missing': {
    error: 'invalid_target',
    sentence: 'An app without a registration gets tokens for the endpoint of assistants only.',
    compares: 'resource',
    cause: 'The app is described by a document, and asks for the FHIR server.',
    remedy: 'Send “resource={mcp}”, or register the app.',
  },
  'agents-off': {
    error: 'access_denied',
    sentence: 'Assistants are switched off.',
    cause: 'An administrator switched all assistants off.',
    remedy: 'Ask an administrator to switch them on again: “agents on”, or the page System.',
  },
  'client-host-not-allowed': {
    error: 'invalid_request',
    sentence: 'This server does not accept apps that {host} describes.',
    cause: 'The client_id is the URL of a document, and its host {host} is not in smart.agents.client-hosts.',
    remedy: 'Register the app, or add {host} to the setting smart.agents.client-hosts.',
  },
  'client-document-unavailable': {
    error: 'invalid_request',
    sentence: 'The document of the app cannot be fetched.',
    cause:
      'The client_id is the URL of a document that this server cannot fetch as JSON: at a public https address, without a redirect, in 3 seconds and 256 kB. The log has the reason.',
    remedy: 'Serve the document, or register the app.',
  },
  'client-document-invalid': {
    error: 'invalid_request',
    sentence: 'The document of the app is not valid. {fault}',
    cause: 'The document that the client_id names does not describe an app. {fault}',
    remedy: 'Correct the document: client_id (its URL), client_name and redirect_uris are needed.',
  },
  'client-documents-too-many': {
    error: 'temporarily_unavailable',
    sentence: 'The server is fetching the documents of too many other apps, or knows {most} unverified ones.',
    cause: 'Too many documents of apps are being fetched, or too many unverified apps are stored.',
    remedy: 'Try again. If it persists, remove unverified apps, or register the app.',
  },
  'client-id-missing': {
    error: 'invalid_request',
    sentence: 'The parameter client_id is missing.',
    cause: 'The request does not say which app it is from.',
    remedy: 'Send “client_id” with the id that the registration of the app returned.',
  },
  'app-not-registered': {
    error: 'invalid_request',
    sentence: 'The app is not registered.',
    cause:
      'No app is registered with the client_id {clientId}, or an administrator disabled the app.{suggestion}',
    remedy:
      'Use the client_id that the registration of the app returned, register the app, or ask an administrator to enable it.',
  },
  'redirect-uri-missing': {
    error: 'invalid_request',
    sentence: 'The parameter redirect_uri is missing.',
    cause: 'The request has no redirect_uri.',
    remedy:
      'Send “redirect_uri” with one of the registered redirect URIs ({registered}), and the same one again in the token request.',
  },
  'redirect-uri-not-registered': {
    error: 'invalid_request',
    sentence: 'The redirect_uri is not registered for the app.',
    compares: 'redirect_uri',
    cause: 'The app sends a redirect_uri that is not registered.',
    note: 'The server sends no code to an unregistered URL, so the browser stays on the error page.',
    remedy:
      'Register the URL that the app sends, or make the app send a registered one. Both must be the same, character by character.',
  },
  'prompt-unknown': {
    error: 'invalid_request',
    sentence: 'The prompt has an unknown value.',
    cause: 'The value of “prompt” is unknown.',
    remedy: SEND_PROMPT,
  },
  'prompt-none-with-others': {
    error: 'invalid_request',
    sentence: 'The prompt none must be the only value.',
    cause: 'The app sends “none” together with another value of “prompt”.',
    remedy: SEND_PROMPT,
  },
  'max-age-malformed': {
    error: 'invalid_request',
    sentence: 'The max_age must be a number of seconds.',
    cause: 'The value of “max_age” is not a number.',
    remedy: 'Send the seconds since the last sign-in, in digits.',
  },
  'claims-malformed': {
    error: 'invalid_request',
    sentence: 'The parameter claims is not a JSON object.',
    cause: 'The parameter “claims” could not be read.',
    remedy: 'Send “claims” as a JSON object, percent-encoded (OIDC Core, 5.5).',
  },
  'id-token-hint-not-ours': {
    error: 'invalid_request',
    sentence: 'The id_token_hint is not an id_token of this server.',
    cause: 'The “id_token_hint” is not an ID token that this server issued.',
    remedy: 'Send the ID token of the last token response unchanged, or omit the parameter.',
  },
  'id-token-hint-of-another-user': {
    error: 'login_required',
    sentence: 'The id_token_hint names another user than the one who is logged in.',
    cause: 'The “id_token_hint” is valid, but another user is signed in than the one whom it names.',
    remedy:
      'Ask for a new sign-in with “prompt=login”, so that the user can change the account, or omit “id_token_hint” if any user will do.',
  },
  'id-token-hint-of-another-app': {
    error: 'invalid_request',
    sentence: 'The id_token_hint belongs to another client.',
    cause: 'The “id_token_hint” is an ID token of another app than “client_id” names.',
    remedy: 'Send the ID token of this app, or omit “client_id”.',
  },
  'post-logout-uri-not-registered': {
    error: 'invalid_request',
    sentence: 'The post_logout_redirect_uri is not registered for the client.',
    cause:
      'The “post_logout_redirect_uri” is not registered for the app, or the request does not say which app it is from.',
    remedy:
      'Register the URL for the app (“post_logout_redirect_uris”), and send “id_token_hint” or “client_id”.',
  },
  'scope-list-too-large': {
    error: 'invalid_scope',
    sentence: 'The scope is invalid: {fault}.',
    cause: 'The list of scopes is too large: {fault}.',
    remedy: FEWER_SCOPES,
  },
  'scope-combinations-too-many': {
    error: 'invalid_scope',
    sentence: 'The scope combines with the registered granular scopes to more than {most} scopes.',
    cause:
      'The list of scopes is too long, combined with the granular scopes that the app is registered for.',
    remedy: FEWER_SCOPES,
  },
  'scope-combinations-too-large': {
    error: 'invalid_scope',
    sentence: 'The scope, combined with the registered granular scopes, is invalid: {fault}.',
    cause:
      'The list of scopes is too long, combined with the granular scopes that the app is registered for.',
    remedy: FEWER_SCOPES,
  },
  'scope-not-grantable': {
    error: 'invalid_scope',
    sentence: 'None of the scopes can be granted to this client.',
    cause: 'None of the requested scopes can be granted: the app is not registered for any of them.',
    remedy: COMPARE_SCOPES,
  },
  'scope-not-grantable-in-launch': {
    error: 'invalid_scope',
    sentence: 'None of the scopes can be granted.',
    cause:
      'None of the requested scopes can be granted in this launch: all of them need a patient or an encounter, and none was chosen, or the registration of the app was changed.',
    remedy: COMPARE_SCOPES,
  },
  'scope-without-patient': {
    error: 'invalid_scope',
    sentence:
      'There is no patient in this launch. Send the launch parameter that the app received, or request the scope launch/patient.',
    // A mistake of many apps: they lose the launch parameter, or start by themselves without asking for a patient.
    cause:
      'There is no patient in this launch, so no patient/ scope can be granted: the request has neither the launch parameter of an EHR launch nor the scope launch/patient.',
    remedy:
      'Send the value of “launch” that the app received at its launch URL. If the app starts by itself, request launch/patient, so that the user chooses a patient.',
  },
  'launch-without-scope': {
    error: 'invalid_request',
    sentence: 'The parameter launch needs the scope launch.',
    cause: 'The request has a launch, but does not request the scope “launch”.',
    remedy: 'Add “launch” to the requested scopes.',
  },
  'launch-unknown': {
    error: 'invalid_request',
    sentence: LAUNCH_UNKNOWN,
    detail: 'launch token unknown',
    cause: 'The value of “launch” is not from this server.',
    remedy: KEEP_LAUNCH,
  },
  'launch-of-another-app': {
    error: 'invalid_request',
    sentence: LAUNCH_UNKNOWN,
    detail: 'launch token other-client-or-user',
    compares: 'client_id',
    cause: 'The launch is for another app.',
    remedy: KEEP_LAUNCH,
  },
  'launch-of-another-user': {
    error: 'invalid_request',
    sentence: LAUNCH_UNKNOWN,
    detail: 'launch token other-client-or-user',
    cause: 'Another user launched the app than the one who is signed in.',
    remedy: 'Sign in as the user who launched the app, or launch the app again.',
  },
  'launch-expired': {
    error: 'invalid_request',
    sentence: 'The launch has expired. Launch the app again.',
    detail: 'launch token expired',
    cause: 'The launch is older than 5 minutes.',
    remedy: 'Launch the app again. The app must send its authorization request at once.',
  },
  'launch-used': {
    error: 'invalid_request',
    sentence: 'The launch was already used. Launch the app again.',
    detail: 'launch token used before',
    cause:
      'Each launch works once, and this one has been used. Reloading the launch URL of an app sends it again.',
    remedy: LAUNCH_AGAIN,
  },
  'app-no-longer-registered': {
    error: 'invalid_request',
    sentence: 'The app is no longer registered.',
    cause: 'The registration of the app was changed or removed during the sign-in.',
    remedy: LAUNCH_AGAIN,
  },
  'request-completed': {
    error: 'invalid_request',
    sentence: 'This request has already been completed.',
    cause: 'The form of the sign-in page was sent twice.',
    remedy: LAUNCH_AGAIN,
  },
  'too-many-waiting': {
    error: 'temporarily_unavailable',
    sentence: 'More than {most} requests from one network are waiting for a login.',
    cause: 'Too many requests from one network are waiting for a sign-in.',
    remedy: 'Try again in ten minutes, when the waiting requests have expired.',
  },
  'login-required': {
    error: 'login_required',
    sentence: 'The user must log in.',
    cause: `${WITHOUT_PAGE} sign in first.`,
    remedy: ASK_AGAIN,
  },
  'patient-choice-required': {
    error: 'interaction_required',
    sentence: 'The user must choose a patient.',
    cause: `${WITHOUT_PAGE} choose a patient first.`,
    remedy: ASK_AGAIN,
  },
  'consent-required': {
    error: 'consent_required',
    sentence: 'The user must give consent.',
    cause: `${WITHOUT_PAGE} allow the access first.`,
    remedy: ASK_AGAIN,
  },
  'sign-in-too-weak': {
    error: 'unmet_authentication_requirements',
    sentence: 'The sign-in of the user meets none of the required authentication context classes.',
    cause: 'The app requires a stronger sign-in (an essential “acr”) than the user has.',
    remedy:
      'Ask the user to add a second factor, or request one of “acr_values_supported” with the parameter “acr_values”, which is a preference and not a requirement.',
  },
  'account-opens-no-records': {
    error: 'access_denied',
    sentence: 'This account opens no patient records.',
    cause:
      'The user signed in with an account that opens no patient records, such as that of an administrator. The user was not asked for any access.',
    remedy: 'Sign in with the account of a clinician, a patient or a relative.',
  },
  'consent-denied': {
    error: 'access_denied',
    sentence: 'The user denied access.',
    cause: 'The user did not allow the access.',
    remedy: OFFER_AGAIN,
  },
  'nothing-approved': {
    error: 'access_denied',
    sentence: 'The user approved none of the scopes.',
    cause: 'The user allowed nothing that the app requested.',
    remedy: OFFER_AGAIN,
  },
  'patient-not-chosen': {
    error: 'access_denied',
    sentence: 'The user did not select a patient.',
    cause: 'The user did not choose a patient.',
    remedy: OFFER_AGAIN,
  },
} as const satisfies Readonly<Record<string, OAuthWords>>

/** Pages of an authorization request. */
export const AUTHORIZATION_PAGES = {
  'sign-in-ended': {
    status: 400,
    sentence: 'The sign-in was already completed, or it took longer than 10 minutes',
    cause: 'The form of the sign-in page was sent twice, or was open for more than 10 minutes.',
    remedy: LAUNCH_AGAIN,
  },
} as const satisfies Readonly<Record<string, StatusWords>>
