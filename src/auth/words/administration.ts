import type { Words } from './reason.ts'

/** Why an operation changed nothing, with the status and the error of the API. */
export const ADMIN_ERRORS = {
  invalid: { status: 400, error: 'invalid_request' },
  not_found: { status: 404, error: 'not_found' },
  /** The state does not allow it. */
  conflict: { status: 409, error: 'conflict' },
  /** The clinician signed in too long ago. */
  reauthenticate: { status: 403, error: 'insufficient_user_authentication' },
  /** The actor lost the right while the request was handled. */
  forbidden: { status: 403, error: 'insufficient_scope' },
  unavailable: { status: 503, error: 'temporarily_unavailable' },
} as const

/** The words about an operation that changed nothing. The sentence is the end of one: `there is no app growth`. */
export interface AdminWords extends Words {
  readonly code: keyof typeof ADMIN_ERRORS
}

/** What somebody else may have removed. */
function nameAbsent<const Sentence extends string>(sentence: Sentence) {
  const remedy = 'Open the list again: somebody else may have changed it.'
  return { code: 'not_found', sentence, remedy } as const
}

const LATER = 'Try again in a minute.'

/** Operations of administrators. */
export const ADMINISTRATION = {
  'not-an-administrator': {
    code: 'forbidden',
    sentence: 'you are not an administrator',
    remedy: 'Ask an administrator to do it, or to make you one.',
  },
  'sign-in-too-old': {
    code: 'reauthenticate',
    sentence: 'this needs a sign-in in the last {minutes} minutes',
    remedy: 'Sign in again, and repeat the operation.',
  },
  'url-malformed': {
    code: 'invalid',
    sentence: 'the URL is not valid',
    remedy: 'Remove the NUL character from the URL.',
  },
  'member-malformed': {
    code: 'invalid',
    sentence: 'a member contains a NUL character',
    remedy: 'Remove the NUL character from the request.',
  },
  'members-invalid': {
    code: 'invalid',
    sentence: '{faults}',
    remedy: 'Correct the members that the error names. The OpenAPI document describes them.',
  },
  'filters-invalid': {
    code: 'invalid',
    sentence: '{faults}',
    remedy: 'Correct the filters that the error names, or remove them.',
  },
  'client-unknown': nameAbsent('there is no app {id}'),
  'client-not-shown': nameAbsent('there is no such app'),
  'client-id-taken': {
    code: 'conflict',
    sentence: 'the id is taken',
    remedy: 'Choose another id for the app.',
  },
  'client-property-invalid': {
    code: 'invalid',
    sentence: '{faults}',
    remedy: 'Correct the properties that the error names.',
  },
  'client-without-secret': {
    code: 'conflict',
    sentence: 'the app {id} has no secret',
    remedy: 'Register the app with a secret first.',
  },
  'user-unknown': nameAbsent('there is no {kind} {name}'),
  'user-not-shown': nameAbsent('there is no such user'),
  'own-account': {
    code: 'conflict',
    sentence:
      'this is your own account. Another administrator can disable or remove it, end your role, or change its FHIR user',
    remedy: 'Ask another administrator.',
  },
  'username-taken': {
    code: 'conflict',
    sentence: 'the username is taken',
    remedy: 'Choose another username.',
  },
  'username-malformed': {
    code: 'invalid',
    sentence: 'a username has {rule}',
    remedy: 'Choose a username by this rule.',
  },
  'text-malformed': {
    code: 'invalid',
    sentence: 'a {property} has 1 to {longest} characters {form}',
    remedy: 'Correct the text.',
  },
  'fhir-user-malformed': {
    code: 'invalid',
    sentence: 'a FHIR user of this kind is a reference to a {types}',
    remedy: 'Write the type and the id, for example Practitioner/1.',
  },
  'records-needed': {
    code: 'invalid',
    sentence: 'only the account of a clinician can be for administration only, without patient records',
    remedy: 'Name the Patient or the RelatedPersons of the account.',
  },
  'fhir-user-without-records': {
    code: 'invalid',
    sentence:
      'an account that opens no patient records has no FHIR user: leave it out, or let the account open records',
    remedy: 'Leave out one of the two.',
  },
  'too-many-related-persons': {
    code: 'invalid',
    sentence: 'an account has at most {most} RelatedPersons',
    remedy: 'Name fewer RelatedPersons.',
  },
  'related-person-malformed': {
    code: 'invalid',
    sentence: 'not an id of a RelatedPerson: {ids}',
    remedy: 'Correct these ids, or remove them.',
  },
  'clinician-with-related-persons': {
    code: 'invalid',
    sentence: 'only the account of a patient or of related persons acts for patients',
    remedy: 'Add an account of that kind for the person.',
  },
  'administrator-not-clinician': {
    code: 'invalid',
    sentence: 'only a clinician can be an administrator',
    remedy: 'Add the account of a clinician for the person.',
  },
  'auditor-not-clinician': {
    code: 'invalid',
    sentence: 'only a clinician can be an auditor',
    remedy: 'Add the account of a clinician for the person.',
  },
  'two-roles': {
    code: 'invalid',
    sentence: 'a user is an administrator or an auditor, not both',
    remedy: 'Choose one of the two.',
  },
  'password-unfit': {
    code: 'invalid',
    sentence: '{fault}',
    remedy: 'Choose a longer password, or one that is harder to guess.',
  },
  'password-and-link': {
    code: 'invalid',
    sentence: 'a user gets a password or an activation link, not both',
    remedy: 'Leave out one of the two.',
  },
  'passwords-off': {
    code: 'conflict',
    sentence: 'users do not sign in with passwords (smart.login.passwords)',
    remedy: 'Let the user sign in with an identity provider, or change the setting.',
  },
  'user-has-many-grants': {
    code: 'conflict',
    sentence:
      'the user has more than {most} grants. Disable the account, and remove it when they have expired',
    remedy: 'Disable the account now, and remove it later.',
  },
  'no-second-factor': {
    code: 'conflict',
    sentence: 'the user has no second factor',
    remedy: 'Nothing is to be done.',
  },
  'account-not-locked': {
    code: 'conflict',
    sentence: 'the account is not locked',
    remedy: 'Nothing is to be done: the user can sign in.',
  },
  'identity-malformed': {
    code: 'invalid',
    sentence: 'issuer and subject have 1 to {longest} characters',
    remedy: 'Correct the issuer or the subject.',
  },
  'link-unknown': nameAbsent('there is no such link'),
  'sign-in-unknown': {
    code: 'not_found',
    sentence: 'the sign-in has ended',
    remedy: 'Nothing is to be done: the user is signed out.',
  },
  'grant-unknown': nameAbsent('there is no grant {id}'),
  'export-unknown': nameAbsent('there is no export {id}'),
  'filter-unknown': {
    code: 'invalid',
    sentence: '{faults}',
    remedy: 'Correct the filter.',
  },
  'time-malformed': {
    code: 'invalid',
    sentence: 'a time is not valid',
    remedy: 'Send a time as 2026-01-31T12:00:00Z.',
  },
  'patient-id-malformed': {
    code: 'invalid',
    sentence: 'the id of the patient is not valid',
    remedy: 'Send the id of a Patient resource.',
  },
  'patient-not-found': {
    code: 'not_found',
    sentence: '{fault}',
    remedy: 'Check the id or the name of the patient.',
  },
  'patient-search-unavailable': {
    code: 'unavailable',
    sentence: '{fault}',
    remedy: LATER,
  },
  'patient-search-not-permitted': {
    code: 'forbidden',
    sentence: '{fault}',
    remedy: 'Enter the id of the patient.',
  },
  'fhir-server-unavailable': {
    code: 'unavailable',
    sentence: 'the FHIR server is unavailable',
    remedy: 'Check that the FHIR server is running, and try again.',
  },
  'key-unknown': nameAbsent('there is no key {kid}'),
  'key-not-shown': nameAbsent('there is no such key'),
  'keys-rotated-meanwhile': {
    code: 'conflict',
    sentence: 'another rotation finished first',
    remedy: 'Look at the keys: there is a new one.',
  },
  'keys-of-another-secret': {
    code: 'conflict',
    sentence:
      'the keys are encrypted with another SMART_SECRET. Set the SMART_SECRET of the servers, or see: keys withdraw --help',
    remedy: 'Set the SMART_SECRET of the servers.',
  },
  'provider-unknown': {
    code: 'not_found',
    sentence: 'there is no sign-in provider {id}',
    remedy: 'Use the id of a provider of the settings.',
  },
  'settings-invalid': {
    code: 'conflict',
    sentence: '{problems}',
    remedy: 'Correct the settings that the error names, and reload them again. Nothing has changed.',
  },
  'verification-running': {
    code: 'conflict',
    sentence: 'another verification is running',
    remedy: LATER,
  },
  'verification-failed': {
    code: 'unavailable',
    sentence: 'the verification failed: {error}',
    remedy: LATER,
  },
  'trail-head-malformed': {
    code: 'invalid',
    sentence: 'a head is a number, a colon and 43 characters, as an earlier verification showed it',
    remedy: 'Copy the head of an earlier verification as a whole.',
  },
  'record-unknown': {
    code: 'not_found',
    sentence: 'there is no such record',
    remedy: 'Open the list again: records are removed after the time that they are kept.',
  },
  'exports-running': {
    code: 'unavailable',
    sentence: 'other exports are running',
    remedy: LATER,
  },
  'file-checks-running': {
    code: 'unavailable',
    sentence: 'other files are being checked',
    remedy: LATER,
  },
  'file-not-an-export': {
    code: 'invalid',
    sentence:
      'the file is not an export of the audit trail: expected NDJSON with AuditEvents, or CSV with the columns of an export',
    remedy: 'Choose a file that an export of the audit trail wrote.',
  },
  'file-line-invalid': {
    code: 'invalid',
    sentence: 'line {line} is not a record of an export',
    remedy: 'Export the records again, or correct the line.',
  },
} as const satisfies Readonly<Record<string, AdminWords>>

export type AdminReason = keyof typeof ADMINISTRATION
