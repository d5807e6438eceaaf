import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import { isFailure } from '../../../../core/index.ts'
import { lockRows, type Schema } from '../../../../store/index.ts'
import { Html, html, renderPage } from '../../../../web/ui/index.ts'
import { auditEvent } from '../../../base/audit.ts'
import { LIMITS, RECENT_SECONDS } from '../../../base/limits.ts'
import { paths } from '../../../base/paths.ts'
import { joinRepeated, type Parameters, readParameters } from '../../../base/request.ts'
import type { AuthContext } from '../../../oauth/context.ts'
import { makeSignedInBar, sendErrorPage } from '../../../pages/parts/page-parts.ts'
import { signInAgain } from '../../../pages/parts/sign-in-again.ts'
import { findLoginByHash, type Login } from '../../../users/find-login.ts'
import { findCurrentLogin, findStartPage, sendToLogin } from '../../../users/login.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  describeAttempt,
  givesAccess,
  isAllowed,
  makeAdmin,
  requireRecentSignIn,
} from '../../base/action.ts'

/** A request of an administrator, or of an auditor. */
export interface AdminRequest {
  readonly context: AuthContext
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly login: Login
  /** For the operations. */
  readonly admin: Admin
  /** False for an auditor: pages do not offer what would be refused. */
  readonly mayChange: boolean
  /** The parameters of the path, by name. */
  readonly params: Readonly<Record<string, string>>
  /** The query of a GET, the form of a POST. */
  readonly form: Parameters
}

/**
 * A page or an action of the administration area. If its operation gives access, it asks for a recent sign-in (ADMIN-22).
 * Auditors open it if it has no operation, or one that only reads (ADMIN-29).
 */
export type AdminRoute = {
  /** Below `/admin`. */
  readonly path: string
  handle(request: AdminRequest): Promise<Answer | AdminFailure>
} & (
  | {
      readonly method: 'GET'
      /** The operation of the form that the page shows. */
      readonly operation?: AdminOperation
    }
  | {
      readonly method: 'POST'
      readonly operation: AdminOperation
      /** Of a form with a file. */
      readonly bodyBytes?: number
    }
)

/** A page, the path of the next page below the area, or a response that the route has sent. */
export type Answer = Html | string | FastifyReply

/** Adds routes of the area. This function alone decides who may use them (ADMIN-20). */
export function addAdminRoutes(
  app: FastifyInstance,
  context: AuthContext,
  routes: readonly AdminRoute[],
): void {
  void app.register(async area => {
    acceptFiles(area)
    for (const route of routes) addRoute(area, context, route)
  })
}

/** A form with files: each field, and the text of each file. The limit is that of the route. */
function acceptFiles(area: FastifyInstance): void {
  const options = { parseAs: 'buffer' } as const
  area.addContentTypeParser('multipart/form-data', options, async (request: FastifyRequest, body: Buffer) => {
    const headers = { 'content-type': request.headers['content-type'] ?? '' }
    const form = await new Response(new Uint8Array(body), { headers }).formData().catch(() => undefined)
    if (!form) throw Object.assign(new Error('The form cannot be read'), { statusCode: 400 })
    const fields = [...form].map(async ([name, value]) => [
      name,
      typeof value === 'string' ? value : await value.text(),
    ])
    return Object.fromEntries(await Promise.all(fields))
  })
}

function addRoute(
  area: FastifyInstance,
  context: AuthContext,
  { path, operation, handle, ...route }: AdminRoute,
): void {
  const { method } = route
  const logins = new WeakMap<FastifyRequest, Login>()
  const authorize = async (request: FastifyRequest, reply: FastifyReply) => {
    const login = await findCurrentLogin(context, request)
    if (!login) return sendToLogin(context, request, reply)
    if (!isAllowed(login, operation)) return refuse(context, request, reply, { login, operation })
    logins.set(request, login)
    return undefined
  }
  area.route({
    method,
    bodyLimit: (route.method === 'POST' ? route.bodyBytes : undefined) ?? LIMITS.fileBytes,
    url: `${paths.admin}${path}`,
    // Before the body is read, and again after it, because access may end while it arrives.
    onRequest: authorize,
    preHandler: async (request, reply) =>
      request.body === undefined ? undefined : authorize(request, reply),
    async handler(request, reply) {
      const login = logins.get(request)
      if (!login) return sendToLogin(context, request, reply)
      const admin = asClinician(context, request, login)
      const stale = operation && givesAccess(operation) ? requireRecentSignIn(admin) : undefined
      if (stale && method === 'GET') return signInAgain(context, reply, login, request.url)
      const mayChange = login.admin
      const params = dropNul(request.params)
      const form = readParameters(joinRepeated(method === 'GET' ? request.query : request.body, 'scope'))
      const result =
        stale ?? (await handle({ context, request, reply, login, admin, mayChange, params, form }))
      if (typeof result === 'string') return reply.redirect(`${paths.admin}${result}`, 303)
      if (result instanceof Html) return reply.sendPage(result)
      if (!isFailure(result)) return result
      return result.code === 'forbidden'
        ? refuse(context, request, reply, {
            login: (await findCurrentLogin(context, request)) ?? login,
            operation,
          })
        : sendFailure(context, request, reply, login, result)
    },
  })
}

/** PostgreSQL does not accept a NUL. */
function dropNul(params: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(params ?? {}).filter(([, value]) => !value.includes('\0')))
}

function asClinician(context: AuthContext, request: FastifyRequest, login: Login): Admin {
  const { id, fhirUserId } = login.user
  const authTime = login.isAuthTimeKnown ? login.authTime : 0
  const mayAct = async (db: Kysely<Schema>, operation: AdminOperation) => {
    await lockRows(db, db.selectFrom('clinician').select('id').where('id', '=', id)).execute()
    const now = await findLoginByHash(db, context, login.idHash)
    return now !== undefined && isAllowed(now, operation)
  }
  const actor = { kind: 'clinician', id, fhirUserId, authTime } as const
  return makeAdmin(context, request, { actor, mayAct, isForLoopback: login.isForLoopback })
}

function sendFailure(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
  login: Login,
  { code, status, sentence }: AdminFailure,
): FastifyReply {
  if (code === 'reauthenticate') return reply.sendPage(renderSignInAgain(context, request, login), { status })
  return sendErrorPage(reply, context, {
    status,
    login,
    current: 'admin',
    title: code === 'not_found' ? 'Not found' : 'Nothing changed',
    text: [sentence],
    actions: [{ href: paths.admin, text: 'Administration' }],
  })
}

async function refuse(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { login, operation }: { readonly login: Login; readonly operation: AdminOperation | undefined },
): Promise<FastifyReply> {
  const { user, auditor } = login
  const reason = auditor ? 'Auditors change nothing' : 'Not an administrator'
  const refused = { allowed: false, status: 403, user, reason }
  const attempted = await describeAttempt(context.store, request, operation)
  await auditEvent(context, request, { kind: 'admin', ...refused, method: 'admin', ...attempted })
  if (auditor)
    return sendErrorPage(reply, context, {
      status: 403,
      login,
      current: 'admin',
      title: 'Auditors change nothing',
      text: ['You may see this area, but not change anything in it. Ask an administrator.'],
      actions: [{ href: paths.admin, text: 'Administration' }],
    })
  return sendErrorPage(reply, context, {
    status: 403,
    login,
    title: 'You are not an administrator',
    text: ['This area is for administrators. Another administrator can give you access.'],
    actions: [{ href: findStartPage(login), text: 'Go to the start page' }],
  })
}

/**
 * A form that was sent too late: the page keeps its fields, and sends them again after a sign-in in another tab. This works
 * for every sign-in method, and without scripts.
 */
function renderSignInAgain({ brand }: AuthContext, request: FastifyRequest, login: Login): Html {
  const fields = Object.entries(request.body ?? {}).flatMap(([name, values]) =>
    [values].flat().map(value => [name, String(value)] as const),
  )
  return renderPage(
    { title: 'Sign in again', brand, bar: makeSignedInBar(login, 'admin'), width: 'flow' },
    html`<div class="pagehead"><div><h1>Sign in again</h1>
<p class="pagehead__lead">This change needs a sign-in in the last ${RECENT_SECONDS / 60} minutes. This page keeps your entries.</p></div></div>
<div class="card card__body stack">
<p>First sign in again in a new tab, then return to this tab and continue.</p>
<form method="post" action="${request.url}">${fields.map(
      ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
    )}
<div class="actions"><a class="btn" href="${paths.admin}/sign-in" target="_blank">Sign in again</a><button class="btn btn--quiet">Continue</button></div></form>
</div>`,
  )
}
