import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyError, FastifyInstance } from 'fastify'
import { toSentence } from '../../core/index.ts'
import { type IssueCode, limits } from '../../fhir/index.ts'
import { isDatabaseUnavailable } from '../../store/index.ts'
import { BODY_BYTES, HEADER_BYTES } from './limits.ts'
import { createRequestId, JSON_EXCESS } from './request.ts'

/** An error outside of the handlers' expected failures. */
export type HttpProblem =
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

/** Describes a problem for a page, for FHIR and `/api` (ERROR-1), and for OAuth (RFC 6749, 5.2). */
interface ProblemDescription {
  readonly status: number
  readonly title: string
  readonly text: string
  readonly issue: IssueCode
  readonly oauth: string
}

const DESCRIPTIONS = {
  malformed: {
    status: 400,
    title: 'The request is not valid',
    text: 'The URL or the form is not valid. Nothing was changed.',
    issue: 'invalid',
  },
  'unknown-host': {
    status: 421,
    title: 'This server does not accept that host name',
    text: 'This server does not accept requests for that host.',
    issue: 'forbidden',
  },
  'cross-site': {
    status: 403,
    title: 'This form came from another site',
    text: 'For your safety, this server accepts only forms of its own pages. Nothing was changed. Go back and try again from here.',
    issue: 'forbidden',
  },
  'loopback-only': {
    status: 403,
    title: 'This page is not available from another computer',
    text: 'Only requests from the computer on which the server runs are allowed.',
    issue: 'forbidden',
  },
  'not-found': {
    status: 404,
    title: 'Page not found',
    text: 'There is nothing at this address. Check it for typing errors.',
    issue: 'not-found',
  },
  'method-not-allowed': {
    status: 405,
    title: 'This request is not supported',
    text: 'This URL does not support the method of the request. Nothing was changed.',
    issue: 'not-supported',
  },
  'too-large': {
    status: 413,
    title: 'The request is too large',
    text: 'The body is too large. Nothing was changed.',
    issue: 'too-long',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'This content type is not supported',
    text: 'This URL does not support the content type of the request. Nothing was changed.',
    issue: 'not-supported',
  },
  unexpected: {
    status: 500,
    title: 'Something went wrong',
    text: 'An error occurred on the server. Try again. If it happens again, give your support team the reference below.',
    issue: 'exception',
  },
  unavailable: {
    status: 503,
    title: 'This page is temporarily unavailable',
    text: 'A component of the server does not respond. Try again in a moment.',
    issue: 'transient',
  },
} satisfies Record<HttpProblem['kind'], Omit<ProblemDescription, 'oauth'>>

/** The OAuth errors of problems that the caller did not cause. */
const OAUTH: Partial<Record<HttpProblem['kind'], string>> = {
  unexpected: 'server_error',
  unavailable: 'temporarily_unavailable',
}

/** Describes a problem in general, or with the fault of a malformed request, the size limit, or the right host. */
export function describeProblem(problem: HttpProblem): ProblemDescription {
  const general = { ...DESCRIPTIONS[problem.kind], oauth: OAUTH[problem.kind] ?? 'invalid_request' }
  if (problem.kind === 'too-large')
    return { ...general, text: `The body is larger than ${problem.limit} bytes. Nothing was changed.` }
  if (problem.kind === 'malformed') return { ...general, text: problem.text }
  if (problem.kind === 'unknown-host')
    return { ...general, text: `${general.text} ${suggestHost(problem.url)}` }
  return general
}

function suggestHost(url: string): string {
  return `Use ${url}, or add the host name to SMART_ALLOWED_HOSTS if it is yours.`
}

const MALFORMED: Readonly<Record<string, string>> = {
  FST_ERR_CTP_INVALID_JSON_BODY: 'The body is not valid JSON.',
  [JSON_EXCESS]: `The JSON body is nested more than ${limits.JSON_DEPTH} levels deep, or has more than ${limits.JSON_VALUES} values.`,
  FST_ERR_CTP_EMPTY_JSON_BODY: 'The body is empty.',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'The length of the body differs from its Content-Length.',
  FST_ERR_BAD_URL: 'The URL is not valid.',
  FST_ERR_MAX_PARAM_LENGTH: 'The URL is too long.',
}

/** Turns an error of fastify or of a handler into a problem. An error that the caller did not cause is unexpected. */
export function toProblem(error: unknown, bodyLimit = BODY_BYTES): HttpProblem {
  const { statusCode, code, validation, message } = toFastifyError(error)
  if (statusCode === 413) return { kind: 'too-large', limit: bodyLimit }
  if (statusCode === 415) return { kind: 'unsupported-media-type' }
  if (statusCode === 404) return { kind: 'not-found' }
  if (statusCode === 503 || isDatabaseUnavailable(error)) return { kind: 'unavailable' }
  if (validation) return { kind: 'malformed', text: describeValidation(message) }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return { kind: 'malformed', text: MALFORMED[code] ?? 'The request is not valid.' }
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

/** Turns `querystring/_count must be integer` into a sentence. Such a message quotes our own schemas, never the value. */
function describeValidation(text: string): string {
  return toSentence(
    text.replace(/^(querystring|body|params|headers)\/?\s*/, '') || 'the request is not valid',
  )
}

const STATUS: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
}

// RFC 9110, 9.1: a method is a token. Anything else is not HTTP, such as TLS on a plain HTTP port.
const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64} /

/** RFC 9110, 15.6.2: an unknown method is 501. */
function chooseStatus({ code, rawPacket }: ClientError): number {
  const start = rawPacket instanceof Buffer ? rawPacket.toString('latin1', 0, 66) : ''
  if (code === 'HPE_INVALID_METHOD' && METHOD.test(start)) return 501
  return STATUS[code] ?? 400
}

interface ClientError extends Error {
  readonly code: string
  readonly rawPacket?: unknown
}

/** Responds to data that is not HTTP, or that arrives too slowly: there is no request yet, only a socket. */
export function answerClientError(this: FastifyInstance, error: ClientError, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const requestId = createRequestId()
  const status = chooseStatus(error)
  this.log.debug({ requestId, status, code: error.code }, 'Unreadable request')
  if (socket.writable) socket.write(formatResponse(status, [`X-Request-Id: ${requestId}`]))
  socket.destroySoon()
}

/** Refuses CONNECT, which requests a tunnel. Node itself closes the connection without a response. */
export function answerConnect(_request: IncomingMessage, socket: Duplex): void {
  socket.end(formatResponse(405, ['Allow: ', `X-Request-Id: ${createRequestId()}`]))
}

const TOO_LARGE = `The request line and headers are larger than ${HEADER_BYTES} bytes.\n`

function formatResponse(status: number, headers: readonly string[]): string {
  const body = status === 431 ? TOO_LARGE : `${STATUS_CODES[status]}\n`
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `Content-Length: ${body.length}`,
    'Content-Type: text/plain; charset=utf-8',
    'Connection: close',
    ...headers,
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}
