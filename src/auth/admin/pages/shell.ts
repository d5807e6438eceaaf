import { type Html, html, renderAlert, renderPage } from '../../../web/index.ts'
import { paths } from '../../paths.ts'
import { makeSignedInBar, showsSampleData } from '../../portal/page-parts.ts'
import type { AdminRequest } from './gate.ts'

/** The sections of the area, in the order of the navigation. */
const SECTIONS = [
  ['system', '', 'System'],
  ['apps', '/apps', 'Apps'],
  ['clinicians', '/clinicians', 'Users'],
  ['keys', '/keys', 'Keys'],
  ['providers', '/providers', 'Sign-in'],
  ['policy', '/policy', 'Policy'],
  ['audit', '/audit', 'Audit'],
] as const

export type Section = (typeof SECTIONS)[number][0]

interface AdminPage {
  readonly section: Section
  readonly title: string
  readonly lead?: Html | string
  /** Links or buttons beside the title. */
  readonly acts?: Html | undefined
  /** What has just happened. */
  readonly done?: string | undefined
}

/** Renders a page of the area, with its navigation. */
export function renderAdminPage(
  { context, login }: Pick<AdminRequest, 'context' | 'login'>,
  { section, title, lead, acts, done }: AdminPage,
  body: Html,
): Html {
  return renderPage(
    {
      title: `${title} – Administration`,
      bar: makeSignedInBar(login, 'admin'),
      sampleData: showsSampleData(context.settings),
    },
    html`<nav class="subnav" aria-label="Administration"><ul>${SECTIONS.map(
      ([name, path, text]) =>
        html`<li><a href="${paths.admin}${path}"${name === section && html` aria-current="page"`}>${text}</a></li>`,
    )}</ul></nav>
<div class="pagehead"><div><h1>${title}</h1>${lead !== undefined && html`<p class="pagehead__lead">${lead}</p>`}</div>${acts && html`<div class="actions">${acts}</div>`}</div>
${done !== undefined && html`<div role="status">${renderAlert(done, '', 'ok')}</div>`}
${body}`,
  )
}

interface Confirmation {
  readonly section: Section
  /** A question. */
  readonly title: string
  readonly text: Html | string
  /** The path of the act, below the area. */
  readonly path: string
  readonly button: string
  /** The path of the page to which `Cancel` leads, below the area. */
  readonly back: string
  readonly fields?: Html
  readonly isDangerous?: boolean
}

/** Renders the page on which an administrator confirms an act. Its form posts to the path of the page. */
export function renderConfirmation(
  request: Pick<AdminRequest, 'context' | 'login'>,
  asked: Confirmation,
): Html {
  const { section, title, text, path, button, back, fields, isDangerous = true } = asked
  return renderAdminPage(
    request,
    { section, title, lead: text },
    html`<form class="card card__body stack" method="post" action="${paths.admin}${path}">${fields}
<div class="actions"><button class="btn${isDangerous && ' btn--danger'}">${button}</button><a class="btn btn--quiet" href="${paths.admin}${back}">Cancel</a></div></form>`,
  )
}

interface Column {
  readonly head: string
  /** Shown to screen readers only. */
  readonly isHidden?: boolean
}

/** A table whose first column names the row. */
export function renderTable(
  caption: string,
  columns: readonly (string | Column)[],
  rows: readonly (readonly Cell[])[],
): Html {
  const heads = columns.map(column => (typeof column === 'string' ? { head: column } : column))
  return html`<div class="card card--clip"><table class="table table--top table--stack" role="table">
<caption class="sr">${caption}</caption>
<thead role="rowgroup"><tr role="row">${heads.map(
    ({ head, isHidden }: Column) =>
      html`<th role="columnheader" scope="col">${isHidden ? html`<span class="sr">${head}</span>` : head}</th>`,
  )}</tr></thead>
<tbody role="rowgroup">${rows.map(
    row =>
      html`<tr role="row">${row.map((cell, at) =>
        at === 0
          ? html`<th role="rowheader" scope="row">${cell}</th>`
          : html`<td role="cell" data-label="${heads[at]?.head ?? ''}">${cell}</td>`,
      )}</tr>`,
  )}</tbody></table></div>`
}

type Cell = Html | string | number | undefined

/** Facts of one thing, with their names. */
export function renderFacts(facts: readonly (readonly [string, Cell])[]): Html {
  return html`<div class="card card__body"><dl class="kv kv--table">${facts.map(
    ([name, value]) => html`<div><dt>${name}</dt><dd>${value ?? 'None'}</dd></div>`,
  )}</dl></div>`
}

export function renderLink(path: string, text: Html | string, kind = ''): Html {
  return html`<a${kind !== '' && html` class="${kind}"`} href="${paths.admin}${path}">${text}</a>`
}
