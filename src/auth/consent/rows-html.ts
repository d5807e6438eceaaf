import { badge, type Html, html, icon } from '../../web/index.ts'
import type { Asking, Choice } from './choices.ts'
import { categoriesOf, kindOf } from './kinds.ts'
import { titleOf, verbsOf } from './meaning.ts'

/** Ticked before anybody touches the page: everything, as the app asked (design: Scope row). */
export type Ticked = (scope: string) => boolean

const STATE = html`<span class="scope__state"><span class="on">Allowed</span><span class="part">In part</span><span class="off">Not allowed</span></span>`

/** A row with a box; the word at its end follows the boxes by CSS. */
export function row(
  {
    value,
    title,
    text,
    more,
  }: { value: string; title: Html | string; text: Html | string; more?: Html | undefined },
  ticked: Ticked,
): Html {
  return html`<li><label class="scope">${box(value, ticked)}<span class="scope__title">${title}</span>${STATE}<span class="scope__text">${text}</span></label>${more}</li>`
}

/** A row that cannot be switched. */
export function fixedRow(title: string, state: string, text: Html | string): Html {
  return html`<li><div class="scope scope--fixed">${icon('lock')}<span class="scope__title">${title}</span><span class="scope__state">${state}</span><span class="scope__text">${text}</span></div></li>`
}

export function readRow({ scope, parts }: Asking, ticked: Ticked): Html {
  return row(
    {
      value: scope.text,
      title: html`${titleOf(scope)}${reachBadge(scope.context)}`,
      text: kindOf(scope.type).text,
      more: partsHtml(scope.type, parts, ticked),
    },
    ticked,
  )
}

export function writeRow({ scope, parts }: Asking, ticked: Ticked): Html {
  const { noun } = kindOf(scope.type)
  const only = scope.query.length === 0 ? '' : ` (${titleOf(scope)})`
  return row(
    {
      value: scope.text,
      title: html`${verbsOf(scope.permissions, 's')} ${noun}${only}&ensp;${badge('Writes to the record', 'warn')}${reachBadge(scope.context)}`,
      text: writeText(scope.permissions),
      more: partsHtml(scope.type, parts, ticked),
    },
    ticked,
  )
}

function writeText(permissions: Asking['scope']['permissions']): string {
  const added = permissions.has('c') ? 'What the app adds becomes part of the record. ' : ''
  if (permissions.has('u') && permissions.has('d'))
    return `${added}The app can change and delete what is there. Earlier versions are kept.`
  if (permissions.has('u')) return `${added}The app can change what is there, and cannot delete it.`
  if (permissions.has('d')) return `${added}The app can delete what is there, and cannot change it.`
  return `${added}It cannot change or delete what is there.`
}

function reachBadge(context: Asking['scope']['context']): Html | undefined {
  return context === 'user' ? html`&ensp;${badge('Every patient you may see', 'warn')}` : undefined
}

function partsHtml(type: string, parts: readonly Choice[], ticked: Ticked): Html | undefined {
  if (parts.length === 0) return undefined
  const what = type === '*' ? 'kinds of data' : kindOf(type).noun
  return html`<details class="more scope__more"${parts.some(part => !ticked(part.scope.text)) && html` open`}><summary>Choose which ${what}</summary>
<div class="scope__parts${type === '*' && ' scope__parts--many'}" role="group" aria-label="Which ${what}">${parts.map(part => partHtml(type, part, ticked))}</div>
${type === '*' && html`<p class="scope__note">With one left out, kinds that are not in this list are left out too.</p>`}</details>`
}

// A category is named by itself here: its kind is the row that it belongs to.
function partHtml(rowType: string, { scope, parts }: Choice, ticked: Ticked): Html {
  const token = scope.query[0]?.[1]
  const category = categoriesOf(scope.type).find(one => one.token === token)
  const title = rowType === '*' ? kindOf(scope.type).title : (category?.title ?? titleOf(scope))
  return html`<div class="scope__part"><label>${box(scope.text, ticked)}<span>${title}</span></label>${
    parts.length > 0 &&
    html`<div class="scope__parts scope__parts--in" role="group" aria-label="Which ${kindOf(scope.type).noun}">${parts.map(part => partHtml(scope.type, part, ticked))}</div>`
  }</div>`
}

function box(value: string, ticked: Ticked): Html {
  return html`<input type="checkbox" name="scope" value="${value}"${ticked(value) && html` checked`}>`
}
