import { type ErrorPageOptions, type Html, html } from '../../web/index.ts'
import type { AppSettings } from '../context.ts'
import { toResponse } from '../failure.ts'
import type { OAuthProblem } from '../oauth/client.ts'
import { type LaunchRefusal, TOO_MANY } from './refusal.ts'

/** A refusal in terms that a clinician understands: the event, its effect on the record, the next step. */
export interface RefusalTexts extends Pick<ErrorPageOptions, 'kind' | 'title' | 'text' | 'code' | 'facts'> {
  readonly status: number
  readonly reason?: string
}

const NO_RECORD: Html = html`<b>No record was opened.</b> Launch the app again from the patient list.`
const ASK_SUPPORT: Html = html`<b>No record was opened.</b> If it happens again, give your support team the reference below.`

export function chooseRefusalTexts(refusal: LaunchRefusal, settings: AppSettings): RefusalTexts {
  switch (refusal.kind) {
    case 'bad-parameter':
      return {
        status: 400,
        kind: 'refused',
        title: 'This launch link is incomplete',
        text: ['A part of the link that opened this page is missing or appears twice.', NO_RECORD],
        code: 'invalid_request',
        reason: `Expected one value for ${refusal.name}`,
      }
    case 'long-parameter':
      return {
        status: 400,
        kind: 'refused',
        title: 'This launch link is too long',
        text: [
          `A part of the link that opened this page, ${refusal.name}, has more than ${refusal.limit} characters.`,
          NO_RECORD,
        ],
        code: 'invalid_request',
      }
    case 'unknown-issuer':
      return {
        status: 403,
        kind: 'refused',
        title: 'This app is not set up for that FHIR server',
        text: ['The launch came from an unknown FHIR server. The app sent nothing to it.', NO_RECORD],
        code: 'unknown_issuer',
        facts: [
          ['Issuer', html`<code>${formatUrl(refusal.iss)}</code>`],
          ['Expected', html`<code>${settings.app.issuers.join(' ')}</code>`],
        ],
      }
    case 'no-discovery':
      return {
        status: toResponse(refusal.failure).status,
        kind: 'unavailable',
        title: 'Patient records cannot be reached',
        text: [
          'The FHIR server that started the launch does not respond correctly, so the app cannot open now.',
          'If this is urgent, use your usual downtime procedure. Otherwise wait a moment and launch the app again.',
        ],
        code: `${toResponse(refusal.failure).status}`,
        reason: toResponse(refusal.failure).body.issue[0]?.details.text ?? '',
      }
    case 'too-many-launches':
      return {
        status: 429,
        kind: 'unavailable',
        title: 'Too many launches are pending',
        text: [`${TOO_MANY}. Wait a few minutes and launch the app again.`, NO_RECORD],
        code: '429',
      }
    case 'unknown-state':
      return {
        status: 400,
        kind: 'refused',
        title: 'This launch cannot be continued',
        text: [
          'It was already finished, took longer than 10 minutes, or started in another browser. Each launch works only once.',
          NO_RECORD,
        ],
        code: 'invalid_state',
      }
    case 'bad-callback':
      return {
        status: 400,
        kind: 'refused',
        title: 'The sign-in could not be verified',
        text: [
          "A part of this page's URL is missing, appears twice, or comes from another sign-in server.",
          NO_RECORD,
        ],
        code: refusal.code,
      }
    case 'no-tokens':
      return describeTokenProblem(refusal.problem)
    case 'no-patient':
      return {
        status: 400,
        kind: 'refused',
        title: 'This launch has no patient',
        text: ['The app shows one patient, and the sign-in server did not specify one.', NO_RECORD],
        code: 'no_patient',
      }
  }
}

function describeTokenProblem(problem: OAuthProblem): RefusalTexts {
  switch (problem.kind) {
    case 'refused':
      return describeOAuthError(problem.error, problem.description)
    case 'unreachable':
    case 'slow':
      return {
        status: problem.kind === 'unreachable' ? 502 : 504,
        kind: 'unavailable',
        title: 'The sign-in server is unreachable',
        text: ['It did not respond while the app was opening.', NO_RECORD],
        code: problem.kind === 'unreachable' ? '502' : '504',
      }
    case 'unacceptable':
      return {
        status: 502,
        kind: 'refused',
        title: 'The sign-in could not be verified',
        text: ["The sign-in server's response failed the checks that protect records.", ASK_SUPPORT],
        code: problem.code,
      }
  }
}

/** OAuth errors as texts for users (RFC 6749, 4.1.2.1; OpenID Connect Core, 3.1.2.6). */
const OAUTH_ERROR_TEXTS: Readonly<
  Record<string, { readonly title: string; readonly text: string; readonly status: number }>
> = {
  access_denied: {
    status: 403,
    title: 'Access was not allowed',
    text: 'You, or the sign-in server, did not allow this app to see the record.',
  },
  invalid_request: {
    status: 400,
    title: 'This launch was refused',
    text: 'The launch link was already used, is older than 5 minutes, or belongs to someone else. Each link opens an app once.',
  },
  invalid_grant: {
    status: 400,
    title: 'This launch was refused',
    text: 'The sign-in was already used or took too long.',
  },
  invalid_scope: {
    status: 403,
    title: 'This app may not access this data',
    text: 'The sign-in server does not allow this app to access the data that it requests.',
  },
  login_required: {
    status: 403,
    title: 'You are not signed in',
    text: 'The sign-in server asks you to sign in first.',
  },
  temporarily_unavailable: {
    status: 502,
    title: 'The sign-in server is busy',
    text: 'It cannot open the app right now.',
  },
  server_error: {
    status: 502,
    title: 'The sign-in server has a problem',
    text: 'It could not finish the sign-in.',
  },
}

const OTHER_ERROR = {
  status: 400,
  title: 'This launch was refused',
  text: 'The sign-in server refused to open the app.',
}

function describeOAuthError(error: string, description: string | undefined): RefusalTexts {
  const known = Object.hasOwn(OAUTH_ERROR_TEXTS, error) ? OAUTH_ERROR_TEXTS[error] : undefined
  const { status, title, text } = known ?? OTHER_ERROR
  return {
    status,
    kind: status === 502 ? 'unavailable' : 'refused',
    title,
    text: [text, NO_RECORD],
    code: sanitizeText(error, 60),
    ...(description === undefined ? {} : { reason: sanitizeText(description, 300) }),
  }
}

// RFC 6749, 4.1.2.1: the characters of `error` and `error_description`.
function sanitizeText(text: string, length: number): string {
  return text.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, '').slice(0, length)
}

function formatUrl(iss: string): string {
  const url = URL.parse(iss)
  return url ? `${url.origin}${url.pathname}`.slice(0, 200) : 'not a URL'
}
