import type { FastifyReply } from 'fastify'
import { formatTime, type Html, html, renderBadge, renderErrorPage } from '../../web/index.ts'
import type { AuthContext, AuthSettings } from '../context.ts'
import type { Login } from '../login/login.ts'
import { makeSignedInBar } from './bar.ts'
import type { Unavailable } from './patients.ts'
import { showsSampleData } from './sample-data.ts'

/** Remembers since when the FHIR server has been unreachable. */
export interface OutageWatch {
  saw(answered: boolean, now: number): void
  since(): number | undefined
}

export function createOutageWatch(): OutageWatch {
  let since: number | undefined
  return {
    saw: (answered, now) => {
      since = answered ? undefined : (since ?? now)
    },
    since: () => since,
  }
}

/** Tells a clinician that the FHIR server is unreachable, and what to do. */
export function sendUnavailable(
  reply: FastifyReply,
  { settings, clock }: AuthContext,
  {
    login,
    away: outage,
    since,
    tryAgain,
  }: { login: Login; away: Unavailable; since: number | undefined; tryAgain: string },
): FastifyReply {
  reply.request.log.warn({ reason: outage.reason }, 'FHIR server unreachable')
  const now = clock()
  const page = renderErrorPage({
    kind: 'unavailable',
    title: 'Patient records are unavailable',
    text: [
      `The FHIR server has been unreachable since ${formatTime(since ?? now)}. You are still signed in, and nothing you did was lost.`,
      'If this is urgent, use your usual downtime procedure. Do not rely on a page you opened earlier.',
    ],
    code: 'FHIR server unreachable',
    reference: reply.request.id,
    now,
    actions: [{ href: tryAgain, text: 'Try again' }],
    more: renderServers(settings, outage),
    bar: makeSignedInBar(login),
    sampleData: showsSampleData(settings),
  })
  return reply.sendPage(page, { status: 502 })
}

function renderServers({ issuerUrl, fhirBaseUrl }: AuthSettings, { reason }: Unavailable): Html {
  return html`<ul class="servers" aria-label="Servers">
<li><span>Sign-in server</span><span><code>${issuerUrl}</code></span>${renderBadge('Available', 'ok')}</li>
<li><span>FHIR server</span><span><code>${fhirBaseUrl}</code></span>${renderBadge(reason, 'bad')}</li>
</ul>`
}
