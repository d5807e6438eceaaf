/**
 * The causes of refusals in audit records of earlier releases, and of FHIR servers that use the library, which have a
 * sentence and no reason. The table is closed: it gets no row for a new sentence, because new records name their reason
 * (`reasons.ts`).
 */
import type { FhirReason } from '../../fhir/index.ts'
import { type ExplainedReason, explainWords } from './explanation.ts'
import type { ComparedValue, Words } from './reason.ts'
import { type AnyReason, getWords } from './reasons.ts'

type Compared = readonly ComparedValue[]

/** The words in which a row differs from its reason. Old records and counts have no values of the request. */
type Differing = Partial<Words> | ((compared: Compared) => Partial<Words>)

/**
 * The reason that the sentence and, in parentheses, its detail would have now. The groups of the pattern are its facts.
 * The first that matches counts.
 */
type Row = readonly [pattern: RegExp, reason: AnyReason | Words, differing?: Differing]

/** Explains a record without a reason. */
export function explainOldText(
  kind: string,
  sentence: string,
  compared: Compared,
): ExplainedReason | undefined {
  for (const [pattern, reason, differing] of kind === 'fhir' ? FHIR_CAUSES : OAUTH_CAUSES) {
    const facts = pattern.exec(sentence)
    if (!facts) continue
    const words = {
      ...(typeof reason === 'string' ? getWords(reason) : reason),
      ...(typeof differing === 'function' ? differing(compared) : differing),
    }
    return explainWords(words, { facts: { ...facts.groups }, compared })
  }
  return undefined
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

function quoteSent(name: string, compared: Compared): string {
  const sent = compared.find(one => one.name === name)?.sent
  return sent === undefined ? '' : ` ${sent}`
}

function suggestId(compared: Compared): string {
  const [meant] = compared.find(one => one.name === 'client_id')?.expected ?? []
  return meant === undefined ? '' : ` Did you mean ${meant}?`
}

/** The value to send instead, in parentheses. */
function quoteExpected(name: string, compared: Compared): string {
  const [first] = compared.find(one => one.name === name)?.expected ?? []
  return first === undefined ? '' : ` (${first})`
}

const FHIR_CAUSES: readonly Row[] = [
  [/Missing or non-Bearer/, 'no-bearer'],
  [/expired/, 'expired-token'],
  [/revoked/, 'token-revoked'],
  [/signature is wrong|kid is/, 'token-signature-wrong'],
  [/aud is/, 'token-aud-wrong'],
  [/iss is/, 'token-iss-wrong'],
  [/typ is/, 'token-typ-wrong'],
  [/not a JWT/, 'token-not-a-jwt'],
  [
    /Cannot find this resource type/,
    {
      sentence: 'FHIR R4 has no resource type of this name.',
      remedy:
        'Correct the name in the URL. It is in the singular, with upper-case letters as in “AllergyIntolerance”.',
    },
  ],
  [
    /empty segment/,
    {
      sentence: 'The URL has two slashes in a row, or one at its end.',
      remedy: 'Join the FHIR base URL and the path with one slash.',
    },
  ],
  [/body of _search is/, 'search-body-not-a-form'],
  [
    /^(?=.*Cannot (?:read|accept|do|search|process|find))(?<sentence>.*?)(?:\.? \([^()]*\))?$/s,
    'url-unknown',
    { cause: 'The FHIR server does not understand the request: {sentence}.' },
  ],
  [/no key set|unreachable/, 'no-keys'],
]

const OAUTH_CAUSES: readonly Row[] = [
  [
    /^(?<parameter>\w+): expected one of(?:.*?(?= Did you mean \S+\?))?(?<suggestion>(?: Did you mean \S+\?)?)/s,
    'link-parameter-invalid',
  ],
  [/No encounter was chosen/, 'launch-encounter-missing'],
  [/No patient selected|patient: expected the id/, 'launch-patient-missing'],
  [/cannot be launched|has no launch URL/, 'launch-app-unknown'],
  [/Patient not found|patient does not exist/, 'launch-patient-unknown'],
  [/Encounter not found|encounter does not exist/, 'launch-encounter-unknown'],
  [/username is unknown/, 'launch-user-unknown'],
  [/the auth server refused/, 'auth-server-refused'],
  [/redirect_uri is not registered/, 'redirect-uri-not-registered'],
  [/names no client|client_id is missing/, 'client-not-named'],
  [
    /app is not registered|client is not registered\)/,
    'app-not-registered',
    compared => ({
      cause: `No app is registered with the client_id${quoteSent('client_id', compared)}, or an administrator disabled the app.${suggestId(compared)}`,
    }),
  ],
  [/no longer registered/, 'app-no-longer-registered'],
  [
    /aud is missing|aud is not/,
    'aud-missing',
    compared => ({
      cause: 'The request does not name the FHIR server that the token is for, or it names another one.',
      remedy: `Send “aud” with the FHIR base URL${quoteExpected('aud', compared)}, which an EHR launch passes as “iss”.`,
    }),
  ],
  [/code_challenge/, 'code-challenge-method-unsupported'],
  [/launch has expired/, 'launch-expired'],
  [/launch was already used/, 'launch-used'],
  [
    /launch is not known/,
    'launch-of-another-app',
    {
      cause:
        'The value of “launch” is not from this server, or the launch is for another app or another user.',
    },
  ],
  [/needs the scope launch/, 'launch-without-scope'],
  [/no patient in this launch/, 'scope-without-patient'],
  [
    /This client may request .* only/,
    'program-scope-differs',
    { remedy: 'Request the scope that the reason names, or register a program with the other one.' },
  ],
  [
    /None of the scopes|exceeds the granted/,
    {
      sentence: 'None of the requested scopes can be granted, or a refresh requests more than was granted.',
      remedy:
        'Compare the requested scopes with those that the app is registered for or was granted. Request fewer, or register the app for more and launch it again.',
    },
  ],
  [/redirect_uri is not that of the request/, 'code-redirect-uri-differs'],
  [/code_verifier is missing/, 'code-verifier-missing'],
  [/code_verifier/, 'code-verifier-wrong'],
  [/code is not valid.*expired/, 'code-expired'],
  [/code is not valid.*used before/, 'code-used'],
  [/code is not valid.*has ended/, 'code-grant-ended'],
  [/code is not valid/, 'code-unknown'],
  [/refresh token is not valid.*used before/, 'refresh-token-used'],
  [/refresh token is not valid/, 'refresh-token-unknown'],
  [/secret is missing or wrong/, 'client-secret-wrong'],
  [/public client/, 'public-client-sent-secret'],
  [/must use private_key_jwt|with private_key_jwt/, 'client-credentials-not-allowed'],
  [
    /client assertion was refused/,
    'assertion-malformed',
    { cause: 'The signed assertion of the app failed the check that the reason names.' },
  ],
  [/one authentication method|not a Basic header|different clients/, 'client-authentication-repeated'],
  [/grant_type/, 'grant-type-unsupported'],
  [
    /redirect_uri is missing/,
    'redirect-uri-missing',
    compared => ({
      remedy: `Send “redirect_uri” with one of the registered redirect URIs${quoteExpected('redirect_uri', compared)}, and the same one again in the token request.`,
    }),
  ],
  [/response_type/, 'response-type-unsupported', { cause: '' }],
  [/response_mode/, 'response-mode-unsupported', { cause: '' }],
  [/is repeated or unreadable|A parameter is repeated/, 'some-parameter-unreadable'],
  [/is longer than/, 'parameter-too-long', { cause: 'A parameter is longer than the server accepts.' }],
  [
    /prompt/,
    'prompt-unknown',
    { cause: 'The value of “prompt” is unknown, or “none” was sent together with another value.' },
  ],
  [/unmet_authentication_requirements/, 'sign-in-too-weak'],
  [/parameter claims/, 'claims-malformed'],
  [/max_age/, 'max-age-malformed'],
  [
    /id_token_hint/,
    'id-token-hint-not-ours',
    { cause: 'The “id_token_hint” is not an ID token that this server issued for this app.' },
  ],
  [/already been completed|already completed/, 'sign-in-ended'],
  [
    /must be application/,
    'body-not-form',
    {
      remedy:
        'Send the content type that the reason names. The token endpoint reads application/x-www-form-urlencoded, not JSON.',
    },
  ],
  [
    /client_assertion_type/,
    {
      sentence: 'The request has a client_assertion of an unknown type.',
      remedy: 'Send “client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer”.',
    },
  ],
  [/scope is missing/, 'system-scope-missing'],
  [
    /The scope[ ,]/,
    'scope-list-too-large',
    {
      cause:
        'The list of scopes is too long, either as sent or combined with the granular scopes that the app is registered for.',
    },
  ],
  [/no longer has access to this patient/, 'patient-access-lost'],
  [/system\/ scopes need the initial/, 'metadata-system-scopes-of-stranger'],
  [
    /The parameter \S+ is missing/,
    'parameter-missing',
    { cause: 'The request lacks a parameter, or its value is empty.' },
  ],
  [/another site/, 'link-of-another-site'],
  [
    /access_denied/,
    'consent-denied',
    { cause: 'The user did not allow the access, or did not choose a patient.' },
  ],
  [
    /login_required|consent_required|interaction_required/,
    'login-required',
    {
      cause: 'The app asked for a response without a page (prompt=none), but the user must act first.',
    },
  ],
  [
    /temporarily_unavailable|server_error/,
    {
      sentence: 'The server could not complete the request now.',
      remedy: 'Try again later. The log has the cause.',
    },
  ],
  [/bearer token of the caller/, 'introspection-token-refused'],
]
