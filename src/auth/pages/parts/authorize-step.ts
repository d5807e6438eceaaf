import type { FastifyReply, FastifyRequest } from 'fastify'
import { html } from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import { type Parameters, readParameters } from '../../base/request.ts'
import type { NextStep } from '../../oauth/authorize/choose-step.ts'
import type { AuthorizationStep } from '../../oauth/authorize/refuse.ts'
import { findWaiting, resolveOtherOutcome, type Waiting } from '../../oauth/authorize/waiting.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { Login } from '../../users/find-login.ts'
import { findCurrentLogin, isLoginOfBrowser } from '../../users/login.ts'
import { sendErrorPage } from './page-parts.ts'
import { START_PAGE, sendRefusedRequest } from './refused-request.ts'

/** Handles a page of a waiting request, or takes the browser where the request goes instead. */
export function requireWaiting(
  context: AuthContext,
  steps: readonly NextStep['kind'][],
  handle: (reply: FastifyReply, waiting: Waiting, parameters: Parameters) => Promise<FastifyReply>,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  return async (request, reply) => {
    const parameters = readParameters(request.method === 'GET' ? request.query : request.body)
    const waiting = await findWaiting(request, context, parameters, steps)
    return waiting.kind === 'waiting'
      ? handle(reply, waiting, parameters)
      : sendStep(reply, context, await resolveOtherOutcome(request, context, waiting))
  }
}

/** The script that closes a page with patients when the user signs out elsewhere. */
export function listSignOutScripts(
  http: FastifyRequest,
  context: AuthContext,
  login: Login,
): readonly string[] {
  return isLoginOfBrowser(context, http, login) ? ['sign-out.js'] : []
}

/** Takes the browser where an authorization request goes next. */
export async function sendStep(
  reply: FastifyReply,
  context: AuthContext,
  step: AuthorizationStep,
): Promise<FastifyReply> {
  if (step.kind === 'redirect') return reply.redirect(step.url, 302)
  const login = await findCurrentLogin(context, reply.request)
  switch (step.kind) {
    case 'refused':
      return sendRefusedRequest(reply, context, step.refusal, login)
    case 'launched-by-another':
      return sendErrorPage(reply, context, {
        status: 400,
        title: 'Another user launched this app',
        text: [
          html`A launch is only for the user who began it, and you are signed in as ${login?.user.displayName ?? 'somebody else'}. No record was opened.`,
          'Launch the app again from the patient list.',
        ],
        code: 'invalid_request',
        actions: [{ href: paths.portal, text: 'Go to patients' }],
        login,
        isRecorded: true,
      })
    case 'opens-no-records':
      return sendErrorPage(reply, context, {
        status: 403,
        title: 'This account opens no patient records',
        text: [
          html`You are signed in as ${login?.user.displayName ?? 'another user'}, with an account for administration only. No record was opened.`,
          'If you also have an account as a clinician, sign out, and open the app again with that account.',
        ],
        code: 'access_denied',
        actions: [{ href: paths.account, text: 'Account' }],
        login,
      })
    case 'expired':
      return sendErrorPage(reply, context, {
        kind: 'ended',
        status: 400,
        title: 'This request was already answered',
        text: [
          'It was answered before, or it took longer than 10 minutes. This page changed nothing: apps that you allowed keep their access until it expires, or until you end it under “Apps with access”.',
          'To use the app, open it again.',
        ],
        code: login?.mayViewActivity === true ? 'invalid_request' : undefined,
        actions: [START_PAGE, ...(login ? [{ href: paths.manage, text: 'Apps with access' }] : [])],
        login,
        isRecorded: true,
      })
  }
}
