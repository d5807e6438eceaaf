import type { Static } from '@sinclair/typebox'
import { digitsOf } from '../../fhir/index.ts'
import { dateHtml, dateTimeHtml, type Html, html } from '../../web/index.ts'
import type { vitalsRow } from '../api/vitals.ts'
import type { Result } from '../failure.ts'
import { type Reading, readingsOf, recentReadings } from './blood-pressure.ts'
import { card, gap, none } from './card.ts'
import { pressureChart } from './chart.ts'

const CARD = { id: 'h-pressure', title: 'Blood pressure' } as const

export function pressureCard(result: Result<Static<typeof vitalsRow.body>>, now: number): Html {
  if (!result.ok) return card(CARD, gap('measurements', result.failure))
  const all = readingsOf(result.value.entry.map(({ resource }) => resource))
  const { readings, note } = recentReadings(all, now)
  const [latest] = readings
  if (latest === undefined)
    return card(
      CARD,
      none('No blood pressure recorded', 'The record that is shared with this app holds none.'),
    )
  return card(
    { ...CARD, note },
    html`<div class="card__body card__body--tight">
<p class="stat"><b>${digitsOf(latest.systolic)}/${digitsOf(latest.diastolic)}</b> <span>mmHg</span> <span class="push">${dateTimeHtml(latest.date)}</span></p>
${readings.length > 1 && pressureChart(readings.toReversed())}
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
