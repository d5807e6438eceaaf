import type { FastifyRequest } from 'fastify'
import type { FactsArgument, StoredFacts } from '../../core/index.ts'
import { type Failed, fail } from '../../core/index.ts'
import { isOpenedByOtherSite, isSentByOwnPage } from '../../web/http/index.ts'
import { RECENT_SECONDS } from '../base/limits.ts'
import type { AuthContext } from '../oauth/context.ts'
import type { Login } from '../users/find-login.ts'
import { findCurrentLogin } from '../users/login.ts'
import { isRecentLogin } from '../users/login-rights.ts'
import { describePage, type FactsOf, type PageReason } from '../words/reasons.ts'

export interface LabProblem extends Failed {
  readonly reason: PageReason
  readonly facts?: StoredFacts | undefined
  readonly status: number
  readonly error: string
  readonly text: string
}

/** A page of another site must not launch itself with access to records. */
const CROSS_SITE = refuse('link-of-another-site')
const PLAIN_HTTP = refuse('lab-over-plain-http')
const NOT_ADMINISTRATOR = refuse('lab-needs-administrator')
const NOT_RECENT = refuse('lab-needs-recent-sign-in', { minutes: RECENT_SECONDS / 60 })

function refuse<Reason extends PageReason>(
  reason: Reason,
  ...facts: FactsArgument<FactsOf<Reason>>
): LabProblem {
  const { status, sentence, facts: found } = describePage(reason, ...facts)
  return fail({ reason, facts: found, status, error: 'access_denied', text: sentence })
}

/** Why a user may not open pages of the lab, which give no access: off loopback they are for administrators (LAB-9). */
export function findPageProblem(
  { settings }: AuthContext,
  { protocol }: FastifyRequest,
  { developerPages }: Pick<Login, 'developerPages'>,
): LabProblem | undefined {
  if (!settings.onLoopback && protocol !== 'https') return PLAIN_HTTP
  return developerPages ? undefined : NOT_ADMINISTRATOR
}

/**
 * The login of a request that launches an app, or why it may not. On loopback a request without a login may, unless a page of
 * another site makes it. Elsewhere a launch gives access to every record: it needs an administrator who signed in recently,
 * and a page of the auth server or the address bar (LAB-9).
 */
export async function checkLaunch(
  context: AuthContext,
  request: FastifyRequest,
): Promise<{ readonly login: Login | undefined } | LabProblem> {
  const { settings, clock } = context
  if (settings.onLoopback && isOpenedByOtherSite(request, settings.issuerUrl)) return CROSS_SITE
  const login = await findCurrentLogin(context, request)
  if (settings.onLoopback) return { login }
  const problem = findPageProblem(context, request, login ?? {})
  if (problem) return problem
  if (!isSentByOwnPage(request, settings.issuerUrl)) return CROSS_SITE
  return login && isRecentLogin(login, clock()) ? { login } : NOT_RECENT
}
