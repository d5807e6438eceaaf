import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { failApp } from '../../app-reasons/index.ts'
import { isFailure } from '../../core/index.ts'
import { linkReference, linkStart } from '../context.ts'
import { nameReason } from '../failure.ts'
import type { AppContext } from '../oauth/context.ts'
import { renderAppErrorPage } from '../page.ts'
import { getSessionPath } from '../session.ts'
import {
  auditSession,
  clearSessionCookie,
  type OpenedSession,
  planSessionCookie,
  readSessionCookies,
} from '../sessions/session-store.ts'
import { isInFrame, type LaunchParameters, renderFramePage, renderReturnPage, testCookies } from './frame.ts'
import { beginLaunch, finishLaunch } from './launch.ts'
import { isWaitingInFrame, type LaunchTicket, makeRoom, planLaunchCookie } from './pending-launch.ts'
import { describeRefusal, findLongParameter, type LaunchRefusal } from './refusal.ts'

type Query = Readonly<Record<string, unknown>>

/** `/launch` and `/callback`. There is no HEAD route, because both change state. */
export function addLaunchRoutes(app: FastifyInstance, context: AppContext): void {
  app.get<{ Querystring: Query }>('/launch', { exposeHeadRoute: false }, async (request, reply) => {
    const long = findLongParameter(request.query)
    if (long) return sendRefusal(context, reply, long)
    const frame = isInFrame(context, request) ? 'silent' : undefined
    const tested = frame && testCookies(context, request, reply)
    if (tested) return tested
    const begun = await beginLaunch(context, request.query, request.ip, frame)
    if (isFailure(begun)) return sendRefusal(context, reply, begun)
    await setLaunchCookie(context, request, reply, begun.ticket)
    return reply.redirect(begun.url)
  })

  app.get<{ Querystring: Query }>('/callback', { exposeHeadRoute: false }, async (request, reply) => {
    const long = findLongParameter(request.query)
    if (long) return sendRefusal(context, reply, long)
    const { state } = request.query
    if (typeof state !== 'string') return sendRefusal(context, reply, failApp('state-missing-in-callback'))
    const launch = planLaunchCookie(context, state)
    const finished = await finishLaunch(context, {
      search: request.url.slice(request.url.indexOf('?')),
      state,
      launchCookie: request.cookies[launch.name] ?? '',
      held: readSessionCookies(context, request),
      requestId: request.id,
      address: request.ip,
    })
    if (
      isFailure(finished) &&
      (finished.reason === 'state-unknown' || finished.reason === 'launch-cookie-missing')
    )
      return (await isWaitingInFrame(context, state))
        ? reply.sendPage(renderReturnPage())
        : sendRefusal(context, reply, finished)
    reply.clearCookie(launch.name, launch.attributes)
    if (isFailure(finished)) return sendRefusal(context, reply, finished)
    return finished.kind === 'needs-window'
      ? askForWindow(context, request, reply, finished.parameters)
      : redirectToSession(context, reply, finished)
  })
}

async function setLaunchCookie(
  context: AppContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { cookie, cookieValue }: LaunchTicket,
): Promise<void> {
  for (const { name, attributes } of await makeRoom(context, request.cookies))
    reply.clearCookie(name, attributes)
  reply.setCookie(cookie.name, cookieValue, cookie.attributes)
}

/** Begins the launch again. Its authorization request is for a window; its cookie stays in the frame. */
async function askForWindow(
  context: AppContext,
  request: FastifyRequest,
  reply: FastifyReply,
  parameters: LaunchParameters,
): Promise<FastifyReply> {
  const begun = await beginLaunch(context, parameters, request.ip, 'window')
  if (isFailure(begun)) return sendRefusal(context, reply, begun)
  await setLaunchCookie(context, request, reply, begun.ticket)
  return reply.sendPage(renderFramePage(parameters, begun.url))
}

function redirectToSession(
  context: AppContext,
  reply: FastifyReply,
  { opened, cookie, closed }: OpenedSession,
): FastifyReply {
  for (const { sessionId } of closed) clearSessionCookie(context, reply, sessionId)
  const { name, attributes } = planSessionCookie(context, opened.sessionId)
  return reply.setCookie(name, cookie, attributes).redirect(getSessionPath(opened))
}

async function sendRefusal(
  context: AppContext,
  reply: FastifyReply,
  refusal: LaunchRefusal,
): Promise<FastifyReply> {
  const { status, check, ...texts } = describeRefusal(refusal)
  const { id, ip } = reply.request
  const { reason } = refusal
  reply.log.warn({ refusal: reason, code: texts.code, check }, 'Launch refused')
  const event = { kind: 'session-open', allowed: false, status, requestId: id, address: ip } as const
  await auditSession(context, undefined, { ...event, reason: check, details: nameReason(refusal) })
  const page = renderAppErrorPage(context, reply.request, {
    ...texts,
    referenceUrl: linkReference(context.settings, id),
    actions: [linkStart(context.settings, 'Go to the start page')],
  })
  return reply.sendPage(page, { status })
}
