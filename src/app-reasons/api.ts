import type { AppWords } from './words.ts'

const LAUNCH_AGAIN = 'Launch the app again from the patient list.'
const CHECK_FHIR =
  'Check that the FHIR server is running and that the app server can reach it, and try again.'
const CHECK_AUTH =
  'Check that the auth server is running and that the app server can reach it, and try again.'

/** Failures of the session API. */
export const API_REASONS = {
  'no-session': {
    status: 401,
    code: 'login',
    sentence: 'No session. Launch the app from the patient list.',
    remedy: LAUNCH_AGAIN,
  },
  'session-ended': {
    status: 401,
    code: 'login',
    sentence: 'The session has ended. Launch the app again from the patient list.',
    remedy: LAUNCH_AGAIN,
  },
  'another-session': {
    status: 409,
    code: 'conflict',
    sentence: 'This session is not open in this browser. Launch the app again from the patient list.',
    remedy: LAUNCH_AGAIN,
  },
  'several-sessions': {
    status: 409,
    code: 'conflict',
    sentence:
      'Several sessions are open in this browser. Name one in the header X-Session-Id: the last part of the URL /s/<sessionId> to which its launch led.',
    remedy: 'Send the header X-Session-Id.',
  },
  'scope-not-granted': {
    status: 403,
    code: 'forbidden',
    sentence: 'Insufficient scope. Not granted: {scopes}',
    remedy: 'Register the app for these scopes, request them, and launch the app again.',
  },
  'parameter-not-usable': {
    status: 400,
    code: 'invalid',
    sentence: 'Cannot use parameter {name}: expected {expected}',
    remedy: 'Compare the request with the OpenAPI document of the session API.',
  },
  'token-refused': {
    status: 401,
    code: 'login',
    sentence: 'The FHIR server no longer accepts this session. Launch the app again.',
    remedy: 'Find the refused request of the FHIR server: its explanation names the cause.',
  },
  'access-refused': {
    status: 403,
    code: 'forbidden',
    sentence: 'The FHIR server refuses access to this record.',
    remedy: 'Find the refused request of the FHIR server: its explanation names the cause.',
  },
  'record-not-found': {
    status: 404,
    code: 'not-found',
    sentence: 'The FHIR server has no such record.',
    remedy: 'Check that the FHIR server still has the resource.',
  },
  'records-unreachable': {
    status: 502,
    code: 'transient',
    sentence: 'The FHIR server is unreachable. Try again.',
    detail: 'FHIR server is unreachable',
    remedy: CHECK_FHIR,
  },
  'records-slow': {
    status: 504,
    code: 'transient',
    sentence: 'The FHIR server did not respond in time. Try again.',
    detail: 'FHIR server is slow',
    remedy: CHECK_FHIR,
  },
  'records-response-invalid': {
    status: 502,
    code: 'transient',
    sentence: 'The FHIR server returned an invalid response: {problem}',
    detail: '{check}',
    remedy: CHECK_FHIR,
  },
  'auth-server-unreachable': {
    status: 502,
    code: 'transient',
    title: 'The sign-in server is unreachable',
    sentence: 'The auth server is unreachable. Try again.',
    detail: 'the auth server is unreachable',
    remedy: CHECK_AUTH,
  },
  'auth-server-slow': {
    status: 504,
    code: 'transient',
    title: 'The sign-in server is unreachable',
    sentence: 'The auth server did not respond in time. Try again.',
    detail: 'the auth server is slow',
    remedy: CHECK_AUTH,
  },
} as const satisfies Readonly<Record<string, AppWords>>
