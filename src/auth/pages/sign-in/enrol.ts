import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Transaction } from 'kysely'
import { isFailure } from '../../../core/index.ts'
import type { Schema } from '../../../store/index.ts'
import { html } from '../../../web/ui/index.ts'
import { auditEvent } from '../../base/audit.ts'
import { paths } from '../../base/paths.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { toUser } from '../../users/accounts.ts'
import { storeFactor } from '../../users/factors/enrolment.ts'
import { FACTOR_KINDS } from '../../users/factors/factors.ts'
import { takeStep } from '../../users/sign-in/sign-in-step.ts'
import {
  ENROLMENT_SCRIPTS,
  type EnrolmentFault,
  findStatus,
  readEnrolment,
  renderEnrolment,
} from '../parts/factors/enrolment.ts'
import { CODE_SCRIPTS, renderRecoveryCodes } from '../parts/factors/recovery-codes.ts'
import { renderSupport } from '../parts/page-parts.ts'
import { renderGate } from './page.ts'
import { completeStep, requireStep, type StepRequest } from './step.ts'

/** `/login/enrol`: the step of a sign-in that adds a second factor, where it is required. */
export function addEnrolRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(paths.loginEnrol, requireStep(context, 'enrol', sendForm))
  app.post(paths.loginEnrol, requireStep(context, 'enrol', enrol))
}

async function sendForm(
  context: AuthContext,
  reply: FastifyReply,
  { account, pending, formTargets }: StepRequest,
  fault?: EnrolmentFault,
): Promise<FastifyReply> {
  const form = {
    user: toUser(account),
    action: paths.loginEnrol,
    hidden: { interaction: pending?.id },
    fault,
  }
  const page = renderGate(
    { title: 'Set up two-step sign-in', brand: context.brand, scripts: ENROLMENT_SCRIPTS },
    html`<div class="signin">
<h1>Set up two-step sign-in</h1>
<p class="muted">Your organization requires it: after your password you show something that only you have.</p>
${await renderEnrolment(context, form)}
${renderSupport(context)}</div>`,
  )
  return reply.sendPage(page, { status: findStatus(fault), formTargets })
}

async function enrol(context: AuthContext, reply: FastifyReply, step: StepRequest): Promise<FastifyReply> {
  const { found, account, parameters } = step
  const factor = await readEnrolment(context, account.id, parameters)
  if (isFailure(factor)) return sendForm(context, reply, step, factor)
  let codes: readonly string[] = []
  const store = async (trx: Transaction<Schema>) => {
    const user = await takeStep(context, trx, found, 'enrol')
    const stored = user && (await storeFactor(trx, user.id, factor))
    if (!user || !stored || isFailure(stored)) return undefined
    codes = stored
    const event = { kind: 'admin', status: 200, user, reason: `${FACTOR_KINDS[factor.kind]} added` } as const
    await auditEvent(context, reply.request, event, trx)
    return user
  }
  return completeStep(context, reply, step, {
    store,
    methods: [...found.login.methods, ...factor.methods],
    reason: 'Signed in with a new second factor',
    showFirst: (shown, href) =>
      shown.sendPage(
        renderGate(
          { title: 'Your recovery codes', brand: context.brand, scripts: CODE_SCRIPTS },
          html`<div class="signin"><h1>Your recovery codes</h1>
${renderRecoveryCodes(context, {
  codes,
  username: account.username,
  next: { href, text: 'I saved them, continue' },
  added: factor.kind,
})}</div>`,
        ),
      ),
  })
}
