import type { OAuthWords, StatusWords } from './reason.ts'

const OPEN_FROM_PAGE = 'Open the link from the page that made it, or from the address bar.'

/** Links of the lab. */
export const LINKS = {
  'link-parameter-invalid': {
    status: 400,
    sentence: '{parameter}: {fault}.{suggestion}',
    cause:
      'The link that launches the app has an unknown parameter, or an unknown value of “{parameter}”.{suggestion}',
    remedy: 'Use one of the names that the reason lists, or make a new link on the page that made this one.',
  },
  'link-apps-too-many': {
    status: 400,
    sentence: 'The lab already has {most} apps, the most that it registers. Use one of them.',
    cause: 'The link names an app that is not registered, and the lab registers no more apps.',
    remedy: 'Name a registered app in the link, or remove one.',
  },
  'link-of-another-site': {
    status: 403,
    sentence: 'A page of another site may have opened this link. Open it from the lab page.',
    cause: 'A page of another site opened the link, or the browser does not say which page did.',
    remedy: OPEN_FROM_PAGE,
  },
  'lab-over-plain-http': {
    status: 403,
    sentence: 'Off loopback, the lab is available over https only.',
    cause: 'The link was opened over http.',
    remedy: 'Open the link over https.',
  },
  'lab-needs-administrator': {
    status: 403,
    sentence: 'Off loopback, the lab is for administrators who are signed in.',
    cause: 'The browser is not signed in, or the user is not an administrator.',
    remedy: 'Sign in as an administrator, and open the link again.',
  },
  'lab-needs-recent-sign-in': {
    status: 403,
    sentence:
      'A launch of the lab needs a sign-in within the last {minutes} minutes. Sign in again in the administration area, then open the link once more.',
    cause: 'The sign-in of the administrator is older than {minutes} minutes.',
    remedy: 'Sign in again in the administration area, then open the link once more.',
  },
} as const satisfies Readonly<Record<string, StatusWords>>

/** Errors that the lab simulates. Their OAuth error is that of the simulation. */
export const LINK_ERRORS = {
  simulated: {
    error: 'server_error',
    sentence: 'Simulated by the lab: {simulation}.',
    cause:
      'The lab simulates this error ({simulation}), as requested by the link of this launch. The request itself may be correct.',
    remedy:
      'Check that the app shows the error and recovers from it. Launch the app without the simulated error to continue.',
  },
} as const satisfies Readonly<Record<string, OAuthWords>>
