import type { FastifyInstance, FastifyReply } from 'fastify'
import { answerTo, type ErrorStyle } from './answers.ts'
import { createPagePolicy, type PagePolicy } from './headers.ts'
import type { Html } from './html.ts'
import type { Problem } from './problems.ts'

declare module 'fastify' {
  interface FastifyReply {
    /** Sends a page with the strict policy; more is allowed only by name. */
    sendPage(page: Html, options?: { readonly status?: number } & PagePolicy): FastifyReply
    /** Answers with a problem in the style of the address: page, OperationOutcome or OAuth error. */
    sendProblem(problem: Problem): FastifyReply
  }
}

export interface ReplyOptions {
  readonly clock: () => number
  readonly home: string
  readonly errorStyle: (path: string) => ErrorStyle
}

/** The path of a request without its query, which may hold a launch token, a code or a name. */
export function pathOf(url: string): string {
  const query = url.search(/[?#]/)
  return query < 0 ? url : url.slice(0, query)
}

export function decorateReply(app: FastifyInstance, options: ReplyOptions): void {
  app.decorateReply(
    'sendPage',
    function sendPage(this: FastifyReply, page, { status = 200, ...policy } = {}) {
      return (
        this.code(status)
          .type('text/html; charset=utf-8')
          .header('content-security-policy', createPagePolicy(policy))
          // Under no-referrer a browser sends forms with `Origin: null`, which cannot be told from another site's. Other
          // origins receive no referrer with this policy either.
          .header('referrer-policy', 'same-origin')
          .send(page.markup)
      )
    },
  )
  app.decorateReply('sendProblem', function sendProblem(this: FastifyReply, problem) {
    return answerProblem(this, problem, options)
  })
}

/** Without the decoration: fastify makes a bare reply for an address that it cannot read. */
export function answerProblem(reply: FastifyReply, problem: Problem, options: ReplyOptions): FastifyReply {
  const { id, url } = reply.request
  const occasion = { reference: id, now: options.clock(), home: options.home }
  const answer = answerTo(problem, options.errorStyle(pathOf(url)), occasion)
  return reply.code(answer.status).headers(answer.headers).type(answer.type).send(answer.body)
}
