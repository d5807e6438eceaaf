import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createOutcome } from '../../fhir/index.ts'
import type { Bar, Brand, Html } from '../ui/index.ts'
import { renderErrorPage } from '../ui/index.ts'
import { createPagePolicy, type PagePolicy } from './headers.ts'
import { describeProblem, type HttpProblem } from './problems.ts'

declare module 'fastify' {
  interface FastifyReply {
    /** Sends a page with the strict content security policy and the given exceptions. */
    sendPage(page: Html, options?: { readonly status?: number } & PagePolicy): FastifyReply
    /** Sends a file that the browser stores, in parts. */
    sendDownload(name: string, type: string, parts: AsyncIterable<string> | Iterable<string>): FastifyReply
    /** Sends an error in the format of the path: page, OperationOutcome or OAuth error. */
    sendProblem(problem: HttpProblem): FastifyReply
  }
}

export interface ReplyOptions {
  readonly clock: () => number
  readonly home: string
  readonly errorStyle: (path: string) => ErrorStyle
  readonly frameOrigins: readonly string[]
  readonly brand: Brand | undefined
  /** The top bar of the user who is signed in. Undefined at once if nobody is. */
  readonly findBar: ((request: FastifyRequest) => Promise<Bar | undefined> | undefined) | undefined
}

/** Returns the path of a request without its query, which may contain a launch token, a code or a name. */
export function stripQuery(url: string): string {
  const query = url.search(/[?#]/)
  return query < 0 ? url : url.slice(0, query)
}

export function decorateReply(app: FastifyInstance, options: ReplyOptions): void {
  app.decorateReply(
    'sendPage',
    function sendPage(this: FastifyReply, page, { status = 200, ...policy } = {}) {
      allowFrames(this, options)
      return (
        this.code(status)
          .type('text/html; charset=utf-8')
          .header(
            'content-security-policy',
            createPagePolicy({ frameOrigins: options.frameOrigins, ...policy }),
          )
          // Under no-referrer a browser sends forms with `Origin: null`, like a form of another site. With this policy,
          // other origins receive no referrer either.
          .header('referrer-policy', 'same-origin')
          .send(page.markup)
      )
    },
  )
  app.decorateReply('sendDownload', function sendDownload(this: FastifyReply, name, type, parts) {
    return this.type(type)
      .header('content-disposition', `attachment; filename="${name}"`)
      .send(Readable.from(parts))
  })
  app.decorateReply('sendProblem', function sendProblem(this: FastifyReply, problem) {
    const { findBar, errorStyle } = options
    const hasBar = WITH_BAR.has(problem.kind) && errorStyle(stripQuery(this.request.url)) === 'page'
    const finding = hasBar ? findBar?.(this.request) : undefined
    if (!finding) return sendProblemReply(this, problem, options)
    // fastify waits for a reply that is sent later.
    void finding.catch(() => undefined).then(bar => sendProblemReply(this, problem, options, bar))
    return this
  })
}

/** The problems of requests that could have come from a page of this server. */
const WITH_BAR: ReadonlySet<HttpProblem['kind']> = new Set([
  'not-found',
  'method-not-allowed',
  'too-large',
  'unsupported-media-type',
  'unexpected',
])

/** `frame-ancestors` of the page names the origins. */
function allowFrames(reply: FastifyReply, { frameOrigins }: ReplyOptions): void {
  if (frameOrigins.length > 0) reply.removeHeader('x-frame-options')
}

/** Works without `decorateReply`: fastify does not decorate the reply for a URL that it cannot parse. */
export function sendProblemReply(
  reply: FastifyReply,
  problem: HttpProblem,
  options: ReplyOptions,
  bar?: Bar,
): FastifyReply {
  const { id, url } = reply.request
  const { home, frameOrigins, brand } = options
  const context = { reference: id, now: options.clock(), home, frameOrigins, brand, bar }
  allowFrames(reply, options)
  const { status, headers, type, body } = describeResponse(
    problem,
    options.errorStyle(stripQuery(url)),
    context,
  )
  return reply.code(status).headers(headers).type(type).send(body)
}

/** The format of an error response: a page, an OperationOutcome (FHIR or `/api`), or OAuth's JSON. */
export type ErrorStyle = 'page' | 'fhir' | 'api' | 'oauth'

export interface ErrorResponse {
  readonly status: number
  readonly type: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface ErrorContext {
  /** The request id, shown as the reference. */
  readonly reference: string
  readonly now: number
  /** The target of the page's button. */
  readonly home: string
  readonly frameOrigins?: readonly string[]
  readonly brand?: Brand | undefined
  /** Of the user who is signed in. */
  readonly bar?: Bar | undefined
}

export function describeResponse(
  problem: HttpProblem,
  style: ErrorStyle,
  occasion: ErrorContext,
): ErrorResponse {
  const { status } = describeProblem(problem)
  const headers = listHeaders(problem)
  switch (style) {
    case 'page':
      return {
        status,
        headers: { ...headers, 'content-security-policy': createPagePolicy(occasion) },
        type: 'text/html; charset=utf-8',
        body: renderProblemPage(problem, occasion),
      }
    case 'fhir':
      return { status, headers, type: 'application/fhir+json; charset=utf-8', body: formatOutcome(problem) }
    case 'api':
      return { status, headers, type: 'application/json; charset=utf-8', body: formatOutcome(problem) }
    case 'oauth':
      return { status, headers, type: 'application/json; charset=utf-8', body: formatOAuthText(problem) }
  }
}

function listHeaders(problem: HttpProblem): Readonly<Record<string, string>> {
  if (problem.kind === 'method-not-allowed') return { allow: problem.allow.join(', ') }
  if (problem.kind === 'unavailable') return { 'retry-after': '2' }
  return {}
}

function formatOutcome(problem: HttpProblem): string {
  const { issue, text } = describeProblem(problem)
  return JSON.stringify(createOutcome(issue, text))
}

function formatOAuthText(problem: HttpProblem): string {
  const { oauth, text } = describeProblem(problem)
  return JSON.stringify({ error: oauth, error_description: text })
}

/** The problems that are no refusal. */
const UNAVAILABLE: ReadonlySet<HttpProblem['kind']> = new Set(['not-found', 'unavailable', 'unexpected'])

function renderProblemPage(problem: HttpProblem, { reference, now, home, brand, bar }: ErrorContext): string {
  const { title, text, status } = describeProblem(problem)
  return renderErrorPage({
    kind: UNAVAILABLE.has(problem.kind) ? 'unavailable' : 'refused',
    title,
    text: [text],
    code: String(status),
    reference,
    now,
    bar: bar ?? { kind: 'flow', home },
    brand,
    actions: [{ href: home, text: 'Go to the start page' }],
  }).markup
}
