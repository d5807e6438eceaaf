import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isRedirecting } from '../../../config/index.ts'
import { isFailure, toPlainLine } from '../../../core/index.ts'
import {
  type Html,
  html,
  renderAlert,
  renderDanger,
  renderDateTime,
  renderEmptyState,
  renderHidden,
  renderPageHead,
  renderTable,
} from '../../../web/ui/index.ts'
import { auditEvent } from '../../base/audit.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { type Parameters, readParameters } from '../../base/request.ts'
import { runTransaction } from '../../base/transaction.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { storeFactor } from '../../users/factors/enrolment.ts'
import { FACTOR_KINDS, type Factor, listFactors } from '../../users/factors/factors.ts'
import {
  endOtherSignIns,
  mustKeepFactor,
  REQUIRED,
  removeFactor,
  renameFactor,
} from '../../users/factors/own-factors.ts'
import { countRecoveryCodes, replaceRecoveryCodes } from '../../users/factors/recovery-codes.ts'
import { findWrongProofs } from '../../users/factors/wrong-proofs.ts'
import type { Login } from '../../users/find-login.ts'
import { requireLogin } from '../../users/login.ts'
import { isRecentLogin } from '../../users/login-rights.ts'
import {
  ENROLMENT_SCRIPTS,
  type EnrolmentFault,
  findStatus,
  readEnrolment,
  renderEnrolment,
} from '../parts/factors/enrolment.ts'
import {
  CODE_SCRIPTS,
  describeCodesLeft,
  ON,
  renderAdded,
  renderRecoveryCodes,
} from '../parts/factors/recovery-codes.ts'
import { renderWrongProofs } from '../parts/factors/wrong-proofs.ts'
import { renderBack, renderSignedInPage, renderSupport, sendErrorPage } from '../parts/page-parts.ts'
import { signInAgain } from '../parts/sign-in-again.ts'

/** The name of the page, wherever it is linked to. */
const TITLE = 'Two-step sign-in'

interface Visit {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly login: Login
  readonly parameters: Parameters
}

type Handle = (context: AuthContext, visit: Visit) => Promise<FastifyReply>

/** `/account/factors`: users list, add, rename and remove their second factors, and replace their recovery codes. */
export function addFactorRoutes(app: FastifyInstance, context: AuthContext): void {
  const serve = (handle: Handle, needsRecentSignIn: boolean) =>
    requireLogin(context, async (request, reply, login) => {
      if (isRedirecting(context.rules.findByIssuer(login.issuer)))
        return sendOfProvider(context, reply, login)
      if (needsRecentSignIn && !isRecentLogin(login, context.clock()))
        return signInAgain(
          context,
          reply,
          login,
          request.method === 'GET' ? request.url : paths.accountFactors,
        )
      const parameters = readParameters(request.method === 'GET' ? request.query : request.body)
      return handle(context, { request, reply, login, parameters })
    })
  app.get(paths.accountFactors, serve(sendList, false))
  app.post(paths.accountFactors, serve(rename, false))
  app.get(paths.accountFactorsAdd, serve(sendAddForm, true))
  app.post(paths.accountFactorsAdd, serve(add, true))
  app.get(paths.accountFactorsRemove, serve(askToRemove, true))
  app.post(paths.accountFactorsRemove, serve(remove, true))
  app.post(paths.accountFactorsRecoveryCodes, serve(sendNewCodes, true))
}

/** An OpenID provider asks for a second factor itself. */
function sendOfProvider(context: AuthContext, reply: FastifyReply, login: Login): FastifyReply {
  return sendErrorPage(reply, context, {
    status: 403,
    title: 'Two-step sign-in is not set up here',
    text: ['You sign in with another provider. Set it up there.'],
    actions: [{ href: paths.account, text: 'Account' }],
    login,
    current: 'account',
  })
}

async function sendList(context: AuthContext, { reply, login, parameters }: Visit): Promise<FastifyReply> {
  const { db } = context.store
  const factors = await listFactors(db, login.user.id)
  const codes = factors.length > 0 ? await countRecoveryCodes(db, login.user.id) : 0
  const wrong = await findWrongProofs(db, login.user.id, context.clock())
  const canAdd = factors.length < LIMITS.factors
  // Only if it is true: it may have been removed when the URL is reloaded.
  const added = factors.find(({ kind }) => kind === parameters.get('added'))
  const add = html`<a class="btn" href="${paths.accountFactorsAdd}">Add a second step</a>`
  const lead = mustKeepFactor(context, login)
    ? 'After your password you show something that only you have, such as your phone. Your organization requires it.'
    : 'After your password you show something that only you have, such as your phone. A stolen password is then not enough to sign in.'
  return reply.sendPage(
    renderSignedInPage(
      context,
      login,
      { title: TITLE, current: 'account' },
      html`${renderBack(paths.account, 'Account')}${renderPageHead(TITLE, lead, factors.length > 0 && canAdd && add)}
${
  factors.length === 0
    ? html`<div class="card">${renderEmptyState({
        title: 'Two-step sign-in is off',
        text: 'You sign in with your password alone.',
        action: { href: paths.accountFactorsAdd, text: 'Set it up' },
      })}</div>`
    : html`<div class="stack">${wrong && renderWrongProofs(wrong)}${added ? renderAdded(added.kind) : renderAlert(ON, 'You are asked for one of these steps when you sign in.', 'ok')}${renderFactors(factors)}${renderCodesCard(codes)}</div>`
}
${renderSupport(context)}`,
    ),
  )
}

function renderFactors(factors: readonly Factor[]): Html {
  return html`<div class="card card--clip">${renderTable(
    {
      caption: 'Your second steps',
      kind: 'table--stack',
      columns: ['Name', 'Kind', 'Added', 'Last used', { head: 'Action', isHidden: true }],
    },
    factors.map(({ id, kind, name, created_at, used_at }) => [
      html`<form class="rename" method="post" action="${paths.accountFactors}">${renderHidden({ factor: id })}<input class="input" name="name" value="${name}" maxlength="${LIMITS.factorNameCharacters}" aria-label="Name of ${name}" autocomplete="off" required><button class="btn btn--quiet btn--small">Rename<span class="sr"> ${name}</span></button></form>`,
      FACTOR_KINDS[kind],
      renderDateTime(created_at),
      used_at === null ? 'Never' : renderDateTime(used_at),
      renderDanger(html`Remove<span class="sr"> ${name}</span>`, {
        href: `${paths.accountFactorsRemove}?factor=${id}`,
        size: 'small',
      }),
    ]),
  )}</div>`
}

function renderCodesCard(left: number): Html {
  const state = `${describeCodesLeft(left)}.`
  return html`<section class="card card__body stack"><h2>Recovery codes</h2>
${left < 3 && renderAlert(state, 'Make new ones.', 'warn')}
<p>${left >= 3 && `${state} `}Each signs you in once if you lose your phone or passkey. New codes replace the old ones.</p>
<form class="actions" method="post" action="${paths.accountFactorsRecoveryCodes}"><button class="btn btn--quiet">New recovery codes</button></form></section>`
}

async function rename(
  context: AuthContext,
  { request, reply, login, parameters }: Visit,
): Promise<FastifyReply> {
  const name = toPlainLine(parameters.get('name') ?? '').slice(0, LIMITS.factorNameCharacters)
  await context.store.db.transaction().execute(async trx => {
    const isRenamed = name !== '' && (await renameFactor(trx, login, parameters.get('factor') ?? '', name))
    const event = { kind: 'admin', status: 303, user: login.user, reason: 'Second factor renamed' } as const
    if (isRenamed) await auditEvent(context, request, event, trx)
  })
  return reply.redirect(paths.accountFactors, 303)
}

async function sendAddForm(
  context: AuthContext,
  { reply, login }: Visit,
  fault?: EnrolmentFault,
): Promise<FastifyReply> {
  const page = renderSignedInPage(
    context,
    login,
    { title: 'Add a second step', current: 'account', width: 'flow', scripts: ENROLMENT_SCRIPTS },
    html`${renderBack(paths.accountFactors, TITLE)}${renderPageHead('Add a second step', 'When you add it, you are signed out in all other browsers.')}
<div class="card card__body">${await renderEnrolment(context, { user: login.user, action: paths.accountFactorsAdd, fault })}</div>`,
  )
  return reply.sendPage(page, { status: findStatus(fault) })
}

async function add(context: AuthContext, visit: Visit): Promise<FastifyReply> {
  const { request, reply, login, parameters } = visit
  const { user } = login
  const factor = await readEnrolment(context, user.id, parameters)
  if (isFailure(factor)) return sendAddForm(context, visit, factor)
  const codes = await runTransaction(context.store.db, async trx => {
    const stored = await storeFactor(trx, user.id, factor)
    const event = { kind: 'admin', status: 303, user, reason: `${FACTOR_KINDS[factor.kind]} added` } as const
    if (isFailure(stored)) return stored
    await endOtherSignIns(trx, login, { keepsApps: true })
    await auditEvent(context, request, event, trx)
    return stored
  })
  if (isFailure(codes)) return sendRefused(context, visit, codes.text)
  return codes.length > 0
    ? sendCodes(context, visit, codes, factor.kind)
    : reply.redirect(`${paths.accountFactors}?added=${factor.kind}`, 303)
}

function sendRefused(context: AuthContext, { reply, login }: Visit, text: string): FastifyReply {
  return sendErrorPage(reply, context, {
    status: 409,
    title: 'Nothing was changed',
    text: [text],
    actions: [{ href: paths.accountFactors, text: TITLE }],
    login,
    current: 'account',
  })
}

function sendCodes(
  context: AuthContext,
  { reply, login }: Visit,
  codes: readonly string[],
  added?: Factor['kind'],
): FastifyReply {
  return reply.sendPage(
    renderSignedInPage(
      context,
      login,
      { title: 'Your recovery codes', current: 'account', width: 'flow', scripts: CODE_SCRIPTS },
      html`${renderPageHead('Your recovery codes')}
${renderRecoveryCodes(context, {
  codes,
  username: login.user.username,
  next: { href: paths.accountFactors, text: 'I saved them' },
  added,
})}`,
    ),
  )
}

async function sendNewCodes(context: AuthContext, visit: Visit): Promise<FastifyReply> {
  const { request, login } = visit
  const codes = await context.store.db.transaction().execute(async trx => {
    if ((await listFactors(trx, login.user.id)).length === 0) return []
    const event = { kind: 'admin', status: 200, user: login.user, reason: 'Recovery codes replaced' } as const
    await auditEvent(context, request, event, trx)
    return replaceRecoveryCodes(trx, login.user.id)
  })
  return codes.length > 0
    ? sendCodes(context, visit, codes)
    : sendRefused(context, visit, 'Recovery codes replace a second step, and you have none.')
}

async function askToRemove(context: AuthContext, visit: Visit): Promise<FastifyReply> {
  const { reply, login, parameters } = visit
  const factors = await listFactors(context.store.db, login.user.id)
  const factor = factors.find(({ id }) => id === parameters.get('factor'))
  if (!factor) return reply.redirect(paths.accountFactors, 302)
  const isLast = factors.length === 1
  if (isLast && mustKeepFactor(context, login)) return sendRefused(context, visit, REQUIRED.text)
  return reply.sendPage(
    renderSignedInPage(
      context,
      login,
      { title: 'Remove a second step', current: 'account', width: 'flow' },
      html`${renderPageHead(html`Remove <bdi>${factor.name}</bdi>?`)}
<div class="stack"><p>You are then signed out in all other browsers, and apps that you allowed there lose their access.${isLast && ' It is your last second step: your password alone will sign you in.'}</p>
<form class="actions" method="post" action="${paths.accountFactorsRemove}?factor=${factor.id}">${renderHidden({ factor: factor.id })}${renderDanger('Remove')}<a class="btn btn--quiet" href="${paths.accountFactors}">Keep it</a></form></div>`,
    ),
  )
}

async function remove(context: AuthContext, visit: Visit): Promise<FastifyReply> {
  const { request, reply, login, parameters } = visit
  const removed = await removeFactor(context, login, parameters.get('factor') ?? '', (trx, { kind }) => {
    const reason = `${FACTOR_KINDS[kind]} removed`
    return auditEvent(context, request, { kind: 'admin', status: 303, user: login.user, reason }, trx)
  })
  return isFailure(removed)
    ? sendRefused(context, visit, removed.text)
    : reply.redirect(paths.accountFactors, 303)
}
