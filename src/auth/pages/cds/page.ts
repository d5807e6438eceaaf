import { type Person, renderName, renderPatientBanner } from '../../../web/person/index.ts'
import { type Html, html, renderBadge, renderIcon } from '../../../web/ui/index.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { Login } from '../../users/find-login.ts'
import { readHost } from '../parts/apps.ts'
import { buildCardsUrl, renderSection } from '../parts/cards-place.ts'
import { renderSignedInPage } from '../parts/page-parts.ts'
import { buildPortalUrl } from '../parts/patient-list.ts'
import {
  type Card,
  type CardLink,
  compareUrgency,
  type Indicator,
  type ServiceCards,
} from './call-service.ts'
import { renderMarkdown, renderOutside } from './markdown.ts'

/** The URL of a launch for a `smart` link; undefined if no registered app has this launch URL. */
export type BuildLaunchLink = (link: CardLink) => string | undefined

export function renderCardsPage(context: AuthContext, login: Login, person: Person, cards: Html): Html {
  const now = context.clock()
  return renderSignedInPage(
    context,
    login,
    { title: 'Decision support', current: 'portal', width: 'mid', people: [person] },
    html`<h1 class="sr">Decision support for ${renderName(person.name)}</h1>
<div class="stack"><p><a href="${buildPortalUrl({ search: undefined, patient: person.id })}">Back to the patient</a></p>
<div class="card card--clip">${renderPatientBanner(person, { now, heading: 'h2', id: 'picked' })}
${cards}</div></div>`,
  )
}

/** The cards of all services, the most urgent first. */
export function renderCards(
  patientId: string,
  results: readonly ServiceCards[],
  buildLink: BuildLaunchLink,
): Html {
  const cards = results
    .flatMap(({ service, cards = [] }) => cards.map(card => ({ card, service })))
    .toSorted((a, b) => compareUrgency(a.card, b.card))
  const silent = results.filter(result => result.cards === undefined || result.cards.length === 0)
  const [critical, others] = [true, false].map(isCritical =>
    cards
      .filter(({ card }) => (card.indicator === 'critical') === isCritical)
      .map(({ card, service }) => renderCard(card, service.name, buildLink)),
  )
  const content = html`${critical}
<div class="cds__others">${others}
${silent.map(({ service, cards }) =>
  cards
    ? html`<p class="muted">${service.name} has nothing to show for this patient.</p>`
    : html`<div class="alert alert--warn">${renderIcon('warning')}<p><b>${service.name} is not available at the moment.</b> Its advice is missing here. <a href="${buildCardsUrl(patientId)}">Try again</a></p></div>`,
)}</div>`
  return renderSection(buildCardsUrl(patientId), content, countCards(cards.map(({ card }) => card)))
}

/** `1 critical, 2 information`: the place of the cards may be too small to show all at once. */
function countCards(cards: readonly Card[]): string | undefined {
  if (cards.length < 2) return undefined
  const counts = [...Map.groupBy(cards, ({ indicator }) => indicator)]
  return counts.map(([indicator, { length }]) => `${length} ${COUNTED[indicator]}`).join(', ')
}

const COUNTED = {
  critical: 'critical',
  warning: 'warning',
  info: 'information',
} as const satisfies Record<Indicator, string>

const BADGES = {
  critical: renderBadge('Critical', 'bad'),
  warning: renderBadge('Warning', 'warn'),
  info: renderBadge('Information'),
} as const satisfies Record<Indicator, Html>

function renderCard(
  { summary, detail, indicator, source, links }: Card,
  service: string,
  buildLink: BuildLaunchLink,
): Html {
  return html`<article class="cds__card cds__card--${indicator}">
<h3 class="cds__summary">${BADGES[indicator]} ${summary}</h3>
${detail !== undefined && html`<div class="cds__detail">${renderMarkdown(detail)}</div>`}
${links.length > 0 && html`<div class="actions">${links.map(link => renderLink(link, buildLink))}</div>`}
<p class="small muted">Source: ${source.url === undefined ? source.label : renderOutside(source.url, source.label)}${!isSame(source.label, service) && `, from ${service}`}</p>
</article>
`
}

/** A service that is its own source is named once. */
function isSame(label: string, service: string): boolean {
  return label.trim().toLowerCase() === service.trim().toLowerCase()
}

function renderLink(link: CardLink, buildLink: BuildLaunchLink): Html {
  if (link.type === 'absolute')
    return html`<a class="btn btn--quiet btn--small" href="${link.url}" target="_blank" rel="noopener noreferrer">${link.label}<span class="sr"> at ${readHost(link.url)}, in a new tab</span></a>`
  const href = buildLink(link)
  return href === undefined
    ? html`<span class="small muted">${link.label}: the app is not registered here</span>`
    : html`<a class="btn btn--quiet btn--small" href="${href}">${link.label} ${renderIcon('launch')}</a>`
}
