import { type Failed, fail, findOwn } from '../../core/index.ts'
import { type ErrorPageOptions, type Html, html } from '../../web/ui/index.ts'
import type { AppSettings } from '../context.ts'
import { type Failure, findServer, toResponse } from '../failure.ts'
import { LAUNCH_PARAMETER_CHARACTERS, PENDING_LAUNCHES_PER_NETWORK } from '../limits.ts'
import type { OAuthFailure } from '../oauth/client.ts'

export type LaunchRefusal = Failed & LaunchProblem

type LaunchProblem =
  | { readonly kind: 'bad-parameter'; readonly name: 'iss' | 'launch' }
  | { readonly kind: 'long-parameter'; readonly name: string; readonly limit: number }
  | { readonly kind: 'unknown-issuer'; readonly iss: string }
  | { readonly kind: 'no-discovery'; readonly failure: Failure }
  | { readonly kind: 'too-many-launches' }
  /** The state is wrong, late, already used, or from another browser. The user is not told which. */
  | { readonly kind: 'unknown-state'; readonly check: string }
  | { readonly kind: 'bad-callback'; readonly code: string; readonly check: string }
  | { readonly kind: 'no-tokens'; readonly problem: OAuthFailure }
  | { readonly kind: 'no-patient' }

export function findLongParameter(query: Readonly<Record<string, unknown>>): LaunchRefusal | undefined {
  for (const [name, limit] of Object.entries(LAUNCH_PARAMETER_CHARACTERS)) {
    const value = query[name]
    if (typeof value === 'string' && value.length > limit)
      return fail({ kind: 'long-parameter', name, limit })
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
const TOO_MANY = `More than ${PENDING_LAUNCHES_PER_NETWORK} launches from one network are pending`

export function describeRefusal(refusal: LaunchRefusal, { app }: AppSettings): RefusalTexts {
  switch (refusal.kind) {
    case 'bad-parameter':
      return {
        ...refuse(400, 'invalid_request', `parameter ${refusal.name} is missing or repeated`),
        title: 'This launch link is incomplete',
        text: ['A part of the link that opened this page is missing or appears twice.', NO_RECORD],
        reason: `Expected one value for ${refusal.name}`,
      }
    case 'long-parameter': {
      const excess = `has more than ${refusal.limit} characters`
      return {
        ...refuse(400, 'invalid_request', `parameter ${refusal.name} ${excess}`),
        title: 'This launch link is too long',
        text: [`A part of the link that opened this page, ${refusal.name}, ${excess}.`, NO_RECORD],
      }
    }
    case 'unknown-issuer': {
      const url = formatUrl(refusal.iss)
      const check = `iss ${url ?? 'is not a URL'}, expected one of ${app.issuers.join(', ')}`
      return {
        ...refuse(403, 'unknown_issuer', check),
        title: 'This app is not set up for that FHIR server',
        text: ['The launch came from an unknown FHIR server. The app sent nothing to it.', NO_RECORD],
        facts: [
          ['Issuer', html`<code>${url ?? 'not a URL'}</code>`],
          ['Expected', html`<code>${app.issuers.join(' ')}</code>`],
        ],
      }
    }
    case 'no-discovery': {
      const { status, body } = toResponse(refusal.failure)
      return {
        ...becomeUnavailable(status, describeFailure(refusal.failure)),
        title: 'Patient records cannot be reached',
        text: [
          'The FHIR server that started the launch does not respond correctly, so the app cannot open now.',
          'If this is urgent, use your usual downtime procedure. Otherwise wait a moment and launch the app again.',
        ],
        reason: body.issue[0]?.details.text,
      }
    }
    case 'too-many-launches':
      return {
        ...becomeUnavailable(429, TOO_MANY),
        title: 'Too many launches are pending',
        text: [`${TOO_MANY}. Wait a few minutes and launch the app again.`, NO_RECORD],
      }
    case 'unknown-state':
      return {
        ...refuse(400, 'invalid_state', refusal.check),
        title: 'This launch cannot be continued',
        text: [
          'It was already finished, took longer than 10 minutes, or started in another browser. Each launch works only once.',
          NO_RECORD,
        ],
      }
    case 'bad-callback':
      return {
        ...refuse(400, refusal.code, refusal.check),
        title: 'The sign-in could not be verified',
        text: [
          "A part of this page's URL is missing, appears twice, or comes from another sign-in server.",
          NO_RECORD,
        ],
      }
    case 'no-tokens':
      return describeOAuthFailure(refusal.problem)
    case 'no-patient':
      return {
        ...refuse(400, 'no_patient', 'token response has no patient'),
        title: 'This launch has no patient',
        text: ['The app shows one patient, and the sign-in server did not specify one.', NO_RECORD],
      }
  }
}

function refuse(status: number, code: string, check: string) {
  return { kind: 'refused', status, code, check } as const
}

function becomeUnavailable(status: number, check: string) {
  return { kind: 'unavailable', status, code: String(status), check } as const
}

function describeFailure(failure: Failure): string {
  if (failure.kind === 'unexpected-response') return failure.check ?? failure.problem
  const server = findServer(failure)
  return server === undefined ? failure.kind : `${server} is ${failure.kind}`
}

function describeOAuthFailure(failure: OAuthFailure): RefusalTexts {
  switch (failure.kind) {
    case 'refused':
      return describeOAuthError(failure.error, failure.description)
    case 'unreachable':
    case 'slow':
      return {
        ...becomeUnavailable(failure.kind === 'slow' ? 504 : 502, `the auth server is ${failure.kind}`),
        title: 'The sign-in server is unreachable',
        text: ['It did not respond while the app was opening.', NO_RECORD],
      }
    case 'unacceptable':
      return {
        ...refuse(502, failure.code, failure.check),
        title: 'The sign-in could not be verified',
        text: ["The sign-in server's response failed the checks that protect records.", ASK_SUPPORT],
      }
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

function describeOAuthError(error: string, description: string | undefined): RefusalTexts {
  const known = findOwn(OAUTH_ERROR_TEXTS, error)
  const [status, title, text] = known ?? OTHER_ERROR
  return {
    status,
    kind: status === 502 ? 'unavailable' : 'refused',
    title,
    text: [text, NO_RECORD],
    code: sanitizeText(error, 60),
    reason: description === undefined ? undefined : sanitizeText(description, 300),
    check: `the auth server refused: ${error}`,
  }
}

// RFC 6749, 4.1.2.1: the characters of `error` and `error_description`.
function sanitizeText(text: string, length: number): string {
  return text.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, '').slice(0, length)
}

/** Anybody can send this URL, so its query is left out. */
function formatUrl(text: string): string | undefined {
  const url = URL.parse(text)
  return url ? `${url.origin}${url.pathname}`.slice(0, MAX_URL_CHARACTERS) : undefined
}

const MAX_URL_CHARACTERS = 200
