import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Kysely, Transaction } from 'kysely'
import type { Schema } from '../../../store/index.ts'
import { type Html, html, renderAlert, renderField, renderHidden } from '../../../web/ui/index.ts'
import { auditEvent, describeRefused } from '../../base/audit.ts'
import { paths } from '../../base/paths.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { createAttemptLimit, type Reservation } from '../../users/attempt.ts'
import { consumeTotp, findTotp } from '../../users/factors/authenticator-app.ts'
import { listFactors } from '../../users/factors/factors.ts'
import { METHODS } from '../../users/factors/methods.ts'
import {
  consumePasskey,
  findRelyingParty,
  requestPasskey,
  verifyPasskey,
} from '../../users/factors/passkeys.ts'
import {
  consumeRecoveryCode,
  countRecoveryCodes,
  hasRecoveryCode,
  readRecoveryCode,
} from '../../users/factors/recovery-codes.ts'
import { addWrongProof, type EnteredProof, reserveCode } from '../../users/factors/wrong-proofs.ts'
import { findSender, readBrowser } from '../../users/senders.ts'
import { takeStep } from '../../users/sign-in/sign-in-step.ts'
import { renderPasskeyForm } from '../parts/factors/passkey-form.ts'
import { describeCodesLeft } from '../parts/factors/recovery-codes.ts'
import { renderSupport } from '../parts/page-parts.ts'
import { describeLaunch } from './complete.ts'
import { renderGate } from './page.ts'
import { completeStep, requireStep, type StepRequest } from './step.ts'

/** `/login/second-factor`: the step of a sign-in that asks for a second factor. */
export function addSecondFactorRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(paths.loginFactor, requireStep(context, 'second-factor', sendForm))
  app.post(paths.loginFactor, requireStep(context, 'second-factor', checkFactor))
}

async function sendForm(
  context: AuthContext,
  reply: FastifyReply,
  step: StepRequest,
  problem?: { readonly status: 401 | 429; readonly text: string },
): Promise<FastifyReply> {
  const { found, account, pending, formTargets } = step
  const factors = await listFactors(context.store.db, account.id)
  const passkeys = factors.filter(({ kind }) => kind === 'passkey')
  const party = passkeys.length > 0 ? findRelyingParty(context.settings) : undefined
  const hidden = { interaction: pending?.id }
  const hasApp = passkeys.length < factors.length
  const page = renderGate(
    { title: 'Two-step sign-in', brand: context.brand, scripts: ['passkey.js'] },
    html`<div class="signin">
<h1>Two-step sign-in</h1>
<p class="muted">The second step, after your password. You are signing in as <b><bdi>${account.display_name}</bdi></b>.</p>
${
  party &&
  html`${renderPasskeyForm({ action: paths.loginFactor, hidden, request: requestPasskey(party, found.challenge, passkeys), button: 'Use your passkey' })}
<p class="muted" data-without-passkey>This browser cannot use your passkey.</p>`
}
<form method="post" action="${paths.loginFactor}">
${renderHidden(hidden)}
${renderField({
  name: 'code',
  label: hasApp ? 'Code' : 'Recovery code',
  autocomplete: 'one-time-code',
  required: true,
  autofocus: !party,
  error: problem?.text,
  hint: hasApp
    ? 'The 6 digits that your authenticator app shows now, or one of your recovery codes.'
    : 'Use one if you do not have your passkey with you. Each of your recovery codes works once.',
})}
<button class="btn btn--wide${party && ' btn--quiet'}">Continue</button>
</form>
<p class="muted">No phone, no passkey and no recovery codes? An administrator can reset your two-step sign-in.</p>
${renderSupport(context)}
</div>`,
  )
  return reply.sendPage(page, { status: problem?.status ?? 200, formTargets })
}

/** What shows that the user has a second factor, and what uses it up. */
interface Proof {
  readonly methods: readonly string[]
  readonly reason: string
  readonly isRecovery?: true
  consume(trx: Kysely<Schema>): Promise<boolean>
}

async function findProof(
  context: AuthContext,
  { found, account, parameters }: StepRequest,
): Promise<Proof | undefined> {
  const { store, settings, clock } = context
  const userId = account.id
  const factors = await listFactors(store.db, userId)
  const credential = parameters.get('credential')
  if (credential !== undefined) {
    const party = findRelyingParty(settings)
    const used = party && (await verifyPasskey(party, found.challenge, factors, credential))
    return (
      used && {
        methods: METHODS.passkey,
        reason: 'Signed in with password and passkey',
        consume: trx => consumePasskey(trx, used, clock()),
      }
    )
  }
  const text = parameters.get('code') ?? ''
  const recovery = readRecoveryCode(text)
  if (recovery !== undefined)
    return (await hasRecoveryCode(store.db, userId, recovery))
      ? {
          methods: METHODS.code,
          reason: 'Signed in with a recovery code',
          isRecovery: true,
          consume: trx => consumeRecoveryCode(trx, userId, recovery),
        }
      : undefined
  const code = findTotp(context, factors, text.replace(/\s/g, ''))
  return (
    code && {
      methods: METHODS.code,
      reason: 'Signed in with an authenticator app',
      consume: trx => consumeTotp(trx, code, clock()),
    }
  )
}

/**
 * Whoever has a passkey or a recovery code gets in, whatever others tried: nobody can guess them. A one-time code can be
 * guessed, so it counts as wrong until it is accepted, and none is accepted beyond the limits of its sender.
 */
async function checkFactor(
  context: AuthContext,
  reply: FastifyReply,
  step: StepRequest,
): Promise<FastifyReply> {
  const { found, account, pending } = step
  const { db } = context.store
  const address = reply.request.ip
  const sender = await findSender(db, account.id, { address, browser: readBrowser(context, reply.request) })
  const limit = createAttemptLimit(context, {
    username: `second factor/${account.id}`,
    address,
    apart: sender.browser,
  })
  const kind = findKind(step)
  const entered = { userId: account.id, kind, sender: sender.hash, address }
  const refuse = async (reason: FactorReason, text: string) => {
    const refused = describeRefused(reason)
    const { status } = refused
    context.metrics.signIns.add(['second-factor', status === 429 ? 'too-many' : 'wrong'])
    const user = { id: account.id, fhirUserId: account.fhir_user_id }
    const event = { kind: 'login', ...refused, user, ...describeLaunch(pending) } as const
    await auditEvent(context, reply.request, event)
    return sendForm(context, reply, step, { status, text })
  }
  const refuseMany = (reason: FactorReason) => {
    reply.header('retry-after', String(context.settings.loginFailureWindowSeconds))
    return refuse(reason, TOO_MANY)
  }
  const reserved = kind === 'code' ? await reserveGuess() : undefined
  if (reserved === 'too-many') return refuseMany('factor-too-many')
  if (reserved === 'too-many-today') return refuse('factor-too-many-today', TOO_MANY_CODES)
  const proof = await findProof(context, step)
  if (!proof && reserved) return refuse('factor-wrong', WRONG[kind])
  if (!proof) {
    const isMany = (await limit.wait()) > 0
    await limit.add(db)
    await addWrongProof(context, entered)
    return isMany ? refuseMany('factor-wrong-again') : refuse('factor-wrong', WRONG[kind])
  }
  let codesLeft = 0
  const store = async (trx: Transaction<Schema>) => {
    const user = await takeStep(context, trx, found, 'second-factor')
    if (!user || !(await proof.consume(trx))) return undefined
    await limit.clear(trx)
    await reserved?.release(trx)
    if (proof.isRecovery) codesLeft = await countRecoveryCodes(trx, user.id)
    return user
  }
  return completeStep(context, reply, step, {
    store,
    methods: [...found.login.methods, ...proof.methods],
    reason: proof.reason,
    ...(proof.isRecovery && {
      showFirst: (shown: FastifyReply, next: string) =>
        shown.sendPage(renderCodesLeft(context, codesLeft, next)),
    }),
  })

  /** Counts a one-time code as wrong until it is accepted. */
  async function reserveGuess(): Promise<Reservation | 'too-many' | 'too-many-today'> {
    const attempt = await limit.reserve()
    if (!attempt) return 'too-many'
    const guess = await reserveCode(context, entered)
    if (!guess) {
      await attempt.release(db)
      return 'too-many-today'
    }
    return {
      async release(trx) {
        await attempt.release(trx)
        await guess.release(trx)
      },
    }
  }
}

type FactorReason = 'factor-wrong' | 'factor-wrong-again' | 'factor-too-many' | 'factor-too-many-today'

/** Authenticator apps show digits. Recovery codes have letters too, and a mistyped one of another length is no guess at digits. */
function findKind({ parameters }: StepRequest): EnteredProof['kind'] {
  if (parameters.get('credential') !== undefined) return 'passkey'
  const text = parameters.get('code') ?? ''
  return /^[\d\s]*$/.test(text) && readRecoveryCode(text) === undefined ? 'code' : 'recovery-code'
}

const WRONG: Readonly<Record<EnteredProof['kind'], string>> = {
  passkey: 'The passkey could not be verified. Sign in again, or use a code.',
  code: 'This code is wrong or was used before. Wait for the next one.',
  'recovery-code':
    'This recovery code is wrong or was used before. Check every character, or use another one.',
}

const TOO_MANY =
  'Too many wrong codes. Use a recovery code or a passkey, or wait a few minutes and try again.'

const TOO_MANY_CODES =
  'Too many wrong codes for this account in 24 hours. Use a recovery code or a passkey, or ask an administrator.'

/** The user is signed in, and sees that the code is used up. */
function renderCodesLeft({ brand }: AuthContext, left: number, next: string): Html {
  return renderGate(
    { title: 'You used a recovery code', brand },
    html`<div class="signin"><h1>You used a recovery code</h1>
<p class="muted">It does not work again: cross it out.</p>
<div class="stack after">${renderAlert(`${describeCodesLeft(left)}.`, left < 3 ? 'Make new ones now.' : '', left < 3 ? 'warn' : undefined)}
<p>If you lost your phone or passkey, add a new one, and remove the lost one.</p>
<div class="actions"><a class="btn" href="${next}">Continue</a><a class="btn btn--quiet" href="${paths.accountFactors}">Two-step sign-in</a></div></div></div>`,
  )
}
