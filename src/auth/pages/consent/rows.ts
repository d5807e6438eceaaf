import { type Html, html, renderBadge, renderIcon } from '../../../web/index.ts'
import { type Choice, type ConsentItem, EVERY_WRITE } from '../../oauth/authorize/consent-items.ts'
import {
  describeCategory,
  describeKind,
  describePermissions,
  describeScope,
  describeWithoutWrite,
  describeWrite,
} from './texts.ts'

/** Whether a checkbox is checked when the page is shown. */
export type IsChecked = (scope: string) => boolean

const STATE = html`<span class="scope__state"><span class="on">Selected</span><span class="part">In part</span><span class="off">Left out</span></span>`

interface Row {
  readonly value: string
  readonly title: Html | string
  readonly text: Html | string
  readonly more?: Html | undefined
  readonly style?: 'writes' | 'writes writes--every'
}

/** A row with a checkbox. CSS shows the state at its end. */
export function renderRow({ value, title, text, more, style }: Row, isChecked: IsChecked): Html {
  return html`<li${style && html` class="${style}"`}><label class="scope">${renderCheckbox(value, isChecked)}<span class="scope__title">${title}</span>${STATE}<span class="scope__text">${text}</span></label>${more}</li>`
}

/** A row without a checkbox. */
export function renderFixedRow(title: string, state: string, text: Html | string): Html {
  return html`<li><div class="scope scope--fixed">${renderIcon('lock')}<span class="scope__title">${title}</span><span class="scope__state">${state}</span><span class="scope__text">${text}</span></div></li>`
}

export function renderReadRow({ scope, parts }: ConsentItem, isChecked: IsChecked): Html {
  return renderRow(
    {
      value: scope.text,
      title: html`${describeScope(scope)}${renderScopeBadge(scope.context)}`,
      text:
        scope.query.length === 0
          ? html`<span class="scope__all">${describeKind(scope.type).text}</span><span class="scope__left">Only those that are selected below.</span>`
          : 'Only these entries.',
      more: renderParts(scope.type, parts, isChecked),
    },
    isChecked,
  )
}

/** While this row is checked, CSS shows the rows below it as selected. */
export function renderEveryWriteRow(writes: readonly ConsentItem[], isChecked: IsChecked): Html {
  const permissions = new Set(writes.flatMap(({ scope }) => [...scope.permissions]))
  return renderRow(
    {
      value: EVERY_WRITE,
      title: html`Allow it to change the record&ensp;${renderBadge('Writes to the record', 'warn')}`,
      text: `Selects everything below. ${describeWithoutWrite(permissions)}`,
      style: 'writes writes--every',
    },
    isChecked,
  )
}

/**
 * `isOnly`: there is no row for all, so this one says what happens without it. `isLimitedByReading`: it has no checkboxes for
 * the categories.
 */
export function renderWriteRow(
  { scope, parts }: ConsentItem,
  isChecked: IsChecked,
  { isOnly, isLimitedByReading }: { readonly isOnly: boolean; readonly isLimitedByReading: boolean },
): Html {
  const { noun } = describeKind(scope.type)
  const only = scope.query.length === 0 ? '' : ` (${describeScope(scope)})`
  return renderRow(
    {
      value: scope.text,
      title: html`${describePermissions(scope.permissions, 's')} ${noun}${only}&ensp;${renderBadge('Writes to the record', 'warn')}${renderScopeBadge(scope.context)}`,
      text: `${describeWrite(scope.permissions)}${isLimitedByReading ? ` If you let it read only some ${scope.type === '*' ? 'measurements or conditions' : noun}, this is for the same ones.` : ''}${isOnly ? ` ${describeWithoutWrite(scope.permissions)}` : ''}`,
      more: renderParts(scope.type, parts, isChecked),
      style: 'writes',
    },
    isChecked,
  )
}

function renderScopeBadge(context: ConsentItem['scope']['context']): Html | undefined {
  return context === 'user' ? html`&ensp;${renderBadge('Every record you may open', 'warn')}` : undefined
}

function renderParts(type: string, parts: readonly Choice[], isChecked: IsChecked): Html | undefined {
  if (parts.length === 0) return undefined
  const nouns = type === '*' ? 'kinds of data' : describeKind(type).noun
  return html`<details class="more scope__more"${parts.some(part => !isChecked(part.scope.text)) && html` open`}><summary>Choose which ${nouns}</summary>
<div class="scope__parts${type === '*' && ' scope__parts--many'}" role="group" aria-label="Which ${nouns}">${parts.map(part => renderPart(type, part, isChecked))}</div>
${type === '*' && html`<p class="scope__note">If you clear one, kinds that are not in this list are excluded too.</p>`}</details>`
}

// Only the title of the category, because its row has the title of the kind.
function renderPart(rowType: string, { scope, parts }: Choice, isChecked: IsChecked): Html {
  const category = describeCategory(scope.type, scope.query[0]?.[1] ?? '')
  const title = rowType === '*' ? describeKind(scope.type).title : (category ?? describeScope(scope))
  return html`<div class="scope__part"><label>${renderCheckbox(scope.text, isChecked)}<span>${title}</span></label>${
    parts.length > 0 &&
    html`<div class="scope__parts scope__parts--in" role="group" aria-label="Which ${describeKind(scope.type).noun}">${parts.map(part => renderPart(scope.type, part, isChecked))}</div>`
  }</div>`
}

function renderCheckbox(value: string, isChecked: IsChecked): Html {
  return html`<input type="checkbox" name="scope" value="${value}"${isChecked(value) && html` checked`}>`
}
