import { type Html, html, renderBadge, renderIcon } from '../../../web/ui/index.ts'
import type { ConsentChoice, ConsentItem } from '../../oauth/authorize/consent-items.ts'
import {
  describeCategory,
  describeKind,
  describePermissions,
  describeScope,
  describeWithoutWrite,
  describeWrite,
} from '../../words/scopes.ts'

/** Whether a checkbox is checked when the page is shown. */
export type IsChecked = (scope: string) => boolean

const STATE = html`<span class="scope__state"><span class="on">Selected</span><span class="part">In part</span><span class="off">Left out</span></span>`

interface Row {
  readonly value: string
  readonly title: Html | string
  readonly text: Html | string
  readonly more?: Html | undefined
  readonly writes?: boolean
}

/** A row with a checkbox. CSS shows the state at its end. */
export function renderRow({ value, title, text, more, writes = false }: Row, isChecked: IsChecked): Html {
  return html`<li${writes && html` class="writes"`}><label class="scope">${renderCheckbox(value, isChecked)}<span class="scope__title">${title}</span>${STATE}<span class="scope__text">${text}</span></label>${more}</li>`
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

/**
 * `isOptional`: the row is not checked at first, so it says what happens without it. `isLimitedByReading`: it has no checkboxes
 * for the categories.
 */
export function renderWriteRow(
  { scope, parts }: ConsentItem,
  isChecked: IsChecked,
  {
    isAgent,
    isOptional,
    isLimitedByReading,
  }: { readonly isAgent: boolean; readonly isOptional: boolean; readonly isLimitedByReading: boolean },
): Html {
  const { noun } = describeKind(scope.type)
  const only = scope.query.length === 0 ? '' : ` (${describeScope(scope)})`
  return renderRow(
    {
      value: scope.text,
      title: isAgent
        ? html`Propose changes of ${noun}${only}${renderScopeBadge(scope.context)}`
        : html`${describePermissions(scope.permissions, 's')} ${noun}${only}&ensp;${renderBadge('Writes to the record', 'warn')}${renderScopeBadge(scope.context)}`,
      text: isAgent
        ? NOTHING_WRITTEN
        : `${describeWrite(scope.permissions)}${isLimitedByReading ? ` If you let it read only some ${scope.type === '*' ? 'measurements or conditions' : noun}, it can do this only with those.` : ''}${isOptional ? ` ${describeWithoutWrite(scope.permissions)}` : ''}`,
      more: renderParts(scope.type, parts, isChecked),
      writes: true,
    },
    isChecked,
  )
}

/** What an assistant does with a scope that writes. */
const NOTHING_WRITTEN =
  'Nothing is written until you have read a proposal and signed it. You can reject it too.'

function renderScopeBadge(context: ConsentItem['scope']['context']): Html | undefined {
  return context === 'user' ? html`&ensp;${renderBadge('Every record you may open', 'warn')}` : undefined
}

function renderParts(type: string, parts: readonly ConsentChoice[], isChecked: IsChecked): Html | undefined {
  if (parts.length === 0) return undefined
  const nouns = type === '*' ? 'kinds of data' : describeKind(type).noun
  return html`<details class="more scope__more"${parts.some(part => !isChecked(part.scope.text)) && html` open`}><summary>Choose which ${nouns}</summary>
<div class="scope__parts${type === '*' && ' scope__parts--many'}" role="group" aria-label="Which ${nouns}">${parts.map(part => renderPart(type, part, isChecked))}</div>
${type === '*' && html`<p class="scope__note">If you clear one, kinds that are not in this list are excluded too.</p>`}</details>`
}

// Only the title of the category, because its row has the title of the kind.
function renderPart(rowType: string, { scope, parts }: ConsentChoice, isChecked: IsChecked): Html {
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
