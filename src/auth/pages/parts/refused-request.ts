import type { FastifyReply } from 'fastify'
import { type Action, type Html, html, renderAlert } from '../../../web/ui/index.ts'
import { describeRefusal } from '../../base/audit.ts'
import type { DeveloperPages } from '../../base/context.ts'
import { paths } from '../../base/paths.ts'
import { type AuthRefusal, getStatus } from '../../base/refusal.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { Login } from '../../users/find-login.ts'
import { renderComparisons } from './explain/compare.ts'
import { adviseOnReason } from './explain/explain.ts'
import { linkReference, sendErrorPage } from './page-parts.ts'

export const START_PAGE = { href: paths.portal, text: 'Go to the start page' }

/** Shows an authorization request that was refused, and not returned to its app. Developers see what to change. */
export async function sendRefusedRequest(
  reply: FastifyReply,
  context: AuthContext,
  refusal: AuthRefusal,
  login: Login | undefined,
): Promise<FastifyReply> {
  const developer = findDeveloperPages(context, login)
  const { error, description } = refusal
  return sendErrorPage(reply, context, {
    status: getStatus(error),
    title: 'The app could not be opened',
    text: ['The app sent an invalid request. No record was opened.', ...(developer ? [] : [OPEN_AGAIN])],
    code: error,
    reason: description,
    actions: [...(developer ? listActions(reply, { developer, refusal, login }) : []), START_PAGE],
    ...(developer && { more: renderAdvice(refusal) }),
    login,
    isRecorded: true,
  })
}

const OPEN_AGAIN = 'Open the app again. If the problem persists, contact the app’s administrator.'

/**
 * What is registered is shown to developers only: off loopback those who are signed in, on loopback also before the sign-in
 * and to those who try an app as a patient.
 */
function findDeveloperPages(
  { settings, developerPages }: AuthContext,
  login: Login | undefined,
): DeveloperPages | undefined {
  return settings.onLoopback ? developerPages : login?.developerPages
}

interface Refused {
  readonly developer: DeveloperPages
  readonly refusal: AuthRefusal
  readonly login: Login | undefined
}

/** Links to the app and to the event, unless the user cannot open them. Without a login they lead to the sign-in first. */
function listActions({ request }: FastifyReply, { developer, refusal, login }: Refused): readonly Action[] {
  const { clientId } = refusal.known
  const app =
    clientId === undefined
      ? { href: developer.apps, text: 'Registered apps' }
      : { href: developer.changeApp(clientId), text: 'Change the registration' }
  const event = { href: linkReference(request.id), text: 'See it in Activity' }
  return [
    ...(app.href === undefined || (login && !login.developerPages) ? [] : [{ ...app, href: app.href }]),
    ...(login?.mayViewActivity === false ? [] : [event]),
  ]
}

function renderAdvice(refusal: AuthRefusal): Html {
  const { reason, details = {} } = describeRefusal(refusal)
  const { cause, action } = adviseOnReason({ kind: 'authorize', reason }, details)
  const { compared = [] } = details
  return html`<section class="stack stack--tight" aria-labelledby="developers"><h2 id="developers">For the developer of the app</h2>
<p>${cause}</p>
${compared.length > 0 && renderComparisons(compared)}
${renderAlert('What to change:', action, 'warn')}</section>`
}
