import type { FastifyReply, FastifyRequest } from 'fastify'
import type { CookieDefinition } from '../../web/http/index.ts'
import { type Html, html } from '../../web/ui/index.ts'
import { allowsFrames, defineAppCookie } from '../context.ts'
import type { AppContext } from '../oauth/context.ts'
import { renderCalmPage } from '../page.ts'

const FRAMES: readonly unknown[] = ['iframe', 'frame', 'embed', 'object']

/** Whether the browser loads the page into a frame (Fetch Metadata), and the site allows it (FRAME-1). */
export function isInFrame({ settings }: AppContext, { headers }: FastifyRequest): boolean {
  return allowsFrames(settings) && FRAMES.includes(headers['sec-fetch-dest'])
}

export type LaunchParameters = { readonly iss?: string; readonly launch?: string }

/**
 * A browser may refuse cookies in a frame. A redirect finds out before the launch token is used: undefined if the browser
 * sent the test cookie back.
 */
export function testCookies(
  context: AppContext,
  { cookies, query }: FastifyRequest<{ Querystring: Readonly<Record<string, unknown>> }>,
  reply: FastifyReply,
): FastifyReply | undefined {
  const { name, attributes } = planTestCookie(context)
  if (query.frame === '1')
    return cookies[name] === undefined ? reply.sendPage(renderFramePage(query)) : undefined
  return reply
    .setCookie(name, '1', attributes)
    .redirect(`/launch?${new URLSearchParams({ ...pickParameters(query), frame: '1' })}`)
}

function planTestCookie({ settings }: AppContext): CookieDefinition {
  const { name, attributes } = defineAppCookie(settings, 'sallyport-app-frame')
  return { name, attributes: { ...attributes, maxAge: 60, priority: 'low' } }
}

function pickParameters({ iss, launch }: Readonly<Record<string, unknown>>): LaunchParameters {
  return {
    ...(typeof iss === 'string' && { iss }),
    ...(typeof launch === 'string' && { launch }),
  }
}

/** The errors by which an auth server says that the user must see a page (OpenID Connect Core, 3.1.2.6). */
const NEEDS_PAGE: readonly string[] = [
  'login_required',
  'consent_required',
  'interaction_required',
  'account_selection_required',
]

export function needsPage(error: string): boolean {
  return NEEDS_PAGE.includes(error)
}

/**
 * Sign-in pages are never shown in a frame. A script opens them in a window of their own and completes the launch in the
 * frame (assets/frame.js). Without the script, or if the browser accepts no cookie in the frame, the app opens in a new tab.
 */
export function renderFramePage(
  parameters: Readonly<Record<string, unknown>>,
  authorizationUrl?: string,
): Html {
  const inFrame = authorizationUrl !== undefined
  const query = new URLSearchParams({ ...pickParameters(parameters) })
  return renderCalmPage(
    {
      title: inFrame ? 'Sign in' : 'Open in a new tab',
      heading: inFrame ? 'Sign in to open the record' : 'Open the record in a new tab',
      scripts: inFrame ? ['frame.js'] : [],
    },
    html`<p>${
      inFrame
        ? 'You sign in using a separate window. Then the record opens here.'
        : 'Your browser does not keep cookies for this part of the page, so the record cannot open here.'
    }</p>
<div class="actions"><a class="btn" id="open-window" href="/launch?${query.toString()}" target="_blank"${
      inFrame && html` data-authorization-url="${authorizationUrl}"`
    }>${inFrame ? 'Sign in' : 'Open in a new tab'}</a></div>`,
  )
}

/** The window of a sign-in ends here. The script returns to the frame. */
export function renderReturnPage(): Html {
  return renderCalmPage(
    { title: 'Continue in the other window', id: 'return-to-frame', scripts: ['frame.js'] },
    html`<p>The launch continues in the window from which you came. You can close this one.</p>
<p>If no record opens there, launch the app again from the patient list.</p>`,
  )
}
