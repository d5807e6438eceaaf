/**
 * Why a value is not accepted: the end of a sentence that names the value, or a sentence. In all of them, `{name}` stands for
 * the fact of this name. The reason of the refusal has the remedy.
 */

import { joinTables } from '../../core/index.ts'
import type { ScopeListFault } from '../../smart/index.ts'

/** Of the properties of apps: on forms, on the command line, in the administration API and in registrations. */
const CLIENT_FAULTS = {
  'client-id-malformed': 'expected at most 200 printable characters without spaces',
  'client-id-reserved': 'it is reserved for the portal',
  'client-id-in-use': 'the id is taken',
  'name-missing': 'enter a name',
  'line-malformed': 'expected at most {longest} characters {form}',
  'contacts-too-many': 'expected at most {most} contacts',
  'urls-too-many': 'expected at most {most} URLs',
  'url-too-long': 'expected at most {longest} characters',
  'url-not-absolute': 'expected an absolute URL',
  'url-not-encoded': 'expected the characters of a URL, with all others percent-encoded',
  'url-host-not-plain': 'expected a plain host name or an IP address',
  'url-with-fragment': 'expected a URL without a fragment',
  'url-with-credentials': 'expected a URL without a user name and password',
  'url-not-of-a-page': 'expected an http or https URL',
  'url-not-https': 'expected an https URL',
  'redirect-uri-with-wildcard': 'expected a URL without *: redirect URIs are compared exactly',
  'redirect-uri-scheme': 'expected https, http on loopback, or a private-use scheme',
  'redirect-uri-missing': 'expected at least one, because not all scopes are system/ scopes',
  'redirect-uri-of-grant-missing': 'the grant type authorization_code needs one',
  'kind-missing': 'choose a kind of app',
  'keys-without-kind': 'only an app with keys has a key set: choose “With keys”, or clear the key set',
  'keys-url-not-https': 'expected https, or http on loopback',
  'keys-not-json': 'the key set is not valid JSON',
  'keys-private': 'it contains a private or secret key; use public keys only',
  'keys-malformed':
    'expected a JSON Web Key Set with a key for RS384 (RSA) or ES384 (EC, P-384), and its kid; at most {most} keys and {longest} characters',
  'keys-twice': 'expected either keys or the URL of keys, not both',
  'keys-missing': 'an app that signs needs keys, or the URL of its keys',
  'scopes-missing': 'expected at least one scope',
  'scope-malformed': 'expected for example patient/Condition.rs',
  'scope-misspelled': 'write {meant}',
  'scope-type-unknown': 'FHIR R4 has no resource type {type}',
  'scope-type-misspelled': 'FHIR R4 has no resource type {type}: write {meant}',
  'scope-needs-keys': 'an app with system/ scopes must sign: it needs keys, or the URL of its keys',
  'scope-of-administrators': 'only an administrator can register scopes of this server itself',
  'program-without-credentials': 'a client with {scope} needs a secret or keys',
  'program-with-redirect-uri': 'a client with {scope} has no redirect URI',
  'program-with-launch-url': 'a client with {scope} has no launch URL',
} as const

/** Of members of registrations, and of the administration API. */
const MEMBER_FAULTS = {
  'registered-member-invalid': 'The {member} is invalid: {fault}.',
  'member-not-known': 'there is no member {name}',
  'member-missing': 'the member {name} is missing',
  'member-invalid': 'the member {name} is not valid: {fault}',
  'value-invalid': '{value}: {fault}',
  'not-as-expected': '{expected}',
} as const

/** Of lists of scopes. */
const SCOPE_LIST_FAULTS = {
  'scope-list-too-long': 'it is longer than {most} characters',
  'scopes-too-many': 'it has more than {most} scopes',
  'scope-parameters-too-many': 'it has a scope with more than {most} search parameters',
  'scope-combined-too-many': 'it has more than {most} search parameters in scopes that combine several',
} as const satisfies Readonly<Record<ScopeListFault['reason'], string>>

/** Of the documents of apps without a registration. */
const DOCUMENT_FAULTS = {
  'document-not-an-object': 'It is not a JSON object.',
  'document-of-another-client': 'Its client_id is not its URL.',
  'document-without-name': 'It has no client_name.',
  'document-with-secret': 'It contains a client_secret.',
  'document-without-redirect-uri': 'It has no redirect URI that this server accepts.',
  'document-needs-secret': 'A client with a document has no secret: use none or private_key_jwt.',
  'document-property-invalid': 'The {property}: {fault}.',
} as const

/** Of new passwords. */
const PASSWORD_FAULTS = {
  'password-too-short': 'use at least {least} characters',
  'password-too-long': 'use a shorter password: leave out the last {surplus} of its {characters} characters',
  'password-with-nul': 'use no NUL character',
  'password-with-username': 'use a password without the username',
  'password-with-name': 'use a password without a word of the display name',
  'password-common': 'use another password, because many people use this one',
  'password-with-brand': 'use a password without the name of this service',
  'password-sequence': 'use a password that is not a sequence of characters',
} as const

/** Of second factors. */
const FACTOR_FAULTS = {
  'factor-gone': 'This second step was already removed.',
  'factor-required': 'Your organization requires two-step sign-in. Add another second step first.',
  'factors-too-many': 'An account has at most {most} second steps.',
  'factor-known': 'This {kind} was added before.',
  'passkey-not-verified': 'The passkey could not be verified. Try again.',
  'code-not-current': 'This is not the current code. Check that the clock of your phone is right.',
} as const

/** Of tokens that are introspected or sent to this server. */
const TOKEN_FAULTS = {
  'token-not-ours': 'it is not an access token that this server signed',
  'token-unknown': 'it is not an access token that this server signed, and it is not an active refresh token',
  'token-of-another-issuer': 'iss, expected {expected}',
  'token-for-another-audience': 'aud, expected {expected}',
  'token-incomplete': 'jti, client_id or scope, expected strings',
  'token-expired': 'exp, it has expired',
  'token-revoked': 'it was revoked',
  'token-without-client': 'its client was removed',
  'token-without-grant': 'its grant has ended',
  'token-of-another-client': 'client_id, the token belongs to another client',
} as const

/** Of launches, in the form of the portal and in the body of an EHR. */
const LAUNCH_FAULTS = {
  'body-not-an-object': 'The body must be a JSON object',
  'member-unknown': 'There is no member {name}',
  'member-not-text': '{name} is missing or not a string',
  'patient-not-an-id': '{name} is missing or not the id of a Patient',
  'encounter-not-an-id': '{name} is not the id of an Encounter',
  'member-not-boolean': '{name} is not true or false',
  'member-too-long': '{name} is not a string of at most {longest} characters',
  'banner-malformed': 'needPatientBanner must be true or false',
  'option-too-long': 'The {name} is longer than {longest} characters',
  'fhir-context-malformed': 'fhirContext must be an array of at most {most} objects',
  'fhir-context-too-long': 'fhirContext must be at most {longest} characters of JSON',
  'fhir-context-item-malformed': 'Each item of fhirContext must be an object',
  'fhir-context-member-unknown': 'fhirContext has no member {name}',
  'fhir-context-item-empty': 'Each item of fhirContext needs a reference, a canonical or an identifier',
  'fhir-context-canonical-malformed': 'A canonical of fhirContext must be an absolute URL',
  'fhir-context-identifier-malformed': 'An identifier of fhirContext must be an object',
  'fhir-context-type-unknown': 'A type of fhirContext must be a resource type',
  'fhir-context-role-malformed': 'A role of fhirContext must be "launch" or an absolute URL',
  'fhir-context-reference-malformed': 'A reference of fhirContext must be relative, such as ImagingStudy/123',
  'fhir-context-type-differs': 'A type of fhirContext must be that of its reference',
  'fhir-context-of-the-launch':
    '{type} has its own member and may be in fhirContext only with a role other than launch',
} as const

/** Of the parameters of links that launch an app. */
const LINK_FAULTS = {
  'parameter-repeated': 'expected one value',
  'parameter-of-ehr-launch': 'only an EHR launch can have it',
  'value-not-known': 'expected one of {known}',
  'value-not-a-switch': 'expected 1 or 0',
  'pkce-malformed': 'expected optional or required',
  'lifetime-malformed': 'expected 1 to {most} seconds',
  'link-client-missing': 'expected the client id of the app at launch_url',
  'link-client-malformed': 'expected at most 100 characters without spaces',
  'link-client-disabled': 'an administrator disabled it',
  'link-of-backend-service': 'a backend service is not launched. It requests its tokens itself',
  'link-user-not-a-patient': 'expected a patient or a relative, for a launch by a patient',
  'link-app-unknown': 'no app has this client id. With a launch URL, the app is registered for a day',
  'link-user-unknown': 'no account has this username',
  'link-patients-many': 'several patients match. Choose one of them',
  'link-patient-unknown': 'no patient has this id or name',
  'link-patient-malformed': 'expected the id of a Patient',
  'link-style-malformed': '{fault}, or none',
  'meant-other': ' Did you mean {meant}?',
} as const

/** Of audit records that FHIR servers send. */
const AUDIT_FAULTS = {
  'trail-not-kept': 'This server keeps no audit trail (SMART_AUDIT)',
  'batch-malformed': 'The body must be a JSON object with records',
  'batch-of-another-issuer': 'issuer, expected {expected}',
  'batch-of-another-fhir-server': 'fhirBaseUrl, expected {expected}',
  'batch-too-long': 'There are more than {most} records',
  'batch-without-ids': 'Every record needs an id of 1 to 64 letters, digits and hyphens',
  'record-not-an-object': 'it is not an object',
  'record-member-unknown': 'there is no member {name}',
  'record-member-malformed': 'its {name} is not valid',
  'record-of-another': 'launch is that of another app or user',
} as const

/** Of the filters of administration. */
const FILTER_FAULTS = {
  'filter-not-known': 'there is no filter {name}: {fault}',
  'filter-invalid': 'the filter {name} is not valid: {fault}',
  'filters-known': 'the filters are {known}',
  'filters-none': 'this list has none',
  'user-not-known': 'no user is known as {name}',
  'app-not-known': 'no app is known as {name}',
  'patient-not-known': 'no patient is known as {name}',
  'patients-cut': 'the FHIR server did not return all patients who match. Enter more of the name, or the MRN',
  'patients-many': 'more than {most} patients match. Enter more of the name, or the MRN',
  'patients-unavailable':
    'the FHIR server is unavailable, so it is not known whether there is a patient {name}',
  'patients-hidden':
    'your account opens no patient records, so it finds none by name or number: enter the FHIR id',
  'patients-hidden-here':
    'your account opens no patient records, so it finds none by name or number: enter the FHIR id, which the search of the audit page shows',
  'patient-absent': 'there is no patient {id}',
  'care-teams-unreadable': 'the care teams cannot be read',
  'search-too-long': 'a search for patients has at most {characters} characters and {words} words',
  'nobody-known': 'no account, app, FHIR user or operator is known as {name}',
} as const

/** All tables of faults, by their titles in docs/errors.md. */
export const FAULT_TABLES = {
  'Properties of apps': CLIENT_FAULTS,
  'Members of registrations and of the administration API': MEMBER_FAULTS,
  'Lists of scopes': SCOPE_LIST_FAULTS,
  'Documents of apps without a registration': DOCUMENT_FAULTS,
  'New passwords': PASSWORD_FAULTS,
  'Second factors': FACTOR_FAULTS,
  'Tokens that are introspected or sent to the auth server': TOKEN_FAULTS,
  'Launch forms, and launches by an EHR': LAUNCH_FAULTS,
  'Links for developers': LINK_FAULTS,
  'Audit records of FHIR servers': AUDIT_FAULTS,
  'Filters of administration': FILTER_FAULTS,
} as const

export const FAULTS = joinTables(FAULT_TABLES)

export type FaultReason = keyof typeof FAULTS
