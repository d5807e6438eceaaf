/**
 * The causes of refusals in audit records of earlier releases, and of FHIR servers that use the library, which have a
 * sentence and no reason. The table is closed: it gets no row for a new sentence, because new records name their reason
 * (`reasons.ts`).
 */
import type { FhirReason } from '../../fhir/index.ts'
import { describeSent } from './explanation.ts'
import type { ComparedValue } from './reason.ts'

type Compared = readonly ComparedValue[]

/** A text, which may name the values of the request, or quote the sentence. Old records and counts have no values. */
type Text = string | ((compared: Compared, sentence: string) => string)

/** By the sentence and, in parentheses, its detail. The first that matches counts. */
type Row = readonly [pattern: RegExp, cause: Text, action: Text]

/** Explains a record without a reason. */
export function explainOldText(
  kind: string,
  sentence: string,
  compared: Compared,
): { readonly cause: string; readonly action: string } | undefined {
  const row = (kind === 'fhir' ? FHIR_CAUSES : OAUTH_CAUSES).find(([pattern]) => pattern.test(sentence))
  if (!row) return undefined
  const [, cause, action] = row
  const write = (text: Text) => (typeof text === 'string' ? text : text(compared, sentence))
  return { cause: write(cause), action: write(action) }
}

/** The reason of a refusal by scopes, in a record without a reason. */
export function nameOldRefusal(sentence: string | null): FhirReason {
  return OLD_REFUSALS.find(([pattern]) => pattern.test(sentence ?? ''))?.[1] ?? 'outside-access'
}

interface OldRecord {
  readonly reason: string | null
  readonly details: string | null
}

/** What an event is, by its details, or for a record of an earlier release by its text. */
export function nameEvent({ reason, details }: OldRecord): string | undefined {
  const { event } = parseDetails(details)
  return event ?? OLD_EVENTS.find(([start]) => reason?.startsWith(start))?.[1]
}

const OLD_EVENTS = [
  ['The app revoked the token', 'token-revoked'],
  ['Password changed', 'password-changed'],
] as const

function parseDetails(details: string | null): { readonly event?: string } {
  return details === null ? {} : JSON.parse(details)
}

/** The first that matches counts. */
const OLD_REFUSALS: readonly (readonly [pattern: RegExp, reason: FhirReason])[] = [
  [/this server accepts no \w+\/ scopes/i, 'insufficient-scope-of-context'],
  [/^Insufficient scope/, 'insufficient-scope'],
  [/search must name the patient/, 'search-not-limited'],
  [/content of the write/, 'content-not-within'],
  [/^Not within the granted patient, user or filter\. ./, 'resource-not-covered'],
]

/** Names a sent value and the expected one. */
function describe(name: string, compared: Compared, otherwise: string): string {
  return describeSent(name, compared) ?? otherwise
}

function quoteSent(name: string, compared: Compared): string {
  const sent = compared.find(one => one.name === name)?.sent
  return sent === undefined ? '' : ` ${sent}`
}

function suggestId(compared: Compared): string {
  const [meant] = compared.find(one => one.name === 'client_id')?.expected ?? []
  return meant === undefined ? '' : ` Did you mean ${meant}?`
}

/** The reason without its detail. */
function removeDetail(reason: string): string {
  return reason.replace(/\.? \([^()]*\)$/, '')
}

/** The value to send instead, in parentheses. */
function quoteExpected(name: string, compared: Compared): string {
  const [first] = compared.find(one => one.name === name)?.expected ?? []
  return first === undefined ? '' : ` (${first})`
}

const LAUNCH_AGAIN = 'Launch the app again.'

const FHIR_CAUSES: readonly Row[] = [
  [
    /Missing or non-Bearer/,
    'The request has no access token.',
    'Send the header “Authorization: Bearer” with the access token of the token response.',
  ],
  [
    /expired/,
    'The access token has expired.',
    'Refresh it at the token endpoint before its “expires_in” ends, or launch the app again.',
  ],
  [
    /revoked/,
    'The access has ended: the user signed out or removed it, the app revoked the token, or a code or refresh token was used twice.',
    LAUNCH_AGAIN,
  ],
  [
    /signature is wrong|kid is/,
    'The token is not signed with a key of the auth server. It was changed, cut off, or issued by another server.',
    'Send the access token of the token response unchanged. After the server has got new keys or a new database, launch the app again.',
  ],
  [
    /aud is/,
    'The token is for another FHIR server.',
    'Send it to the FHIR base URL of the launch (“iss”), or request a token with “aud” of this server.',
  ],
  [
    /iss is/,
    'Another auth server issued the token.',
    'Use the token endpoint that the SMART configuration of this FHIR server names.',
  ],
  [
    /typ is/,
    'It is another kind of token, probably the ID token.',
    'Send the value of “access_token” in the token response.',
  ],
  [
    /not a JWT/,
    'It is not an access token. It may be the refresh token, or “undefined” or “null” if the app has lost the access token.',
    'Send the value of “access_token” in the token response.',
  ],
  [
    /Cannot find this resource type/,
    'FHIR R4 has no resource type of this name.',
    'Correct the name in the URL. It is in the singular, with upper-case letters as in “AllergyIntolerance”.',
  ],
  [
    /empty segment/,
    'The URL has two slashes in a row, or one at its end.',
    'Join the FHIR base URL and the path with one slash.',
  ],
  [
    /body of _search is/,
    'A search by POST has its parameters in the body, as a form.',
    'Send “Content-Type: application/x-www-form-urlencoded”, or search by GET.',
  ],
  [
    /Cannot (?:read|accept|do|search|process|find)/,
    (_, reason) => `The FHIR server does not understand the request: ${removeDetail(reason)}.`,
    'Compare the method and the URL with the FHIR REST API: GET [base]/Observation/id, GET [base]/Observation?patient=id.',
  ],
  [
    /no key set|unreachable/,
    'The FHIR server could not reach the auth server, so it could not verify the token.',
    'Check that the auth server is running, and try again.',
  ],
]

const OAUTH_CAUSES: readonly Row[] = [
  [
    /^\w+: expected one of/,
    (_, reason) =>
      `The link that launches the app has an unknown parameter, or an unknown value of “${reason.split(':', 1)}”.${/ Did you mean \S+\?/.exec(reason)?.[0] ?? ''}`,
    'Use one of the names that the reason lists, or make a new link on the page that made this one.',
  ],
  [
    /No encounter was chosen/,
    'No encounter was chosen: the launch form had neither an encounter nor “No encounter”.',
    'Choose an encounter, or “No encounter”, and launch the app again.',
  ],
  [
    /No patient selected|patient: expected the id/,
    'No patient was chosen.',
    'Choose a patient, and launch the app again.',
  ],
  [
    /cannot be launched|has no launch URL/,
    'The app has no launch URL, is not registered, or an administrator disabled it.',
    'Set the launch URL in the registration of the app. An app without one starts by itself.',
  ],
  [
    /Patient not found|patient does not exist/,
    'The FHIR server has no such patient, or the user of the launch may not see the patient.',
    'Choose another patient, or another user.',
  ],
  [
    /Encounter not found|encounter does not exist/,
    'The FHIR server has no such encounter, or it belongs to another patient.',
    'Choose an encounter of this patient, or none.',
  ],
  [
    /username is unknown/,
    'No account has this username, or an administrator disabled it.',
    'Name a user who can sign in.',
  ],
  [
    /the auth server refused/,
    'The app got an error from the auth server, so it opened no session.',
    'Find the refused event of the auth server: its explanation names the cause.',
  ],
  [
    /redirect_uri is not registered/,
    compared =>
      `${describe('redirect_uri', compared, 'The app sends a redirect_uri that is not registered.')} The server sends no code to an unregistered URL, so the browser stays on the error page.`,
    'Register the URL that the app sends, or make the app send a registered one. Both must be the same, character by character.',
  ],
  [
    /names no client|client_id is missing/,
    'The request does not say which app it is from.',
    'Send “client_id”: a public app in the form, an app with a secret in the form or in the Authorization header (Basic).',
  ],
  [
    /app is not registered|client is not registered\)/,
    compared =>
      `No app is registered with the client_id${quoteSent('client_id', compared)}, or an administrator disabled the app.${suggestId(compared)}`,
    'Use the client_id that the registration of the app returned, register the app, or ask an administrator to enable it.',
  ],
  [
    /no longer registered/,
    'The registration of the app was changed or removed during the sign-in.',
    LAUNCH_AGAIN,
  ],
  [
    /aud is missing|aud is not/,
    compared =>
      describe(
        'aud',
        compared,
        'The request does not name the FHIR server that the token is for, or it names another one.',
      ),
    compared =>
      `Send “aud” with the FHIR base URL${quoteExpected('aud', compared)}, which an EHR launch passes as “iss”.`,
  ],
  [
    /code_challenge/,
    compared =>
      `${describe('code_challenge_method', compared, 'The app does not use PKCE with S256.')} PKCE protects the code on its way to the app.`,
    'Send “code_challenge” (the base64url of the SHA-256 of a random code_verifier) and “code_challenge_method=S256”. An older app can be registered with PKCE optional.',
  ],
  [
    /launch has expired/,
    'The launch is older than 5 minutes.',
    'Launch the app again. The app must send its authorization request at once.',
  ],
  [
    /launch was already used/,
    'Each launch works once, and this one has been used. Reloading the launch URL of an app sends it again.',
    LAUNCH_AGAIN,
  ],
  [
    /launch is not known/,
    compared =>
      describe(
        'client_id',
        compared,
        'The value of “launch” is not from this server, or the launch is for another app or another user.',
      ),
    'Send the value of the launch URL unchanged, with the client_id of the launched app, and sign in as the user who launched it.',
  ],
  [
    /needs the scope launch/,
    'The request has a launch, but does not request the scope “launch”.',
    'Add “launch” to the requested scopes.',
  ],
  [
    /no patient in this launch/,
    'There is no patient in this launch, so no patient/ scope can be granted: the request has neither the launch parameter of an EHR launch nor the scope launch/patient.',
    'Send the value of “launch” that the app received at its launch URL. If the app starts by itself, request launch/patient, so that the user chooses a patient.',
  ],
  [
    /This client may request .* only/,
    'A program of the administration API can request only the scope that it is registered for.',
    'Request the scope that the reason names, or register a program with the other one.',
  ],
  [
    /None of the scopes|exceeds the granted/,
    'None of the requested scopes can be granted, or a refresh requests more than was granted.',
    'Compare the requested scopes with those that the app is registered for or was granted. Request fewer, or register the app for more and launch it again.',
  ],
  [
    /redirect_uri is not that of the request/,
    compared =>
      describe(
        'redirect_uri',
        compared,
        'The redirect_uri of the token request differs from that of the authorization request.',
      ),
    'Send the same redirect_uri in both requests, character by character.',
  ],
  [
    /code_verifier is missing/,
    'The request has no code_verifier, but the authorization request had a code_challenge (PKCE).',
    'Keep the code_verifier of the launch until the token request, for example in the sessionStorage, and send it in the form.',
  ],
  [
    /code_verifier/,
    'The code_verifier does not belong to the code_challenge of the authorization request. The app has created a second pair, or lost the first one, or encoded it differently.',
    'Keep the code_verifier until the token request, one for each launch, and send it unchanged. The challenge is the base64url of its SHA-256, without “=”.',
  ],
  [
    /code is not valid.*expired/,
    'The code has expired. A code is valid for a minute.',
    'Exchange the code as soon as the browser returns to the app.',
  ],
  [
    /code is not valid.*used before/,
    'The code was used before. It may have been stolen, so all access of this launch has ended.',
    'Exchange each code once. A page that is reloaded must not send its code again. Then launch the app again.',
  ],
  [
    /code is not valid.*has ended/,
    'The access or the sign-in ended before the code was exchanged.',
    LAUNCH_AGAIN,
  ],
  [
    /code is not valid/,
    'The code is unknown, or another app got it.',
    'Send the code of this launch unchanged, with the client_id of the authorization request.',
  ],
  [
    /refresh token is not valid.*used before/,
    'The refresh token was used before. It may have been stolen, so all access of this launch has ended.',
    'Store the new refresh token of each response, and send one refresh at a time. Then launch the app again.',
  ],
  [
    /refresh token is not valid/,
    'The refresh token is unknown, has expired, or was revoked, or the sign-in has ended (“online_access”).',
    'Launch the app again. With “offline_access” the access outlives the sign-in.',
  ],
  [
    /secret is missing or wrong/,
    'The app is registered with a secret, and the request has none or a wrong one.',
    'Send the secret once, in the Authorization header (Basic) or in the form.',
  ],
  [
    /public client/,
    'The app is registered as a public client, which has no secret.',
    'Send only the client_id, or register the app as a confidential client.',
  ],
  [
    /must use private_key_jwt|with private_key_jwt/,
    'The request needs a client that authenticates with a signed assertion (private_key_jwt).',
    'Register the app with its public keys, and send a client_assertion.',
  ],
  [
    /client assertion was refused/,
    'The signed assertion of the app failed the check that the reason names.',
    'Sign a new assertion for each request, with a registered key: “iss” and “sub” are the client_id, “aud” is the token endpoint, “exp” is at most five minutes ahead, and “jti” is new.',
  ],
  [
    /one authentication method|not a Basic header|different clients/,
    'The client authentication is ambiguous or malformed.',
    'Authenticate in one way only: the Authorization header, the form, or an assertion.',
  ],
  [
    /grant_type/,
    'The token endpoint does not know this kind of request.',
    'Send grant_type authorization_code, refresh_token or client_credentials.',
  ],
  [
    /redirect_uri is missing/,
    'The request has no redirect_uri.',
    compared =>
      `Send “redirect_uri” with one of the registered redirect URIs${quoteExpected('redirect_uri', compared)}, and the same one again in the token request.`,
  ],
  [
    /response_type|response_mode/,
    compared =>
      `${describe('response_type', compared, describe('response_mode', compared, ''))} The server answers an authorization request only with a code in the query.`.trim(),
    'Send “response_type=code”, and no “response_mode” or “response_mode=query”.',
  ],
  [
    /is repeated or unreadable|A parameter is repeated/,
    'A parameter was sent twice, or it contains a NUL character.',
    'Send each parameter once. A library may add a parameter that your code adds as well.',
  ],
  [
    /is longer than/,
    'A parameter is longer than the server accepts.',
    'Shorten the parameter that the reason names. Keep a long state in the storage of the app.',
  ],
  [
    /prompt/,
    'The value of “prompt” is unknown, or “none” was sent together with another value.',
    'Send “none”, or any of “login”, “consent” and “select_account”.',
  ],
  [
    /unmet_authentication_requirements/,
    'The app requires a stronger sign-in (an essential “acr”) than the user has.',
    'Ask the user to add a second factor, or request one of “acr_values_supported” with the parameter “acr_values”, which is a preference and not a requirement.',
  ],
  [
    /parameter claims/,
    'The parameter “claims” could not be read.',
    'Send “claims” as a JSON object, percent-encoded (OIDC Core, 5.5).',
  ],
  [
    /max_age/,
    'The value of “max_age” is not a number.',
    'Send the seconds since the last sign-in, in digits.',
  ],
  [
    /id_token_hint/,
    'The “id_token_hint” is not an ID token that this server issued for this app.',
    'Send the ID token of the last token response unchanged, or omit the parameter.',
  ],
  [
    /already been completed|already completed/,
    'The form of the sign-in page was sent twice, or was open for more than 10 minutes.',
    LAUNCH_AGAIN,
  ],
  [
    /must be application/,
    'The endpoint does not support the content type of the body.',
    'Send the content type that the reason names. The token endpoint reads application/x-www-form-urlencoded, not JSON.',
  ],
  [
    /client_assertion_type/,
    'The request has a client_assertion of an unknown type.',
    'Send “client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer”.',
  ],
  [
    /scope is missing/,
    'A backend service must say which scopes it wants.',
    'Send “scope” with system/ scopes that the app is registered for.',
  ],
  [
    /The scope[ ,]/,
    'The list of scopes is too long, either as sent or combined with the granular scopes that the app is registered for.',
    'Request fewer scopes. One scope with * replaces many.',
  ],
  [
    /no longer has access to this patient/,
    'The user lost access to the patient after the launch.',
    'Launch the app for a patient whom the user may see.',
  ],
  [
    /system\/ scopes need the initial/,
    'An app cannot register itself for system/ scopes.',
    'Send the initial access token, or have an administrator register the app.',
  ],
  [
    /The parameter \S+ is missing/,
    'The request lacks a parameter, or its value is empty.',
    'Send the parameter that the reason names, in the form of the request, not in its URL.',
  ],
  [
    /another site/,
    'A page of another site opened the link, or the browser does not say which page did.',
    'Open the link from the page that made it, or from the address bar.',
  ],
  [
    /access_denied/,
    'The user did not allow the access, or did not choose a patient.',
    'The app should tell the user, and offer to start again.',
  ],
  [
    /login_required|consent_required|interaction_required/,
    'The app asked for a response without a page (prompt=none), but the user must act first.',
    'Send the request again without prompt=none.',
  ],
  [
    /temporarily_unavailable|server_error/,
    'The server could not complete the request now.',
    'Try again later. The log has the cause.',
  ],
  [
    /bearer token of the caller/,
    'The caller may not introspect: its access token is not valid, or has no system/ scope.',
    'Authenticate as a confidential client, or send an access token with a system/ read scope.',
  ],
]
