import type { FastifyInstance, FastifyReply } from 'fastify'
import { renderErrorPage } from '../../web/index.ts'
import { type AppContext, getPortalUrl, isSampleData } from '../context.ts'
import { beginLaunch } from './begin-launch.ts'
import { finishLaunch } from './finish-launch.ts'
import { makeRoom, planLaunchCookie } from './pending-launch.ts'
import { describeRefusal, findLongParameter, type LaunchRefusal } from './refusal.ts'
import { chooseRefusalTexts } from './refusal-page.ts'

type Query = Readonly<Record<string, unknown>>

/** `/launch` and `/callback`. There is no HEAD route, because both change state. */
export function addLaunchRoutes(app: FastifyInstance, context: AppContext): void {
  app.get<{ Querystring: Query }>('/launch', { exposeHeadRoute: false }, async (request, reply) => {
    const begun = findLongParameter(request.query) ?? (await beginLaunch(context, request.query, request.ip))
    if (begun.kind !== 'begun') return sendRefusal(context, reply, begun)
    const { cookie, cookieValue } = begun.ticket
    for (const { name, attributes } of await makeRoom(context, request.cookies))
      reply.clearCookie(name, attributes)
    return reply.setCookie(cookie.name, cookieValue, cookie.attributes).redirect(begun.url)
  })

  app.get<{ Querystring: Query }>('/callback', { exposeHeadRoute: false }, async (request, reply) => {
    const long = findLongParameter(request.query)
    if (long) return sendRefusal(context, reply, long)
    const { state } = request.query
    if (typeof state !== 'string')
      return sendRefusal(context, reply, {
        kind: 'unknown-state',
        check: 'parameter state is missing or repeated',
      })
    const launch = planLaunchCookie(context, state)
    const session = context.sessionCookie
    const finished = await finishLaunch(context, {
      search: request.url.slice(request.url.indexOf('?')),
      state,
      launchCookie: request.cookies[launch.name] ?? '',
      sessionCookie: request.cookies[session.name],
      requestId: request.id,
    })
    if (finished.kind === 'unknown-state') return sendRefusal(context, reply, finished)
    reply.clearCookie(launch.name, launch.attributes)
    if (finished.kind !== 'opened') return sendRefusal(context, reply, finished)
    return reply.setCookie(session.name, finished.cookie, session.attributes).redirect('/')
  })
}

function sendRefusal(context: AppContext, reply: FastifyReply, refusal: LaunchRefusal): FastifyReply {
  const { status, ...words } = chooseRefusalTexts(refusal, context.settings)
  const check = describeRefusal(refusal, context.settings.app.issuers)
  reply.log.warn({ refusal: refusal.kind, code: words.code, check }, 'Launch refused')
  const page = renderErrorPage({
    ...words,
    reference: reply.request.id,
    now: context.clock(),
    actions: [{ href: getPortalUrl(context.settings), text: 'Go to patients' }],
    bar: { kind: 'app' },
    site: 'Demo app',
    sampleData: isSampleData(context.settings),
  })
  return reply.sendPage(page, { status })
}
