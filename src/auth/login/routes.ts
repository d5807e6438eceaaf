import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import type { Schema } from '../../store/index.ts'
import { auditEvent } from '../audit.ts'
import { type Interaction, interactionOf } from '../authorize/interaction.ts'
import { findClient } from '../client/client.ts'
import type { AuthContext } from '../context.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { type AttemptResult, tryLogin } from './attempt.ts'
import { currentLogin, lastLogin, setLoginCookie } from './current-login.ts'
import { beginLogin } from './login.ts'
import { type LoginPageOptions, loginPage } from './page.ts'
import { testLoginOf } from './test-login.ts'

/** `GET /login` shows the form, `POST /login` looks at it (contract 4). */
export function loginRoutes(app: FastifyInstance, context: AuthContext): void {
  const testLogin = testLoginOf(context)

  async function sendForm(reply: FastifyReply, form: LoginForm): Promise<FastifyReply> {
    const { interaction, username, problem, signedOut, status } = form
    const client = interaction && (await findClient(context.store, interaction.request.clientId))
    const options: LoginPageOptions = {
      app: client,
      interactionId: interaction?.id,
      username: username ?? interaction?.request.loginHint,
      testLogin: await testLogin(),
      ...(problem === undefined ? {} : { problem }),
      ...(signedOut === undefined ? {} : { signedOut }),
    }
    // The browser follows the form's redirects up to the client, and the policy holds for all of them.
    const formTargets = interaction ? [interaction.request.redirectUri] : []
    return reply.sendPage(loginPage(options), { status: status ?? 200, formTargets })
  }

  app.get(paths.login, async (request, reply) => {
    const query = readParameters(request.query)
    // Said only to one for whom it is true: anybody can make a link.
    const signedOut = query.get('signed-out') === '1' && !(await currentLogin(context, request))
    return sendForm(reply, { interaction: await interactionOf(context, query), signedOut })
  })

  app.post(paths.login, async (request, reply) => {
    const form = readParameters(request.body)
    const interaction = await interactionOf(context, form)
    const username = form.get('username') ?? ''
    const password = form.get('password') ?? ''
    const result = await tryLogin(context, { username, password, address: request.ip }, ({ kind, keep }) =>
      auditFailure(context, request, username, { ...under(interaction), ...REFUSED_EVENTS[kind] }, keep),
    )
    switch (result.kind) {
      case 'wrong':
        return sendForm(reply, { interaction, username, status: 401, problem: WRONG })
      case 'too-many':
        reply.header('retry-after', String(result.retryAfterSeconds))
        return sendForm(reply, { interaction, username, status: 429, problem: tooMany(result) })
      case 'right':
        return welcome(context, request, reply, result, interaction)
    }
  })
}

interface LoginForm {
  readonly interaction: Interaction | undefined
  readonly username?: string
  readonly status?: 401 | 429
  readonly problem?: string
  readonly signedOut?: boolean
}

const WRONG = 'The username or password is not right. Check both and try again.'

function tooMany({ retryAfterSeconds }: Extract<AttemptResult, { kind: 'too-many' }>): string {
  if (retryAfterSeconds < 60) return 'Too many attempts. Wait a moment and try again.'
  const minutes = Math.ceil(retryAfterSeconds / 60)
  return `Too many attempts. Wait ${minutes === 1 ? 'a minute' : `${minutes} minutes`} and try again.`
}

async function welcome(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { clinician, keep }: Extract<AttemptResult, { kind: 'right' }>,
  interaction: Interaction | undefined,
): Promise<FastifyReply> {
  const before = await lastLogin(context, request)
  const event = { kind: 'login', status: 302, clinician, ...under(interaction) } as const
  const id = await context.store.db.transaction().execute(async trx => {
    await keep(trx)
    const begun = await beginLogin(trx, clinician.id, before, context.clock())
    await auditEvent(context, request, event, trx)
    return begun
  })
  setLoginCookie(context, reply, id)
  request.log.info({ clinicianId: clinician.id }, 'Clinician logged in')
  return reply.redirect(interaction ? `${paths.resume}?interaction=${interaction.id}` : paths.portal, 302)
}

/** Who it was meant to be is told only where there is such a clinician: a mistyped field may hold the password. */
async function auditFailure(
  context: AuthContext,
  request: FastifyRequest,
  username: string,
  failure: { readonly status: number; readonly reason: string },
  keep?: (trx: Transaction<Schema>) => Promise<void>,
): Promise<void> {
  const clinician = await context.store.db
    .selectFrom('clinician')
    .select(['id', 'fhir_user_id'])
    .where('username', '=', username)
    .executeTakeFirst()
  const event = {
    ...({ kind: 'login', allowed: false, anonymous: true, ...failure } as const),
    clinician: clinician && { id: clinician.id, fhirUserId: clinician.fhir_user_id },
  }
  if (!keep) return auditEvent(context, request, event)
  await context.store.db.transaction().execute(async trx => {
    await keep(trx)
    await auditEvent(context, request, event, trx)
  })
}

const REFUSED_EVENTS = {
  wrong: { status: 401, reason: 'Wrong username or password' },
  'too-many': { status: 429, reason: 'Too many failed attempts' },
} as const

/** A login that an app waits for belongs to that app's launch. */
function under(interaction: Interaction | undefined) {
  return interaction && { client: interaction.request.clientId, launch: interaction.request.launchId }
}
