import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import type { Schema } from '../../../store/index.ts'
import { renderErrorPage } from '../../../web/index.ts'
import { auditEvent } from '../../base/audit.ts'
import { paths } from '../../base/paths.ts'
import { readParameters } from '../../base/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { hashPassword } from '../../users/accounts.ts'
import { tryLogin } from '../../users/attempt.ts'
import type { Login } from '../../users/find-login.ts'
import { endLogin, requireLogin } from '../../users/login.ts'
import { listOwnPatients } from '../../users/own-records.ts'
import { makeSignedInBar, showsSampleData } from '../page-parts.ts'
import { readAccessLog, renderAccessLogPage } from './access-log.ts'
import {
  findPasswordFault,
  findSignIns,
  type PasswordFault,
  readPasswordForm,
  renderPasswordPage,
  renderSignInsPage,
} from './page.ts'

/**
 * `/account`: users change their password, and end their sign-ins in other browsers. Patient users see who looked at their
 * record.
 */
export function addAccountRoutes(app: FastifyInstance, context: AuthContext): void {
  const {
    login: { passwords },
    developerTools: hasCommandTokens,
  } = context.settings
  const sampleData = showsSampleData(context.settings)
  app.get(
    paths.accountPassword,
    requireLogin(context, async (request, reply, login) =>
      passwords
        ? reply.sendPage(
            renderPasswordPage(login, {
              sampleData,
              isChanged: readParameters(request.query).get('changed') === '1',
            }),
          )
        : sendNoPasswords(context, request, reply, login),
    ),
  )

  app.post(
    paths.accountPassword,
    requireLogin(context, async (request, reply, login) =>
      passwords
        ? changePassword(context, request, reply, login)
        : sendNoPasswords(context, request, reply, login),
    ),
  )

  app.get(
    paths.accountSignIns,
    requireLogin(context, async (_request, reply, login) =>
      reply.sendPage(
        renderSignInsPage(login, await findSignIns(context, login), {
          passwords,
          sampleData,
          hasCommandTokens,
        }),
      ),
    ),
  )

  app.get(
    paths.accountAccessLog,
    requireLogin(context, async (request, reply, login) => {
      const [first, ...others] = await listOwnPatients(context, login.user)
      if (first === undefined) return reply.redirect(paths.manage, 302)
      const log = await readAccessLog(context, login, [first, ...others], readParameters(request.query))
      return reply.sendPage(renderAccessLogPage(context, login, log))
    }),
  )

  app.post(
    paths.accountSignIns,
    requireLogin(context, async (request, reply, login) => {
      const named = readParameters(request.body).get('signIn')
      const others = (await findSignIns(context, login)).filter(({ isCurrent }) => !isCurrent)
      await endSignIns(
        context,
        request,
        login,
        others.filter(({ id }) => named === undefined || id === named).map(({ id }) => id),
      )
      return reply.redirect(paths.accountSignIns, 303)
    }),
  )
}

/** With `smart.login.passwords` off, users sign in with a provider, which has their password. */
function sendNoPasswords(
  { clock }: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
  login: Login,
): FastifyReply {
  const page = renderErrorPage({
    kind: 'refused',
    title: 'You have no password here',
    text: ['You sign in with another provider. Change your password there.'],
    code: '403',
    reference: request.id,
    now: clock(),
    actions: [{ href: paths.accountSignIns, text: 'Your sign-ins' }],
    bar: makeSignedInBar(login, 'account'),
  })
  return reply.sendPage(page, { status: 403 })
}

async function changePassword(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
  login: Login,
): Promise<FastifyReply> {
  const form = readPasswordForm(readParameters(request.body))
  const refuse = (fault: PasswordFault, status = 400) =>
    reply.sendPage(renderPasswordPage(login, { sampleData: showsSampleData(context.settings), fault }), {
      status,
    })
  const fault = findPasswordFault(form)
  if (fault) return refuse(fault)
  const { user } = login
  const attempt = { username: user.username, password: form.current, address: request.ip }
  const result = await tryLogin(context, attempt, async ({ keep }) => {
    const event = { kind: 'admin', allowed: false, status: 401, user, reason: WRONG.text } as const
    await context.store.db.transaction().execute(async trx => {
      await keep?.(trx)
      await auditEvent(context, request, event, trx)
    })
  })
  if (result.kind === 'too-many') {
    reply.header('retry-after', String(result.retryAfterSeconds))
    return refuse(TOO_MANY, 429)
  }
  if (result.kind === 'wrong') return refuse(WRONG, 401)
  const hash = await hashPassword(form.next)
  const isChanged = await context.store.db.transaction().execute(async trx => {
    if (!(await result.confirm(trx, { newHash: hash, loginIdHash: login.idHash }))) return false
    const event = { kind: 'admin', status: 303, user, reason: 'Password changed' } as const
    await auditEvent(context, request, event, trx)
    return true
  })
  if (!isChanged) return changePassword(context, request, reply, login)
  return reply.redirect(`${paths.accountPassword}?changed=1`, 303)
}

const WRONG: PasswordFault = { field: 'current', text: 'The current password is incorrect.' }
const TOO_MANY: PasswordFault = { field: 'current', text: 'Too many attempts. Wait a moment and try again.' }

async function endSignIns(
  context: AuthContext,
  request: FastifyRequest,
  { user }: Login,
  ids: readonly string[],
): Promise<void> {
  const event = { kind: 'logout', status: 303, user } as const
  await context.store.db.transaction().execute(async (trx: Transaction<Schema>) => {
    for (const id of ids) {
      await endLogin(trx, id)
      await auditEvent(context, request, event, trx)
    }
  })
}
