import type { FastifyReply } from 'fastify'
import { badge, errorPage, type Html, html, timeText } from '../../web/index.ts'
import type { AuthContext, AuthSettings } from '../context.ts'
import type { Login } from '../login/login.ts'
import { signedInBar } from './bar.ts'
import type { Away } from './patients.ts'
import { showsSampleData } from './sample-data.ts'

/** Remembers since when the FHIR server has not answered, as this server saw it. */
export interface Watch {
  saw(answered: boolean, now: number): void
  since(): number | undefined
}

export function watch(): Watch {
  let since: number | undefined
  return {
    saw: (answered, now) => {
      since = answered ? undefined : (since ?? now)
    },
    since: () => since,
  }
}

/** The FHIR server is away: what that means for a clinician, and what to do (design: Errors). */
export function sendAway(
  reply: FastifyReply,
  { settings, clock }: AuthContext,
  { login, away, since, tryAgain }: { login: Login; away: Away; since: number | undefined; tryAgain: string },
): FastifyReply {
  reply.request.log.warn({ reason: away.reason }, 'FHIR server away')
  const now = clock()
  const page = errorPage({
    kind: 'away',
    title: 'Patient records cannot be reached',
    text: [
      `The FHIR server has not answered since ${timeText(since ?? now)}. You are still signed in, and nothing you did was lost.`,
      'If this is urgent, use your usual downtime procedure. Do not rely on a page you opened earlier.',
    ],
    code: 'FHIR server away',
    reference: reply.request.id,
    now,
    actions: [{ href: tryAgain, text: 'Try again' }],
    more: servers(settings, away),
    bar: signedInBar(login),
    sampleData: showsSampleData(settings),
  })
  return reply.sendPage(page, { status: 502 })
}

function servers({ issuerUrl, fhirBaseUrl }: AuthSettings, { reason }: Away): Html {
  return html`<ul class="servers" aria-label="Servers">
<li><span>Sign-in server</span><span><code>${issuerUrl}</code></span>${badge('Answering', 'ok')}</li>
<li><span>FHIR server</span><span><code>${fhirBaseUrl}</code></span>${badge(reason, 'bad')}</li>
</ul>`
}
