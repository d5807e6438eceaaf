import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Transaction } from 'kysely'
import type { Schema } from '../../../store/index.ts'
import { type Html, html, renderHidden } from '../../../web/ui/index.ts'
import { auditEvent } from '../../base/audit.ts'
import { paths } from '../../base/paths.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { hashPassword, isPasswordOf, PASSWORD_CHANGED } from '../../users/passwords.ts'
import { takeStep } from '../../users/sign-in/sign-in-step.ts'
import { keepAccess } from '../../users/validity/facts.ts'
import {
  findPasswordFault,
  type PasswordFault,
  readNewPassword,
  renderNewPasswordFields,
  SAME_PASSWORD,
} from '../parts/new-password.ts'
import { renderGate } from './page.ts'
import { completeStep, requireStep, type StepRequest } from './step.ts'

/** `/login/new-password`: a user whose password somebody else chose chooses another one before anything else. */
export function addNewPasswordRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(paths.loginNewPassword, requireStep(context, 'new-password', sendForm))
  app.post(paths.loginNewPassword, requireStep(context, 'new-password', changePassword))
}

async function sendForm(
  context: AuthContext,
  reply: FastifyReply,
  { pending, account, formTargets }: StepRequest,
  fault?: PasswordFault,
): Promise<FastifyReply> {
  const page = renderNewPasswordPage(context, account.username, pending?.id, fault)
  return reply.sendPage(page, { status: fault ? 400 : 200, formTargets })
}

async function changePassword(
  context: AuthContext,
  reply: FastifyReply,
  step: StepRequest,
): Promise<FastifyReply> {
  const { found, account, parameters } = step
  const form = readNewPassword(parameters)
  const { username, display_name: displayName } = account
  const fault = findPasswordFault(context, form, { username, displayName })
  if (fault) return sendForm(context, reply, step, fault)
  if (await isPasswordOf(account.password_hash, form.next))
    return sendForm(context, reply, step, SAME_PASSWORD)
  const hash = await hashPassword(form.next)
  const store = async (trx: Transaction<Schema>) => {
    const user = await takeStep(context, trx, found, 'new-password')
    if (!user) return undefined
    const columns = {
      password_hash: hash,
      must_change_password: false,
      password_changed_at: context.clock(),
    }
    await trx.updateTable('clinician').set(columns).where('id', '=', user.id).execute()
    // Apps that the administrator left their access keep it.
    const kept = await keepAccess(trx, { accountId: user.id, mark: found.login.mark, what: 'offline' })
    const event = {
      kind: 'admin',
      status: 303,
      user,
      reason: PASSWORD_CHANGED,
      details: { kept, event: 'password-changed' },
    } as const
    await auditEvent(context, reply.request, event, trx)
    return user
  }
  return completeStep(context, reply, step, { store, methods: found.login.methods })
}

function renderNewPasswordPage(
  context: AuthContext,
  username: string,
  interaction: string | undefined,
  fault: PasswordFault | undefined,
): Html {
  return renderGate(
    { title: 'Choose a password', brand: context.brand },
    html`<div class="signin">
<h1>Choose a password</h1>
<p class="muted">An administrator set your current password. Choose one that only you know.</p>
<form method="post" action="${paths.loginNewPassword}">
${renderHidden({ interaction })}
<input type="hidden" name="username" value="${username}" autocomplete="username">
${renderNewPasswordFields(context, fault)}
<button class="btn btn--wide">Save and sign in</button>
</form></div>`,
  )
}
