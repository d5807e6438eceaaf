import type { AppWords } from './words.ts'

const LAUNCH_AGAIN = 'Launch the app again.'
const MAKE_LINK = 'Launch the app from the patient list, or correct the page that makes the link.'
const NOT_CONTINUED = {
  status: 400,
  code: 'invalid_state',
  title: 'This launch cannot be continued',
  // The user is not told which.
  sentence:
    'It was already finished, took longer than 10 minutes, or started in another browser. Each launch works only once.',
  remedy: LAUNCH_AGAIN,
} as const
const FIND_CHECK = 'The check in the reason names the value that the auth server should send.'

/** Launches that open no session. */
export const LAUNCH_REASONS = {
  'link-parameter-missing': {
    status: 400,
    code: 'invalid_request',
    title: 'This launch link is incomplete',
    sentence: 'A part of the link that opened this page is missing or appears twice.',
    detail: 'parameter {name} is missing or repeated',
    remedy: MAKE_LINK,
  },
  'link-parameter-too-long': {
    status: 400,
    code: 'invalid_request',
    title: 'This launch link is too long',
    sentence: 'A part of the link that opened this page, {name}, has more than {limit} characters.',
    detail: 'parameter {name} has more than {limit} characters',
    remedy: MAKE_LINK,
  },
  'issuer-not-accepted': {
    status: 403,
    code: 'unknown_issuer',
    title: 'This app is not set up for that FHIR server',
    sentence: 'The launch came from an unknown FHIR server. The app sent nothing to it.',
    detail: 'iss {iss}, expected one of {expected}',
    remedy: 'Add the FHIR base URL to the setting smart.app.issuers, if the app may be launched from there.',
  },
  'too-many-launches': {
    status: 429,
    code: '429',
    title: 'Too many launches are pending',
    sentence:
      'More than {limit} launches from one network are pending. Wait a few minutes and launch the app again.',
    detail: 'More than {limit} launches from one network are pending',
    remedy: 'Wait a few minutes. A page that is reloaded must not begin a launch each time.',
  },
  'state-missing-in-callback': { ...NOT_CONTINUED, detail: 'parameter state is missing or repeated' },
  'launch-cookie-missing': { ...NOT_CONTINUED, detail: 'the browser sent no cookie of this launch' },
  'state-unknown': { ...NOT_CONTINUED, detail: 'the launch is unknown, already finished, or expired' },
  'callback-malformed': {
    status: 400,
    code: '{code}',
    title: 'The sign-in could not be verified',
    sentence: "A part of this page's URL is missing, appears twice, or comes from another sign-in server.",
    detail: '{check}',
    remedy: FIND_CHECK,
  },
  'auth-server-refused': {
    status: 400,
    code: '{error}',
    title: 'This launch was refused',
    sentence: 'The sign-in server refused to open the app.',
    detail: 'the auth server refused: {error}',
    cause: 'The app got an error from the auth server, so it opened no session.',
    remedy: 'Find the refused event of the auth server: its explanation names the cause.',
  },
  'sign-in-unverified': {
    status: 502,
    code: '{code}',
    title: 'The sign-in could not be verified',
    sentence: "The sign-in server's response failed the checks that protect records.",
    detail: '{check}',
    remedy: FIND_CHECK,
  },
  'auth-server-changed': {
    status: 502,
    code: 'ISSUER_CHANGED',
    title: 'The sign-in could not be verified',
    sentence: "The sign-in server's response failed the checks that protect records.",
    detail: 'smart-configuration issuer is now {issuer}, expected {expected}',
    remedy: LAUNCH_AGAIN,
  },
  'no-patient-in-response': {
    status: 400,
    code: 'no_patient',
    title: 'This launch has no patient',
    sentence: 'The app shows one patient, and the sign-in server did not specify one.',
    detail: 'token response has no patient',
    remedy: 'Launch the app for a patient, and request the scope launch or launch/patient.',
  },
} as const satisfies Readonly<Record<string, AppWords>>
