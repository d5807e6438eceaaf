import type { FastifyReply } from 'fastify'
import type { Settings } from '../../../config/index.ts'
import type { Person } from '../../../web/person/index.ts'
import {
  type Bar,
  type BarLink,
  type ErrorPageOptions,
  type Html,
  html,
  type PageOptions,
  renderBadge,
  renderContact,
  renderErrorPage,
  renderIcon,
  renderPage,
  renderSince,
} from '../../../web/ui/index.ts'
import type { Unavailable } from '../../base/fhir-reader.ts'
import { paths } from '../../base/paths.ts'
import { isPatientUser, opensRecords } from '../../base/user.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { Login } from '../../users/find-login.ts'

type SignedInPage =
  | 'portal'
  | 'home'
  | 'developers'
  | 'apps'
  | 'manage'
  | 'proposals'
  | 'activity'
  | 'access-log'
  | 'account'
  | 'admin'

export function makeSignedInBar(login: Login, current?: SignedInPage): Bar {
  const isPatient = isPatientUser(login.user)
  const opens = opensRecords(login.user)
  const { developerPages } = login
  const activity = {
    page: 'activity',
    href: paths.activity,
    text: 'Activity',
    isShown: login.mayViewActivity,
  } as const
  const links = selectLinks(current, [
    { page: 'portal', href: paths.portal, text: 'Patients', isShown: opens && !isPatient },
    { page: 'home', href: paths.home, text: 'Start', isShown: isPatient },
    { page: 'manage', href: paths.manage, text: 'Apps with access', isShown: opens },
    {
      page: 'proposals',
      href: paths.proposals,
      text: 'Proposals',
      count: login.openProposals,
      isShown: opens && (login.openProposals > 0 || current === 'proposals'),
    },
    { page: 'access-log', href: paths.accountAccessLog, text: 'Who looked', isShown: isPatient },
    ...(developerPages ? [] : [activity]),
    { page: 'admin', href: paths.admin, text: 'Administration', isShown: login.admin || login.auditor },
    { page: 'account', href: paths.account, text: 'Account' },
  ])
  const developerLinks = selectLinks(current, developerPages ? [...developerPages.links, activity] : [])
  return { kind: 'portal', who: login.user.displayName, links, developerLinks }
}

type PageLink = BarLink & { readonly page: SignedInPage; readonly isShown?: boolean | undefined }

function selectLinks(current: SignedInPage | undefined, pages: readonly PageLink[]): readonly BarLink[] {
  return pages
    .filter(({ isShown = true }) => isShown)
    .map(({ page, href, text, count }) => ({ href, text, count, current: page === current }))
}

interface SignedInOptions extends Omit<PageOptions, 'bar' | 'brand' | 'sampleData'> {
  readonly current: SignedInPage
  /** The patients on the page. */
  readonly people?: readonly Person[]
}

/** A page for a user who is signed in. */
export function renderSignedInPage(
  { settings, brand }: Pick<AuthContext, 'settings' | 'brand'>,
  login: Login,
  { current, people, scripts = [], ...options }: SignedInOptions,
  body: Html,
): Html {
  const bar = makeSignedInBar(login, current)
  return renderPage(
    {
      bar,
      brand,
      sampleData: showsSampleData(settings, people),
      scripts: ['sign-out.js', ...scripts],
      ...options,
    },
    body,
  )
}

/** The way back to the page above, over the title. */
export function renderBack(href: string, text: string): Html {
  return html`<p class="back"><a href="${href}">${renderIcon('back')}${text}</a></p>`
}

/** Whom a patient asks about a record, by the operator's setting. */
export function renderAsk({ settings }: Pick<AuthContext, 'settings'>): Html {
  const { support, patientContact = support } = settings.brand
  return patientContact === undefined
    ? html`<p>Ask the hospital or practice that keeps the record, for example its privacy officer.</p>`
    : html`<p>Ask: ${renderContact(patientContact)}</p>`
}

/** Whom somebody asks who cannot sign in. */
export function renderSupport({ settings }: Pick<AuthContext, 'settings'>): Html {
  const { support } = settings.brand
  return support === undefined
    ? html`<p class="muted small after">Questions? Ask the organization that gave you your account.</p>`
    : html`<p class="muted small after">Help: ${renderContact(support)}</p>`
}

interface ErrorOptions
  extends Partial<Pick<ErrorPageOptions, 'kind' | 'code'>>,
    Omit<ErrorPageOptions, 'kind' | 'code' | 'reference' | 'referenceUrl' | 'now' | 'bar' | 'brand'> {
  readonly status: number
  /** The user who is signed in, if the page has their bar. */
  readonly login?: Login | undefined
  readonly current?: SignedInPage
  /** Whether those who may open the activity page get a link to the event. */
  readonly isRecorded?: boolean
}

/** Sends a page about a refusal, or about another problem. Its code is the status unless the options have another. */
export function sendErrorPage(
  reply: FastifyReply,
  { brand, clock }: Pick<AuthContext, 'brand' | 'clock'>,
  { status, login, current, isRecorded = false, ...options }: ErrorOptions,
): FastifyReply {
  const { id } = reply.request
  const page = renderErrorPage({
    kind: 'refused',
    code: String(status),
    reference: id,
    referenceUrl: isRecorded && login?.mayViewActivity === true ? linkReference(id) : undefined,
    now: clock(),
    brand,
    ...(login && { bar: makeSignedInBar(login, current) }),
    ...options,
  })
  return reply.sendPage(page, { status })
}

/** Whether a page has patients, and all of them are sample patients of the embedded FHIR server. */
export function showsSampleData({ fhir }: Settings, onPage: readonly Person[] = []): boolean {
  return fhir.upstreamUrl === undefined && onPage.length > 0 && onPage.every(({ sample }) => sample)
}

const outages = new WeakMap<AuthContext, number>()

/** Remembers since when the FHIR server has been unreachable, and returns it. */
export function noteOutage(context: AuthContext, isReachable: boolean): number | undefined {
  if (isReachable) outages.delete(context)
  else if (!outages.has(context)) outages.set(context, context.clock())
  return outages.get(context)
}

/** Shows that the FHIR server is unreachable, and advice. */
export function sendUnavailable(
  reply: FastifyReply,
  context: AuthContext,
  login: Login,
  outage: Unavailable & { readonly tryAgain: string; readonly since?: number | undefined },
): FastifyReply {
  reply.request.log.warn({ reason: outage.detail }, 'FHIR server unreachable')
  const { settings, clock } = context
  const now = clock()
  const { since = now, tryAgain } = outage
  return sendErrorPage(reply, context, {
    kind: 'unavailable',
    status: 502,
    title: 'Patient records cannot be reached',
    text: [
      html`The FHIR server has not responded since ${renderSince(since, now)}. You are still signed in, and nothing you did was lost.`,
      'If this is urgent, use your usual downtime procedure. Do not rely on a page you opened earlier.',
    ],
    code: 'FHIR server unreachable',
    actions: [{ href: tryAgain, text: 'Try again' }],
    more: renderServers(settings, outage),
    login,
  })
}

function renderServers({ issuerUrl, fhirBaseUrl }: Settings, { detail }: Unavailable): Html {
  return html`<ul class="servers" aria-label="Servers">
<li><span>Sign-in server</span><span><code>${issuerUrl}</code></span>${renderBadge('Available', 'ok')}</li>
<li><span>FHIR server</span><span><code>${fhirBaseUrl}</code></span>${renderBadge(detail, 'bad')}</li>
</ul>`
}

/** Links the reference of an error page to its event. */
export function linkReference(reference: string): string {
  return `${paths.activity}?${new URLSearchParams({ reference })}`
}
