import { isRedirecting } from '../../../config/index.ts'
import { type Html, html, renderBadge, renderDateTime, renderPageHead } from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { isPatientUser, OPENS_NO_RECORDS, opensRecords } from '../../base/user.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { type Factor, listFactors } from '../../users/factors/factors.ts'
import { offersPasskeys } from '../../users/factors/passkeys.ts'
import { countRecoveryCodes } from '../../users/factors/recovery-codes.ts'
import { findWrongProofs, type WrongProofs } from '../../users/factors/wrong-proofs.ts'
import type { Login } from '../../users/find-login.ts'
import { findSignIns, type SignIn } from '../../users/sign-ins.ts'
import { joinWithAnd } from '../../words/scopes.ts'
import { findAccess } from '../parts/app-access.ts'
import { describeCodesLeft } from '../parts/factors/recovery-codes.ts'
import { describeWrongProofs } from '../parts/factors/wrong-proofs.ts'
import { renderSignedInPage } from '../parts/page-parts.ts'

/** A part of the account: its state, and the page that changes it. */
interface Part {
  readonly title: string
  /** Undefined if it is not changed here. */
  readonly href: string | undefined
  readonly badge?: Html | undefined
  readonly text: Html | string
}

/** `/account`: what belongs to the account of the user, and its state (ACCOUNT-5). */
export async function renderAccountPage(context: AuthContext, login: Login): Promise<Html> {
  const { db } = context.store
  const { user } = login
  const [account, factors, codes, wrong, signIns, access] = await Promise.all([
    db.selectFrom('clinician').select('password_changed_at').where('id', '=', user.id).executeTakeFirst(),
    listFactors(db, user.id),
    countRecoveryCodes(db, user.id),
    findWrongProofs(db, user.id, context.clock()),
    findSignIns(context, user.id),
    findAccess(context, user.id),
  ])
  const parts: readonly Part[] = [
    ...describeSteps(context, login, {
      changedAt: account?.password_changed_at ?? undefined,
      factors,
      codes,
      wrong,
    }),
    describeSignIns(login, signIns),
    opensRecords(user)
      ? {
          title: 'Apps with access',
          href: paths.manage,
          text: describeApps(access.map(({ client }) => client.name)),
        }
      : {
          title: 'Patient records',
          href: undefined,
          text: `${OPENS_NO_RECORDS} Apps cannot be used with it.`,
        },
    ...(isPatientUser(user) ? [WHO_LOOKED] : []),
  ]
  return renderSignedInPage(
    context,
    login,
    { title: 'Account', current: 'account', width: 'mid' },
    html`${renderPageHead('Account', html`You are signed in as <b>${user.displayName}</b>, username <b>${user.username}</b>.`)}
<ul class="card card--clip parts">${parts.map(renderPart)}</ul>`,
  )
}

const WHO_LOOKED: Part = {
  title: 'Who looked',
  href: paths.accountAccessLog,
  text: 'Everyone who opened or changed a record that you may see.',
}

function renderPart({ title, href, badge, text }: Part): Html {
  return html`<li class="part"><h2>${href === undefined ? title : html`<a href="${href}">${title}</a>`}${badge && html`&ensp;${badge}`}</h2><p class="muted">${text}</p></li>`
}

interface Steps {
  /** When the password was changed, if that is known. */
  readonly changedAt: number | undefined
  readonly factors: readonly Factor[]
  readonly codes: number
  readonly wrong: WrongProofs | undefined
}

/** Password and second steps, which a provider keeps for those who sign in with it. */
function describeSteps(
  context: AuthContext,
  { issuer }: Login,
  { changedAt, factors, codes, wrong }: Steps,
): readonly Part[] {
  const provider = context.rules.findByIssuer(issuer)
  const isOwn = context.settings.login.passwords && issuer === undefined
  const password: Part = isOwn
    ? {
        title: 'Password',
        href: paths.accountPassword,
        text:
          changedAt === undefined
            ? 'You sign in with a username and a password.'
            : html`Changed ${renderDateTime(changedAt)}.`,
      }
    : {
        title: 'Password',
        href: undefined,
        text: `You sign in with ${provider?.name ?? 'another provider'}, which keeps your password. Change it there.`,
      }
  if (isRedirecting(provider)) return [password]
  return [password, describeTwoSteps(factors, codes, wrong), ...describePasskeys(context, factors)]
}

function describeTwoSteps(factors: readonly Factor[], codes: number, wrong: WrongProofs | undefined): Part {
  const isOn = factors.length > 0
  return {
    title: 'Two-step sign-in',
    href: paths.accountFactors,
    badge: isOn ? renderBadge('On', 'ok') : renderBadge('Off'),
    text: isOn
      ? html`After your password you use ${joinWithOr(factors.map(({ name }) => name))}. ${describeCodesLeft(codes)}.${wrong && html` <b>${describeWrongProofs(wrong)}</b>`}`
      : 'Your password alone signs you in. With a second step, such as your phone, a stolen password is not enough.',
  }
}

function joinWithOr(names: readonly string[]): string {
  return joinWithAnd(names).replace(/ and (?=[^,]*$)/, ' or ')
}

function describePasskeys(context: AuthContext, factors: readonly Factor[]): readonly Part[] {
  if (!offersPasskeys(context)) return []
  const names = factors.filter(({ kind }) => kind === 'passkey').map(({ name }) => name)
  const text =
    names.length === 0
      ? 'You have none. A passkey signs you in with your fingerprint, face or PIN instead of a password.'
      : `${joinWithAnd(names)}: ${names.length === 1 ? 'it signs' : 'each signs'} you in without a password.`
  return [
    { title: 'Passkeys', href: names.length === 0 ? paths.accountFactorsAdd : paths.accountFactors, text },
  ]
}

function describeSignIns({ idHash }: Login, signIns: readonly SignIn[]): Part {
  const others = signIns.filter(({ id }) => id !== idHash)
  const [newest] = others
  return {
    title: 'Where you are signed in',
    href: paths.accountSignIns,
    text: newest
      ? html`In this browser and in ${others.length === 1 ? 'another one' : `${others.length} others`}. Last used: ${newest.browser ?? 'an unknown browser'}, ${renderDateTime(newest.lastUsedAt)}.`
      : 'Only in this browser.',
  }
}

function describeApps(names: readonly string[]): string {
  if (names.length === 0) return 'No app may use a record on your behalf.'
  const listed = names.slice(0, LIMITS.appsListed)
  const others = names.length - listed.length
  return `${joinWithAnd(others > 0 ? [...listed, others === 1 ? 'another one' : `${others} others`] : listed)}.`
}
