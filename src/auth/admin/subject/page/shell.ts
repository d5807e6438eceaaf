import { findOwn } from '../../../../core/index.ts'
import {
  type Html,
  html,
  renderAlert,
  renderCopyable,
  renderDanger,
  renderPageHead,
  renderFacts as renderPlainFacts,
  renderTable as renderPlainTable,
} from '../../../../web/ui/index.ts'
import { paths } from '../../../base/paths.ts'
import { renderSignedInPage } from '../../../pages/parts/page-parts.ts'
import type { AdminRequest } from './route.ts'

/** The sections of the area, in the order of the navigation. */
const SECTIONS = [
  ['overview', '', 'Overview'],
  ['apps', '/apps', 'Apps'],
  ['clinicians', '/clinicians', 'Users'],
  ['access', '/access', 'Access'],
  ['keys', '/keys', 'Keys'],
  ['providers', '/providers', 'Sign-in'],
  ['policy', '/policy', 'Policy'],
  ['audit', '/audit', 'Audit'],
  ['system', '/system', 'System'],
] as const

type Section = (typeof SECTIONS)[number][0]

export interface AdminPage {
  readonly section: Section
  readonly title: string
  readonly lead?: Html | string | undefined
  /** Links or buttons beside the title. */
  readonly actions?: Html | undefined
  /** The effect of the previous action. */
  readonly done?: string | undefined
  readonly scripts?: readonly string[]
}

/** Renders a page of the area, with its navigation. */
export function renderAdminPage(
  { context, login }: Pick<AdminRequest, 'context' | 'login'>,
  { section, title, lead, actions, done, scripts = [] }: AdminPage,
  body: Html,
): Html {
  return renderSignedInPage(
    context,
    login,
    { current: 'admin', title: `${title} – Administration`, scripts },
    html`<nav class="subnav" aria-label="Administration"><ul>${SECTIONS.map(
      ([name, path, text]) =>
        html`<li><a href="${paths.admin}${path}"${name === section && html` aria-current="page"`}>${text}</a></li>`,
    )}</ul></nav>
${renderPageHead(title, lead, actions && html`<div class="actions">${actions}</div>`)}
${done !== undefined && html`<div role="status">${renderAlert(done, '', 'ok')}</div>`}
${body}`,
  )
}

interface ShownSecret extends Pick<AdminPage, 'section' | 'title'> {
  readonly label: string
  readonly value: string
  /** What the user has to do with it. */
  readonly note?: Html | string
  readonly warning?: Html | undefined
  /** The path of the next page, below the area. */
  readonly back: string
}

/** Shows a value once: it is not stored. */
export function renderSecret(
  request: AdminRequest,
  { section, title, label, value, note, warning, back }: ShownSecret,
): Html {
  return renderAdminPage(
    request,
    { section, title, scripts: ['copy.js'] },
    html`<div role="status">${renderAlert('Copy it now.', 'It is not shown again.', 'warn')}${warning}</div>
<section class="card card__body stack stack--tight after" aria-label="${label}">${renderCopyable(label, value)}${note !== undefined && html`<p class="small">${note}</p>`}</section>
<p class="actions after">${renderLink(back, 'Continue', 'btn btn--quiet')}</p>`,
  )
}

/** The message of a page after an action, which its URL names. */
export function readDone(
  { form }: AdminRequest,
  messages: Readonly<Record<string, string>>,
): string | undefined {
  const name = form.get('done') ?? ''
  return findOwn(messages, name)
}

/** The items of a list on one page. */
export const LISTED = 50

/** A table whose first column names the row. */
export function renderTable(caption: string, columns: Columns, rows: readonly Cells[]): Html {
  return html`<div class="card card--clip">${renderPlainTable({ caption, kind: 'table--top table--stack', columns }, rows)}</div>`
}

/** A table whose last column has actions, for those who may change something. */
export function renderActionTable(
  { mayChange }: Pick<AdminRequest, 'mayChange'>,
  caption: string,
  columns: Columns,
  rows: readonly Cells[],
): Html {
  return mayChange
    ? renderTable(caption, [...columns, { head: 'Action', isHidden: true }], rows)
    : renderTable(
        caption,
        columns,
        rows.map(row => row.slice(0, -1)),
      )
}

type Cell = Html | string | number | undefined
export type Cells = readonly Cell[]
export type Columns = Parameters<typeof renderPlainTable>[0]['columns']

/** A list of names and values. */
export function renderFacts(facts: readonly (readonly [name: string, value: Cell])[]): Html {
  const shown = facts.map(([name, value]) => [name, html`${value ?? 'None'}`] as const)
  return html`<div class="card card__body">${renderPlainFacts(shown, 'kv--table')}</div>`
}

/** A link to the page of an action that cannot be undone. */
export function renderDangerLink(path: string, text: Html | string): Html {
  return renderDanger(text, { href: `${paths.admin}${path}`, size: 'small' })
}

/** Links to lists of audit records, by their filters. */
export function renderAuditLinks(
  ...links: readonly (readonly [text: string, filter: Readonly<Record<string, string>>])[]
): Html {
  return html`<span class="actions">${links.map(([text, filter]) => renderLink(`/audit?${new URLSearchParams(filter)}`, text))}</span>`
}

/** A link that looks like a small button. */
export function renderButton(path: string, text: Html | string): Html {
  return renderLink(path, text, 'btn btn--quiet btn--small')
}

export function renderLink(path: string, text: Html | string, kind = ''): Html {
  return html`<a${kind !== '' && html` class="${kind}"`} href="${paths.admin}${path}">${text}</a>`
}
