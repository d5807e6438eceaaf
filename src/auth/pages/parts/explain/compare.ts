import { type Html, html } from '../../../../web/ui/index.ts'
import { findDifference, type Piece } from '../../../words/difference.ts'
import type { ComparedValue } from '../../../words/reason.ts'

/** Renders sent values beside those that they were compared with. */
export function renderComparisons(compared: readonly ComparedValue[]): Html {
  return html`<table class="table compare" role="table"><thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Parameter</th><th role="columnheader" scope="col">Sent</th><th role="columnheader" scope="col">Compared with</th></tr></thead>
<tbody role="rowgroup">${compared.map(renderComparison)}</tbody></table>`
}

function renderComparison({ name, sent, expected, origin }: ComparedValue): Html {
  // Scopes are lists, and some values are descriptions.
  const difference = COMPARED.has(name) && sent !== undefined ? findDifference(sent, expected) : undefined
  const renderExpected = (value: string) =>
    html`<code>${value === difference?.nearest ? renderPieces(difference.expected) : value}</code> `
  return html`<tr role="row"><th role="rowheader" scope="row">${name}</th>
<td role="cell" data-label="Sent">${sent === undefined ? 'Not sent' : html`<code>${difference ? renderPieces(difference.sent) : sent}</code>`}</td>
<td role="cell"><span class="sub">${origin[0]?.toUpperCase()}${origin.slice(1)}</span> ${expected.length === 0 ? 'None' : expected.map(renderExpected)}</td></tr>`
}

const COMPARED: ReadonlySet<string> = new Set(['redirect_uri', 'aud'])

function renderPieces(pieces: readonly Piece[]): Html {
  return html`${pieces.map(({ text, differs }) => (differs ? html`<mark>${text}</mark>` : text))}`
}
