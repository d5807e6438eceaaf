import { type Html, html } from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'

export function buildCardsUrl(patientId: string): string {
  return `${paths.cards}?${new URLSearchParams({ patient: patientId })}`
}

/** The section for the cards on the portal page. A script loads them; without scripts, a link leads to their page. */
export function renderCardsPlace(patientId: string): Html {
  const url = buildCardsUrl(patientId)
  // Its height does not depend on the cards: what is below must not move when they arrive, under somebody's pointer.
  // Only summaries of critical cards may make it higher.
  return html`<div class="cds-place" id="decision-support" tabindex="0">${renderSection(url, html`<p><a href="${url}">Show decision support</a></p>`)}
<a class="moreof cds__all" href="#decision-support">Show all</a><a class="moreof moreof--less cds__less" href="#picked">Show less</a></div>`
}

export function renderSection(url: string, content: Html, count?: string): Html {
  return html`<section class="card__body stack stack--tight cds" aria-labelledby="cds" aria-live="polite" data-cards="${url}"><h2 class="legend" id="cds">Decision support${count !== undefined && `: ${count}`}</h2>
${content}</section>`
}
