import { type AppFailure, failApp, getAppWords, type LAUNCH_REASONS } from '../../app-reasons/index.ts'
import { fill, findOwn } from '../../core/index.ts'
import { type ErrorPageOptions, type Html, html } from '../../web/ui/index.ts'
import type { SessionFailure } from '../failure.ts'
import { LAUNCH_PARAMETER_CHARACTERS } from '../limits.ts'
import type { OAuthFailure } from '../oauth/client.ts'

export type LaunchRefusal =
  | AppFailure<Exclude<keyof typeof LAUNCH_REASONS, 'auth-server-refused'>>
  | SessionFailure
  | OAuthFailure

export function findLongParameter(query: Readonly<Record<string, unknown>>): LaunchRefusal | undefined {
  for (const [name, limit] of Object.entries(LAUNCH_PARAMETER_CHARACTERS)) {
    const value = query[name]
    if (typeof value === 'string' && value.length > limit)
      return failApp('link-parameter-too-long', { name, limit })
  }
  return undefined
}

/** A refusal in terms that a clinician understands: the event, its effect on the record, the next step. */
interface RefusalTexts
  extends Pick<ErrorPageOptions, 'kind' | 'title' | 'text' | 'code' | 'facts' | 'reason'> {
  readonly status: number
  /** For the log: the failed check and the expected value, without a token, code, state or nonce. */
  readonly check: string
}

const NO_RECORD: Html = html`<b>No record was opened.</b> Open the app again from where you started it.`
const ASK_SUPPORT: Html = html`<b>No record was opened.</b> If it happens again, give your support team the reference below.`
const WHILE_OPENING = 'It did not respond while the app was opening.'

const DOWNTIME = [
  'The FHIR server that started the launch does not respond correctly, so the app cannot open now.',
  'If this is urgent, use your usual downtime procedure. Otherwise wait a moment and launch the app again.',
] as const

export function describeRefusal(refusal: LaunchRefusal): RefusalTexts {
  const { reason, facts } = refusal
  const { status, code, title = 'Patient records cannot be reached', sentence, detail } = getAppWords(reason)
  const text = fill(sentence, facts)
  const texts = {
    kind: 'refused',
    status,
    title,
    code: fill(code, facts),
    check: fill(detail ?? sentence, facts),
  } as const
  const unavailable = { ...texts, kind: 'unavailable', code: String(status) } as const
  switch (reason) {
    case 'auth-server-refused':
      return { ...texts, ...describeOAuthError(refusal.error, refusal.description) }
    case 'auth-server-unreachable':
    case 'auth-server-slow':
      return { ...unavailable, text: [WHILE_OPENING, NO_RECORD] }
    case 'records-unreachable':
    case 'records-slow':
    case 'records-response-invalid':
      return { ...unavailable, text: DOWNTIME, reason: text }
    case 'too-many-launches':
      return { ...unavailable, text: [text, NO_RECORD] }
    case 'sign-in-unverified':
    case 'auth-server-changed':
      return { ...texts, text: [text, ASK_SUPPORT] }
    case 'link-parameter-missing':
      return { ...texts, text: [text, NO_RECORD], reason: `Expected one value for ${facts.name}` }
    case 'issuer-not-accepted':
      return {
        ...texts,
        text: [text, NO_RECORD],
        facts: [
          ['Issuer', html`<code>${String(facts.iss)}</code>`],
          ['Expected', html`<code>${String(facts.expected)}</code>`],
        ],
      }
    default:
      return { ...texts, text: [text, NO_RECORD] }
  }
}

/** OAuth errors as texts for users (RFC 6749, 4.1.2.1; OpenID Connect Core, 3.1.2.6). */
const OAUTH_ERROR_TEXTS: Readonly<Record<string, readonly [status: number, title: string, text: string]>> = {
  access_denied: [
    403,
    'Access was not allowed',
    'You, or the sign-in server, did not allow this app to see the record.',
  ],
  invalid_request: [
    400,
    'This launch was refused',
    'The launch link was already used, is older than 5 minutes, or belongs to someone else. Each link opens an app once.',
  ],
  invalid_grant: [400, 'This launch was refused', 'The sign-in was already used or took too long.'],
  invalid_scope: [
    403,
    'This app may not access this data',
    'The sign-in server does not allow this app to access the data that it requests.',
  ],
  login_required: [403, 'You are not signed in', 'The sign-in server asks you to sign in first.'],
  temporarily_unavailable: [502, 'The sign-in server is busy', 'It cannot open the app right now.'],
  server_error: [502, 'The sign-in server has a problem', 'It could not finish the sign-in.'],
}

const OTHER_ERROR = [400, 'This launch was refused', 'The sign-in server refused to open the app.'] as const

function describeOAuthError(error: string, description: string | undefined) {
  const [status, title, text] = findOwn(OAUTH_ERROR_TEXTS, error) ?? OTHER_ERROR
  return {
    status,
    kind: status === 502 ? 'unavailable' : 'refused',
    title,
    text: [text, NO_RECORD],
    code: sanitizeText(error, 60),
    reason: description === undefined ? undefined : sanitizeText(description, 300),
  } as const
}

// RFC 6749, 4.1.2.1: the characters of `error` and `error_description`.
function sanitizeText(text: string, length: number): string {
  return text.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, '').slice(0, length)
}
