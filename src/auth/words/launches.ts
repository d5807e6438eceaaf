import type { StatusWords } from './reason.ts'

/** Launches by the portal. The sentence is the title of its error page. */
export const LAUNCHES = {
  'launch-patient-missing': {
    status: 400,
    sentence: 'No patient selected',
    cause: 'No patient was chosen.',
    remedy: 'Choose a patient, and launch the app again.',
  },
  'launch-form-repeated': {
    status: 400,
    sentence: 'Invalid launch',
    cause: 'A field of the launch form was sent twice, or it contains a NUL character.',
    remedy: 'Reload the patient list, and launch the app again.',
  },
  'launch-option-invalid': {
    status: 400,
    sentence: '{field}: {fault}.',
    cause: 'An option of the launch is not valid: {field}: {fault}.',
    remedy: 'Correct the option, and launch the app again.',
  },
  'launch-encounter-missing': {
    status: 400,
    sentence: 'No encounter was chosen',
    cause: 'No encounter was chosen: the launch form had neither an encounter nor “No encounter”.',
    remedy: 'Choose an encounter, or “No encounter”, and launch the app again.',
  },
  'launch-app-unknown': {
    status: 400,
    sentence: 'This app cannot be launched',
    cause: 'The app has no launch URL, is not registered, or an administrator disabled it.',
    remedy: 'Set the launch URL in the registration of the app. An app without one starts by itself.',
  },
  'launch-patient-unknown': {
    status: 404,
    sentence: 'Patient not found',
    cause: 'The FHIR server has no such patient, or the user of the launch may not see the patient.',
    remedy: 'Choose another patient, or another user.',
  },
  'launch-encounter-unknown': {
    status: 404,
    sentence: 'Encounter not found',
    cause: 'The FHIR server has no such encounter, or it belongs to another patient.',
    remedy: 'Choose an encounter of this patient, or none.',
  },
  'launch-user-unknown': {
    status: 400,
    sentence: 'The username is unknown.',
    cause: 'No account has this username, or an administrator disabled it.',
    remedy: 'Name a user who can sign in.',
  },
  'launch-body-invalid': {
    status: 400,
    sentence: '{fault}',
    cause: 'The request to launch an app is not valid: {fault}',
    remedy: 'Correct the member that the reason names, and send the request again.',
  },
  'records-unavailable': {
    status: 503,
    sentence: 'The FHIR server is unreachable.',
    cause: 'The auth server could not read the patient from the FHIR server.',
    remedy: 'Check that the FHIR server is running, and try again.',
  },
} as const satisfies Readonly<Record<string, StatusWords>>
