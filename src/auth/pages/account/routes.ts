import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isFailure } from '../../../core/index.ts'
import { auditEvent, describeRefused } from '../../base/audit.ts'
import { paths } from '../../base/paths.ts'
import { readParameters } from '../../base/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { tryLogin } from '../../users/attempt.ts'
import type { Login } from '../../users/find-login.ts'
import { endLogin, requireLogin } from '../../users/login.ts'
import { hashPassword, PASSWORD_CHANGED } from '../../users/passwords.ts'
import { readBrowser } from '../../users/senders.ts'
import { findSignIns, type SignIn } from '../../users/sign-ins.ts'
import { PAGE_REASONS } from '../../words/reasons.ts'
import {
  findPasswordFault,
  type PasswordFault,
  readNewPassword,
  SAME_PASSWORD,
} from '../parts/new-password.ts'
import { sendErrorPage } from '../parts/page-parts.ts'
import { renderAccountPage } from './overview.ts'
import { renderPasswordPage, renderSignInsPage } from './page.ts'

/** `/account`: users see the state of their account, change their password, and end their sign-ins in other browsers. */
export function addAccountRoutes(app: FastifyInstance, context: AuthContext): void {
  const { passwords } = context.settings.login
  app.get(
    paths.account,
    requireLogin(context, async (_request, reply, login) =>
      reply.sendPage(await renderAccountPage(context, login)),
    ),
  )

  app.get(
    paths.accountPassword,
    requireLogin(context, async (request, reply, login) => {
      if (!passwords) return sendNoPasswords(context, reply, login)
      const isChanged = readParameters(request.query).get('changed') === '1'
      return reply.sendPage(renderPasswordPage(context, login, { isChanged }))
    }),
  )

  app.post(
    paths.accountPassword,
    requireLogin(context, async (request, reply, login) =>
      passwords ? changePassword(context, request, reply, login) : sendNoPasswords(context, reply, login),
    ),
  )

  app.get(
    paths.accountSignIns,
    requireLogin(context, async (_request, reply, login) =>
      reply.sendPage(renderSignInsPage(context, login, await findOwnSignIns(context, login))),
    ),
  )

  app.post(
    paths.accountSignIns,
    requireLogin(context, async (request, reply, login) => {
      const named = readParameters(request.body).get('signIn')
      const ended = (await findOwnSignIns(context, login)).filter(
        ({ id }) => id !== login.idHash && (named === undefined || id === named),
      )
      await context.store.db.transaction().execute(async trx => {
        for (const { id } of ended) {
          const details = { ended: await endLogin(trx, id) }
          await auditEvent(context, request, { kind: 'logout', status: 303, user: login.user, details }, trx)
        }
      })
      return reply.redirect(paths.accountSignIns, 303)
    }),
  )
}

/** This browser first. */
async function findOwnSignIns(context: AuthContext, login: Login): Promise<readonly SignIn[]> {
  const signIns = await findSignIns(context, login.user.id)
  return signIns.toSorted((a, b) => Number(b.id === login.idHash) - Number(a.id === login.idHash))
}

/** With `smart.login.passwords` off, users sign in with a provider, which has their password. */
function sendNoPasswords(context: AuthContext, reply: FastifyReply, login: Login): FastifyReply {
  return sendErrorPage(reply, context, {
    status: 403,
    title: 'You have no password here',
    text: ['You sign in with another provider. Change your password there.'],
    actions: [{ href: paths.account, text: 'Account' }],
    login,
    current: 'account',
  })
}

async function changePassword(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
  login: Login,
): Promise<FastifyReply> {
  const parameters = readParameters(request.body)
  const current = parameters.get('current')
  const form = readNewPassword(parameters)
  const refuse = (fault: PasswordFault, status = 400) =>
    reply.sendPage(renderPasswordPage(context, login, { fault }), { status })
  const { user } = login
  if (current === undefined) return refuse({ field: 'current', text: 'Enter your current password.' })
  if (form.next === current) return refuse(SAME_PASSWORD)
  const fault = findPasswordFault(context, form, user)
  if (fault) return refuse(fault)
  const browser = readBrowser(context, request)
  const attempt = { username: user.username, password: current, address: request.ip, browser }
  const result = await tryLogin(context, attempt, async ({ keep }) => {
    const event = { kind: 'admin', ...describeRefused('current-password-wrong'), user } as const
    await context.store.db.transaction().execute(async trx => {
      await keep(trx)
      await auditEvent(context, request, event, trx)
    })
  })
  if (isFailure(result) && result.reason === 'password-too-many') {
    reply.header('retry-after', String(result.retryAfterSeconds))
    return refuse(TOO_MANY, 429)
  }
  if (isFailure(result)) return refuse(WRONG, 401)
  const hash = await hashPassword(form.next)
  const isChanged = await context.store.db.transaction().execute(async trx => {
    const details = await result.confirm(trx, { newHash: hash, loginIdHash: login.idHash })
    if (!details) return false
    const event = {
      kind: 'admin',
      status: 303,
      user,
      reason: PASSWORD_CHANGED,
      details: { ...details, event: 'password-changed' },
    } as const
    await auditEvent(context, request, event, trx)
    return true
  })
  if (!isChanged) return changePassword(context, request, reply, login)
  return reply.redirect(`${paths.accountPassword}?changed=1`, 303)
}

const WRONG: PasswordFault = {
  field: 'current',
  text: PAGE_REASONS['current-password-wrong'].sentence,
}
const TOO_MANY: PasswordFault = { field: 'current', text: 'Too many attempts. Wait a moment and try again.' }
