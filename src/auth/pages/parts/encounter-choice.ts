import { formatEncounterTime } from '../../../web/person/index.ts'
import { type Html, html, renderAlert, renderBadge, renderChoice } from '../../../web/ui/index.ts'
import type { Encounter, Encounters } from '../../patients/picked.ts'

/** The number of encounters that are shown at first, so that the launch button stays on the first screen. */
const IN_SIGHT = 4

interface EncounterChoice {
  /** The path of the page, which shows all encounters if it is asked. */
  readonly page: string
  /** Whether it shows all of them. */
  readonly isAll: boolean
  /** The choice in a form that is shown again: empty for "No encounter". */
  readonly chosen?: string | undefined
  readonly fault?: string | undefined
  /** Patients and relatives call it a visit. */
  readonly noun?: 'encounter' | 'visit'
}

/**
 * Preselects the only encounter in progress. CSS shows the earlier ones when their link is followed or one of them has the
 * focus, and the chosen one always. Unlike a closed `details`, this keeps all input.
 */
export function renderEncounterChoice(
  { listed, found, total = found, isCut }: Encounters,
  { page, isAll, chosen, fault, noun = 'encounter' }: EncounterChoice,
): Html {
  const running = listed.filter(encounter => encounter.inProgress)
  const usual = running.length === 1 ? running[0]?.id : listed.length === 0 ? '' : undefined
  const checked = chosen ?? (fault === undefined ? usual : undefined)
  const row = (encounter: Encounter, index: number) =>
    renderEncounter(encounter, encounter.id === checked, fault !== undefined && index === 0)
  const earlier = listed.slice(IN_SIGHT)
  return html`<fieldset id="encounters"${fault !== undefined && html` aria-describedby="encounter-error"`}><legend class="legend">${noun === 'visit' ? 'Visit' : 'Encounter'}</legend><div class="stack stack--tight">
${fault !== undefined && html`<div id="encounter-error">${renderAlert(`No ${noun} chosen.`, fault, 'bad')}</div>`}
<div class="choices">${listed.slice(0, IN_SIGHT).map(row)}
${earlier.length > 0 && html`<div class="choices__earlier" id="earlier">${earlier.map(encounter => row(encounter, IN_SIGHT))}${total > listed.length && renderRest(`${listed.length} of ${total} ${noun}s`, isAll ? undefined : page)}</div>`}
${renderChoice({ type: 'radio', name: 'encounterId', value: '', text: `No ${noun}`, meta: `${listed.length === 0 && !isCut ? 'None is recorded. ' : ''}The app opens with the ${noun === 'visit' ? 'record' : 'patient'} only`, isChecked: checked === '' })}</div>
${isCut && html`<p class="muted">The FHIR server did not return all ${noun}s.</p>`}
${
  earlier.length > 0 &&
  html`<p class="choices__more"><a class="moreof" href="#earlier">Show ${earlier.length} earlier ${earlier.length === 1 ? noun : `${noun}s`}</a>${total > listed.length && ` of ${total - Math.min(IN_SIGHT, listed.length)}`}</p>
<p class="choices__less"><a class="moreof moreof--less" href="#encounters">Show less</a></p>`
}
</div></fieldset>`
}

/** The rest of the encounters are read on demand, up to a limit. A button keeps what was chosen. */
function renderRest(count: string, page: string | undefined): Html {
  return html`<p class="choices__rest">${count}.${page !== undefined && html` <button class="btn btn--text" name="encounters" value="all" formaction="${page}#earlier" formmethod="get">Show more</button>`}</p>`
}

function renderEncounter(
  { id, title, status, inProgress, start, end, who }: Encounter,
  checked: boolean,
  isFocused: boolean,
): Html {
  return html`<label class="choice"><input type="radio" name="encounterId" value="${id}"${checked && html` checked`}${isFocused && html` autofocus`}>
<span class="choice__main">${title}</span>${renderBadge(status, inProgress ? 'accent' : undefined)}
<span class="choice__meta">${inProgress && 'Started '}${formatEncounterTime({ start, end })}${who !== undefined && `, ${who}`}</span></label>
`
}
