import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isFailure } from '../../../core/index.ts'
import { sha256 } from '../../../store/index.ts'
import {
  type Html,
  html,
  renderAlert,
  renderContact,
  renderField,
  renderHidden,
} from '../../../web/ui/index.ts'
import { auditEvent, describeRefused } from '../../base/audit.ts'
import { paths } from '../../base/paths.ts'
import { type Parameters, readParameters } from '../../base/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { type Account, toUser } from '../../users/accounts.ts'
import { consumeActivation, type EndedLink, findActivation } from '../../users/activation.ts'
import { createAttemptLimit } from '../../users/attempt.ts'
import { hashPassword } from '../../users/passwords.ts'
import { keepAccess } from '../../users/validity/facts.ts'
import { computeAccountMark } from '../../users/validity/rule.ts'
import {
  findPasswordFault,
  type PasswordFault,
  readNewPassword,
  renderNewPasswordFields,
} from '../parts/new-password.ts'
import { renderGate } from './page.ts'

/**
 * `/login/activate`: a user with an activation link chooses a password, and then signs in like everybody. The page reads the secret
 * of the link, which is in the body of its forms and in no URL that a server gets.
 */
export function addActivateRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(paths.loginActivate, async (_request, reply) => reply.sendPage(renderLinkPage(context)))
  app.post(paths.loginActivate, (request, reply) => activate(context, request, reply))
}

async function activate(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const parameters = readParameters(request.body)
  const token = readToken(parameters)
  const limit = createAttemptLimit(context, { username: sha256(token), address: request.ip })
  const refuse = async ({ reason, account }: EndedLink) => {
    // Whoever has a link that has ended knew its secret, and is not anonymous.
    const who = { anonymous: account === undefined, user: account && toUser(account) }
    const event = {
      kind: 'login',
      ...describeRefused('activation-link-ended', { why: reason }),
      ...who,
    } as const
    await context.store.db.transaction().execute(async trx => {
      await limit.add(trx)
      await auditEvent(context, request, event, trx)
    })
    return reply.sendPage(renderLinkPage(context, ENDED[reason]), { status: 400 })
  }
  const refuseMany = async (wait: number) => {
    const event = { kind: 'login', anonymous: true, ...describeRefused('activation-links-too-many') } as const
    await auditEvent(context, request, event)
    reply.header('retry-after', String(wait))
    return reply.sendPage(renderLinkPage(context, TOO_MANY), { status: 429 })
  }
  const account = await findActivation(context, context.store.db, token)
  if (isFailure(account)) {
    // Only then: whoever has a link that works uses it, whatever others of the network try.
    const wait = await limit.wait()
    return wait > 0 ? refuseMany(wait) : refuse(account)
  }
  const form = readNewPassword(parameters)
  // The link alone asks for the form.
  if (form.next === '') return reply.sendPage(renderPasswordPage(context, account, token))
  const { username, display_name: displayName } = account
  const fault = findPasswordFault(context, form, { username, displayName })
  if (fault) return reply.sendPage(renderPasswordPage(context, account, token, fault), { status: 400 })
  const ended = await storePassword(context, request, account, { token, hash: await hashPassword(form.next) })
  return ended ? refuse(ended) : reply.sendPage(renderDonePage(context, account))
}

/** The whole link, or the part behind the `#`. */
function readToken(parameters: Parameters): string {
  return /(?:^|#)([\w-]{43})$/.exec(parameters.get('link')?.trim() ?? '')?.[1] ?? ''
}

/** Stores the password and consumes the link. Returns why that is too late. */
function storePassword(
  context: AuthContext,
  request: FastifyRequest,
  found: Account,
  { token, hash }: { readonly token: string; readonly hash: string },
): Promise<EndedLink | undefined> {
  return context.store.db.transaction().execute(async trx => {
    const account = await consumeActivation(context, trx, found, token)
    if (isFailure(account)) return account
    const columns = { password_hash: hash, must_change_password: false, password_changed_at: context.clock() }
    await trx.updateTable('clinician').set(columns).where('id', '=', account.id).execute()
    // Apps that the administrator left their access keep it.
    await keepAccess(trx, { accountId: account.id, mark: computeAccountMark(account), what: 'offline' })
    const event = { kind: 'admin', status: 200, user: toUser(account), reason: CHOSEN } as const
    await auditEvent(context, request, event, trx)
    return undefined
  })
}

const CHOSEN = 'Password chosen with an activation link'

type Problem = readonly [text: string, advice: string]

const NOT_GOOD: Problem = [
  'This link does not work.',
  'Check that you pasted all of it, or ask for a new one.',
]
const TOO_MANY: Problem = ['Too many links were tried.', 'Wait a few minutes and try again.']

const ENDED: Readonly<Record<EndedLink['reason'], Problem>> = {
  unknown: NOT_GOOD,
  'the account changed': NOT_GOOD,
  'passwords are off': NOT_GOOD,
  expired: ['This link has expired.', ''],
  used: [
    'This link was already used.',
    'Sign in with the password that was chosen. If it was not you who chose it, report that at once.',
  ],
}

/** Whoever reads these has no link to paste. The script sends the next one that the browser opens. */
const FINAL: readonly (Problem | undefined)[] = [ENDED.expired, ENDED.used]

const PAGE = { title: 'Choose a password', scripts: ['activate.js'] }

/** Asks for the link, where no script has sent it. */
function renderLinkPage({ brand }: AuthContext, problem?: Problem): Html {
  const isFinal = FINAL.includes(problem)
  return renderGate(
    { ...PAGE, brand },
    html`<div class="signin">
<h1>Choose a password</h1>
<p class="muted">For your account at ${brand.name}.</p>
${problem && renderAlert(...problem, 'bad')}
<form method="post" action="${paths.loginActivate}" name="activation"${isFinal && html` hidden`}>
${renderField({ name: 'link', label: 'Your link', hint: 'Paste the whole link that you were given.', required: true })}
<button class="btn btn--wide">Continue</button>
</form>
<p class="muted small signin__help">A link works once, and for a limited time. For a new one, ${
      brand.support === undefined
        ? 'ask the people who gave you your account.'
        : html`ask: ${renderContact(brand.support)}`
    }</p>
<p><a href="${paths.login}">Sign in</a>${isFinal && html` · <a href="${paths.loginActivate}">Use another link</a>`}</p>
</div>`,
  )
}

function renderPasswordPage(
  context: AuthContext,
  { username }: Account,
  link: string,
  fault?: PasswordFault,
): Html {
  return renderGate(
    { ...PAGE, brand: context.brand },
    html`<div class="signin">
<h1>Choose a password</h1>
<p class="muted">For the account <strong>${username}</strong> at ${context.brand.name}. From now on you sign in with this username and the new password.</p>
<form method="post" action="${paths.loginActivate}" name="activation">
${renderHidden({ link })}
<input type="hidden" name="username" value="${username}" autocomplete="username">
${renderNewPasswordFields(context, fault)}
<button class="btn btn--wide">Save password</button>
</form></div>`,
  )
}

function renderDonePage({ brand }: AuthContext, { username }: Account): Html {
  return renderGate(
    { title: 'Password saved', brand },
    html`<div class="signin">
<h1>Password saved</h1>
<p class="muted">You can now sign in as <strong>${username}</strong> at ${brand.name}.</p>
<p class="after"><a class="btn btn--wide" href="${paths.login}">Sign in</a></p>
</div>`,
  )
}
