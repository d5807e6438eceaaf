import type { Static } from '@sinclair/typebox'
import { digitsOf } from '../../fhir/index.ts'
import { dateHtml, dateTimeHtml, type Html, html } from '../../web/index.ts'
import type { vitalsRow } from '../api/vitals.ts'
import type { Result } from '../failure.ts'
import { type Reading, readingsOf, selectRecentReadings } from './blood-pressure.ts'
import { renderCard, renderEmptyList, renderGap } from './card.ts'
import { renderPressureChart } from './chart.ts'

const CARD = { id: 'h-pressure', title: 'Blood pressure' } as const

export function renderPressureCard(result: Result<Static<typeof vitalsRow.body>>, now: number): Html {
  if (!result.ok) return renderCard(CARD, renderGap('measurements', result.failure))
  const all = readingsOf(result.value.entry.map(({ resource }) => resource))
  const { readings, note } = selectRecentReadings(all, now)
  const [latest] = readings
  if (latest === undefined)
    return renderCard(
      CARD,
      renderEmptyList('No blood pressure recorded', 'The record that is shared with this app holds none.'),
    )
  return renderCard(
    { ...CARD, note },
    html`<div class="card__body card__body--tight">
<p class="stat"><b>${digitsOf(latest.systolic)}/${digitsOf(latest.diastolic)}</b> <span>mmHg</span> <span class="push">${dateTimeHtml(latest.date)}</span></p>
${readings.length > 1 && renderPressureChart(readings.toReversed())}
${readings.length > 1 && readingsTable(readings)}
</div>`,
  )
}

function readingsTable(readings: readonly Reading[]): Html {
  return html`<details class="more"><summary>Show the readings</summary>
<table class="table table--plain"><caption class="sr">Blood pressure readings in mmHg</caption>
<thead><tr><th scope="col">Date</th><th scope="col" class="num">Systolic</th><th scope="col" class="num">Diastolic</th></tr></thead>
<tbody>${readings.map(
    ({ date, systolic, diastolic }) =>
      html`<tr><td>${dateHtml(date)}</td><td class="num">${digitsOf(systolic)}</td><td class="num">${digitsOf(diastolic)}</td></tr>`,
  )}</tbody></table></details>`
}
