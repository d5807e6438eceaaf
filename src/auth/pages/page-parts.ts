import type { FastifyReply } from 'fastify'
import {
  type Bar,
  formatSince,
  type Html,
  html,
  type Person,
  renderBadge,
  renderErrorPage,
} from '../../web/index.ts'
import type { Unavailable } from '../base/fhir-reader.ts'
import { paths } from '../base/paths.ts'
import type { AuthSettings } from '../base/settings.ts'
import { isPatientUser } from '../base/user.ts'
import type { AuthContext } from '../oauth/context.ts'
import type { Login } from '../users/find-login.ts'

type SignedInPage = 'portal' | 'developers' | 'manage' | 'activity' | 'access-log' | 'account' | 'admin'

export function makeSignedInBar(login: Login, current?: SignedInPage): Bar {
  return {
    kind: 'portal',
    who: login.user.displayName,
    links: [
      ...(isPatientUser(login.user)
        ? []
        : [{ href: paths.portal, text: 'Patients', current: current === 'portal' }]),
      ...(login.developerPages ? [{ ...login.developerPages.start, current: current === 'developers' }] : []),
      { href: paths.manage, text: 'Apps with access', current: current === 'manage' },
      ...(isPatientUser(login.user)
        ? [{ href: paths.accountAccessLog, text: 'Who looked', current: current === 'access-log' }]
        : []),
      ...(login.mayViewActivity
        ? [{ href: paths.activity, text: 'Activity', current: current === 'activity' }]
        : []),
      ...(login.admin ? [{ href: paths.admin, text: 'Administration', current: current === 'admin' }] : []),
      { href: paths.accountSignIns, text: 'Account', current: current === 'account' },
    ],
  }
}

/** Whether all patients on a page are sample patients of the embedded FHIR server. */
export function showsSampleData({ fhir }: AuthSettings, onPage: readonly Person[] = []): boolean {
  return fhir.upstreamUrl === undefined && fhir.samplePatients > 0 && onPage.every(({ sample }) => sample)
}

/** Remembers since when the FHIR server has been unreachable. */
interface OutageWatch {
  observe(isReachable: boolean, now: number): void
  since(): number | undefined
}

const watches = new WeakMap<AuthContext, OutageWatch>()

export function findOutageWatch(context: AuthContext): OutageWatch {
  const watch = watches.get(context) ?? createOutageWatch()
  watches.set(context, watch)
  return watch
}

function createOutageWatch(): OutageWatch {
  let since: number | undefined
  return {
    observe: (isReachable, now) => {
      since = isReachable ? undefined : (since ?? now)
    },
    since: () => since,
  }
}

/** Shows that the FHIR server is unreachable, and advice. */
export function sendUnavailable(
  reply: FastifyReply,
  { settings, clock }: AuthContext,
  {
    login,
    outage,
    since,
    tryAgain,
  }: { login: Login; outage: Unavailable; since: number | undefined; tryAgain: string },
): FastifyReply {
  reply.request.log.warn({ reason: outage.reason }, 'FHIR server unreachable')
  const now = clock()
  const page = renderErrorPage({
    kind: 'unavailable',
    title: 'Patient records are unavailable',
    text: [
      `The FHIR server has been unreachable since ${formatSince(since ?? now, now)}. You are still signed in, and nothing you did was lost.`,
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

/** Links the reference of an error page to its event, for developers. */
export function linkReference(
  { settings: { developerTools } }: Pick<AuthContext, 'settings'>,
  reference: string,
): string | undefined {
  return developerTools ? `${paths.activity}?${new URLSearchParams({ reference })}` : undefined
}
