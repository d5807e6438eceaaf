import { type Html, html, mark } from '../../web/index.ts'
import type { Failure } from '../failure.ts'

/** A card of the demo app: its heading, a note beside it, and its content. */
export function renderCard(
  options: { readonly id: string; readonly title: string; readonly note?: string; readonly clip?: boolean },
  content: Html,
): Html {
  const { id, title, note, clip = false } = options
  return html`<section class="card${clip && ' card--clip'}" aria-labelledby="${id}">
<div class="card__head"><h2 id="${id}">${title}</h2>${note !== undefined && html`<p class="small muted">${note}</p>`}</div>
${content}
</section>`
}

/** What a card says in place of records that it does not have. It never looks as if there were none. */
export function renderGap(what: string, failure: Failure): Html {
  return html`<div class="card__body"><p><b>${describeFailure(failure)}.</b> <span class="muted">${adviceOf(what, failure)}</span></p></div>`
}

/** Why a list is empty (design: Empty state). */
export function renderEmptyList(title: string, text: string): Html {
  return html`<div class="empty">${mark('empty__art')}<h3>${title}</h3><p>${text}</p></div>`
}

/** Why something is not shown, in a few words. */
export function describeFailure(failure: Failure): string {
  switch (failure.kind) {
    case 'missing-scope':
      return 'Not shared with this app'
    case 'access-refused':
      return 'Access refused'
    case 'not-found':
      return 'Not found'
    default:
      return 'Could not be loaded'
  }
}

function adviceOf(what: string, failure: Failure): string {
  switch (failure.kind) {
    case 'missing-scope':
      return `There may be ${what} on record. Look in the full record.`
    case 'access-refused':
      return `The FHIR server does not let this session see ${what}.`
    default:
      return `There may be ${what} on record. Load the page again, or look in the full record.`
  }
}
