import { capitalize, isRecord } from '../../../core/index.ts'
import { type Html, html, renderDateTime } from '../../../web/ui/index.ts'
import { toWords } from '../base/describe-change.ts'
import { renderTable } from '../subject/page/shell.ts'

/** The details of an audit record in words: the properties before and after a change, or those that it has. */
export function renderDetails(details: unknown): Html | undefined {
  const { before, after, ...others } = isRecord(details) ? details : {}
  if (isRecord(before) && isRecord(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
    if (names.length === 0) return undefined
    const rows = names.map(name => [
      toLabel(name),
      renderMember(name, before[name]),
      renderMember(name, after[name]),
    ])
    return renderSection(
      'Change',
      renderTable('Properties that changed', ['Property', 'Before', 'After'], rows),
    )
  }
  const members = isRecord(before) ? before : isRecord(after) ? after : others
  const rows = Object.entries(members).map(([name, value]) => [toLabel(name), renderMember(name, value)])
  if (rows.length === 0) return undefined
  return renderSection(
    isRecord(before) ? 'Removed' : 'Details',
    renderTable('Properties', ['Property', 'Value'], rows),
  )
}

function renderSection(title: string, table: Html): Html {
  return html`<h2 class="section__title subhead">${title}</h2>${table}`
}

function toLabel(name: string): string {
  return capitalize(toWords(name))
}

/** Scopes are compared one by one. */
const LISTS: readonly string[] = ['scope', 'scopes']

function renderMember(name: string, value: unknown): Html | string {
  if (value === undefined || value === null || value === '') return 'None'
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  if (typeof value === 'number') return isTime(name) ? renderDateTime(value) : value.toLocaleString('en')
  if (typeof value === 'string' && LISTS.includes(name)) return renderItems(value.split(' '))
  if (Array.isArray(value))
    return value.length === 0 ? 'None' : renderItems(value.map(one => renderMember('', one)))
  if (!isRecord(value)) return String(value)
  return renderItems(
    Object.entries(value).map(([key, one]) => html`${toLabel(key)}: ${renderMember(key, one)}`),
  )
}

function isTime(name: string): boolean {
  return /At$|^since$|^until$/.test(name)
}

function renderItems(items: readonly (Html | string)[]): Html {
  return html`<ul class="list">${items.map(item => html`<li>${item}</li>`)}</ul>`
}
