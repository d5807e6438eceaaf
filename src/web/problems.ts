import type { FastifyError } from 'fastify'
import { type IssueCode, limits } from '../fhir/index.ts'
import { isDatabaseUnavailable } from '../store/index.ts'
import { JSON_EXCESS } from './json.ts'
import { BODY_BYTES } from './limits.ts'

/** What goes wrong before a room's own code, or outside of what it expects. */
export type Problem =
  | { readonly kind: 'malformed'; readonly text: string }
  | { readonly kind: 'unknown-host'; readonly url: string }
  | { readonly kind: 'cross-site' }
  | { readonly kind: 'loopback-only' }
  | { readonly kind: 'not-found' }
  | { readonly kind: 'method-not-allowed'; readonly allow: readonly string[] }
  | { readonly kind: 'too-large'; readonly limit: number }
  | { readonly kind: 'unsupported-media-type' }
  | { readonly kind: 'unexpected' }
  | { readonly kind: 'unavailable' }

/** The same error for a page, for FHIR and `/api` (ERROR-1), and for OAuth (RFC 6749, 5.2). */
interface ProblemWords {
  readonly status: number
  readonly title: string
  readonly text: string
  readonly issue: IssueCode
  readonly oauth: string
}

const WORDS = {
  malformed: {
    status: 400,
    title: 'This request could not be read',
    text: 'Something in the address or the form is not as it should be. Nothing was changed.',
    issue: 'invalid',
    oauth: 'invalid_request',
  },
  'unknown-host': {
    status: 421,
    title: 'This server does not have that name',
    text: 'This server does not accept requests for that host.',
    issue: 'forbidden',
    oauth: 'invalid_request',
  },
  'cross-site': {
    status: 403,
    title: 'This form came from another site',
    text: 'For your safety only forms of this site are accepted. Nothing was changed. Go back and try again from here.',
    issue: 'forbidden',
    oauth: 'invalid_request',
  },
  'loopback-only': {
    status: 403,
    title: 'This page is for this computer only',
    text: 'It is not shown to other computers.',
    issue: 'forbidden',
    oauth: 'invalid_request',
  },
  'not-found': {
    status: 404,
    title: 'There is no such page',
    text: 'The address may be mistyped, or the page may have moved.',
    issue: 'not-found',
    oauth: 'invalid_request',
  },
  'method-not-allowed': {
    status: 405,
    title: 'This page cannot be used that way',
    text: 'The address exists, but not for this kind of request. Nothing was changed.',
    issue: 'not-supported',
    oauth: 'invalid_request',
  },
  'too-large': {
    status: 413,
    title: 'This request is too large',
    text: 'The body is too large. Nothing was changed.',
    issue: 'too-long',
    oauth: 'invalid_request',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'This kind of content is not accepted here',
    text: 'The request has a content type that this address does not read. Nothing was changed.',
    issue: 'not-supported',
    oauth: 'invalid_request',
  },
  unexpected: {
    status: 500,
    title: 'Something went wrong here',
    text: 'It is not your fault. Try again; if it happens again, tell your support the reference below.',
    issue: 'exception',
    oauth: 'server_error',
  },
  unavailable: {
    status: 503,
    title: 'This page cannot be shown right now',
    text: 'Something it needs does not answer. Nothing you did was lost. Try again in a moment.',
    issue: 'transient',
    oauth: 'temporarily_unavailable',
  },
} satisfies Record<Problem['kind'], ProblemWords>

/** The words of a problem. A malformed request says what is wrong with it; a wrong host which one is right. */
export function splitWords(problem: Problem): ProblemWords {
  const words = WORDS[problem.kind]
  if (problem.kind === 'too-large')
    return { ...words, text: `The body is larger than ${problem.limit} bytes. Nothing was changed.` }
  if (problem.kind === 'malformed') return { ...words, text: problem.text }
  if (problem.kind === 'unknown-host') return { ...words, text: `${words.text} ${otherNames(problem.url)}` }
  return words
}

function otherNames(url: string): string {
  return `Use ${url}, or add the name to SMART_ALLOWED_HOSTS if it is yours.`
}

const MALFORMED: Readonly<Record<string, string>> = {
  FST_ERR_CTP_INVALID_JSON_BODY: 'The body is not valid JSON.',
  [JSON_EXCESS]: `The JSON body is nested more than ${limits.JSON_DEPTH} levels deep, or has more than ${limits.JSON_VALUES} values.`,
  FST_ERR_CTP_EMPTY_JSON_BODY: 'The body is empty.',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'The body is not as long as its Content-Length says.',
  FST_ERR_BAD_URL: 'The address is not valid.',
  FST_ERR_MAX_PARAM_LENGTH: 'The address is too long.',
}

/** Turns what fastify or a handler threw into a problem. What is not the caller's doing is unexpected. */
export function toProblem(error: unknown, bodyLimit = BODY_BYTES): Problem {
  const { statusCode, code, validation, message } = toFastifyError(error)
  if (statusCode === 413) return { kind: 'too-large', limit: bodyLimit }
  if (statusCode === 415) return { kind: 'unsupported-media-type' }
  if (statusCode === 404) return { kind: 'not-found' }
  if (statusCode === 503 || isDatabaseUnavailable(error)) return { kind: 'unavailable' }
  if (validation) return { kind: 'malformed', text: sentence(message) }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return { kind: 'malformed', text: MALFORMED[code] ?? 'The request could not be read.' }
  return { kind: 'unexpected' }
}

function toFastifyError(
  error: unknown,
): Pick<FastifyError, 'statusCode' | 'code' | 'validation' | 'message'> {
  if (!(error instanceof Error)) return { code: '', message: '' }
  const { statusCode, code, validation, message } = error as Partial<FastifyError>
  return {
    code: code ?? '',
    message: message ?? '',
    ...(typeof statusCode === 'number' ? { statusCode } : {}),
    ...(validation ? { validation } : {}),
  }
}

/** `querystring/_count must be integer` as a sentence. Only our own schemas are quoted, never the value. */
function sentence(text: string): string {
  const plain = text.replace(/^(querystring|body|params|headers)\/?\s*/, '')
  return plain === '' ? 'The request is not valid.' : `${plain[0]?.toUpperCase()}${plain.slice(1)}.`
}
