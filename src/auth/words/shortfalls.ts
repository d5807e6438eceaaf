/** What an app did not get with its code, or did not send, although its request was accepted. For developers. */
export const SHORTFALLS = {
  'state-missing': {
    cause:
      'The request has no state, which SMART requires: the app cannot tell a response to its own request from one that somebody else has started.',
    remedy:
      'Send a new random “state” with every authorization request, and accept only a response with the same value.',
  },
  'encounter-not-chosen': {
    cause: 'No encounter was chosen, so the app does not get launch/encounter.',
    remedy: 'Choose an encounter when you launch the app. The app must also work without one.',
  },
  'patient-not-in-launch': {
    cause: 'No patient was chosen, so the app does not get launch/patient.',
    remedy:
      'Launch the app for a patient, or register it for a patient/ scope, so that the user chooses one.',
  },
  'not-launched-by-ehr': {
    cause: 'The app started by itself, so the scope launch has no effect.',
    remedy: 'Request launch only with the launch parameter of an EHR launch.',
  },
  'scope-misspelt': {
    cause: '{scope} permits nothing.',
    remedy: 'Write {meant} instead of {scope}.',
  },
  'scopes-declined': {
    cause: 'The user did not allow {data}.',
    remedy:
      'The app must work with less. The user can open the app again, and allow more on the consent page.',
  },
  'scopes-not-registered': {
    cause:
      'Not granted, or only in part: {scopes}. The app is not registered for it, or this server does not grant it.',
    remedy: 'Register the app for these scopes, and launch it again.',
  },
  /** Of records of earlier releases, which do not say what the user allowed. */
  'scopes-missing': {
    cause:
      'Not granted, or only in part: {scopes}. The app is not registered for it, or the user did not allow it.',
    remedy: 'Register the app for these scopes, and allow them on the consent page.',
  },
} as const

/** The scopes that depend on the launch, and why they are missing. */
export const MISSING_BY_LAUNCH = {
  'launch/encounter': 'encounter-not-chosen',
  'launch/patient': 'patient-not-in-launch',
  launch: 'not-launched-by-ehr',
} as const
