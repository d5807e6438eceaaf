import { DAY_MS } from '../../core/index.ts'
import { type Decimal, formatDigits } from '../../fhir/index.ts'
import { nameCodeSystem } from '../../web/person/index.ts'
import { formatDate, type Html, html, MONTHS } from '../../web/ui/index.ts'
import { findEffectiveTime } from '../api/lists.ts'
import type { CodeableConcept, Observation } from '../records/resources.ts'

export function formatCode(concept: CodeableConcept | undefined): string | undefined {
  const coding = concept?.coding?.find(({ code, system }) => code !== undefined && system !== undefined)
  const system = nameCodeSystem(coding?.system)
  return system === undefined ? undefined : `${system} ${coding?.code}`
}

function findCoding(concept: CodeableConcept | undefined, system: string): string | undefined {
  return concept?.coding?.find(coding => coding.system === system)?.code
}

/** The panel of R4's blood pressure profile. */
export const BLOOD_PRESSURE = '85354-9'
/** The panel that older records use instead. */
export const OLDER_BLOOD_PRESSURE = '55284-4'

const SYSTOLIC = '8480-6'
const DIASTOLIC = '8462-4'
const LOINC = 'http://loinc.org'

export interface Reading {
  readonly at: number
  readonly date: string
  readonly systolic: Decimal
  readonly diastolic: Decimal
}

/** Observations that are entered in error, cancelled or not yet final are not readings. */
const FINAL_STATUSES: ReadonlySet<string | undefined> = new Set([
  'final',
  'amended',
  'corrected',
  'preliminary',
])

/** Skips incomplete readings and readings in another unit. */
export function findReadings(observations: readonly Observation[]): readonly Reading[] {
  return observations.flatMap(observation =>
    FINAL_STATUSES.has(observation.status) ? (toReading(observation) ?? []) : [],
  )
}

function toReading(observation: Observation): Reading | undefined {
  const date = findEffectiveTime(observation)
  const at = Date.parse(date ?? '')
  const systolic = readMillimetres(observation, SYSTOLIC)
  const diastolic = readMillimetres(observation, DIASTOLIC)
  if (date === undefined || Number.isNaN(at) || systolic === undefined || diastolic === undefined)
    return undefined
  return { at, date, systolic, diastolic }
}

function readMillimetres({ component = [] }: Observation, code: string): Decimal | undefined {
  const quantity = component.find(part => findCoding(part.code, LOINC) === code)?.valueQuantity
  const inMmHg = quantity?.code === 'mm[Hg]' || /^mm\s?\[?hg\]?$/i.test(quantity?.unit ?? '')
  return inMmHg ? quantity?.value : undefined
}

const YEAR_MS = 365 * DAY_MS

const SHOWN = 12

/** Selects the last 12 months, or the latest readings if those months have fewer than two. */
export function selectRecentReadings(
  readings: readonly Reading[],
  now: number,
): { readings: readonly Reading[]; note: string } {
  const lastYear = readings.filter(({ at }) => at >= now - YEAR_MS)
  if (lastYear.length >= 2) return { readings: lastYear, note: 'Last 12 months' }
  const last = readings.slice(0, SHOWN)
  return { readings: last, note: last.length === 1 ? 'One reading' : `Last ${last.length} readings` }
}

const LEFT = 34
const RIGHT = 336
const TOP = 12
const BOTTOM = 150
const INSET = 13

interface Scale {
  x(at: number): number
  y(value: number): number
  readonly from: number
  readonly to: number
  readonly low: number
  readonly high: number
}

/** Renders blood pressure over time as an SVG line chart. Needs at least two readings, oldest first. */
export function renderPressureChart(readings: readonly Reading[]): Html {
  const scale = computeScale(readings)
  return html`<svg class="chart" viewBox="0 0 344 174" role="img" aria-labelledby="bp-title bp-text">
<title id="bp-title">${formatTitle(readings)}</title>
<desc id="bp-text">${describeReadings(readings)}</desc>
${renderValueLines(scale)}${renderTimeMarks(scale)}
<g fill="none" stroke-width="2" stroke-linejoin="round"><polyline class="s1" points="${formatPoints(readings, scale, 'systolic')}"/><polyline class="s2" points="${formatPoints(readings, scale, 'diastolic')}"/></g>
${renderDots(readings, scale, 'systolic')}${renderDots(readings, scale, 'diastolic')}
${renderSeriesName(readings, scale, 'systolic')}${renderSeriesName(readings, scale, 'diastolic')}
</svg>`
}

/** The scale starts at a multiple of 20 and has steps of 40 mmHg, so that small changes do not look steep. */
function computeScale(readings: readonly Reading[]): Scale {
  const values = readings.flatMap(({ systolic, diastolic }) => [toNumber(systolic), toNumber(diastolic)])
  const low = Math.min(60, Math.floor(Math.min(...values) / 20) * 20)
  const high = Math.max(180, low + 40 * Math.ceil((Math.max(...values) - low) / 40))
  const from = readings[0]?.at ?? 0
  const to = Math.max(readings.at(-1)?.at ?? 1, from + 1)
  return {
    x: at => round(LEFT + INSET + ((at - from) / (to - from)) * (RIGHT - LEFT - 2 * INSET)),
    y: value => round(BOTTOM - ((value - low) / (high - low)) * (BOTTOM - TOP)),
    from,
    to,
    low,
    high,
  }
}

function renderValueLines({ y, low, high }: Scale): readonly Html[] {
  const step = Math.max(40, Math.ceil((high - low) / 160) * 40)
  const values = Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, at) => low + at * step)
  return values.map(
    value =>
      html`<path class="grid" d="M${LEFT} ${y(value)}H${RIGHT}"/><text x="26" y="${round(y(value) + 4)}" text-anchor="end">${value}</text>`,
  )
}

function renderTimeMarks({ x, from, to }: Scale): readonly Html[] {
  const start = new Date(from)
  const months = (to - from) / (30.44 * DAY_MS)
  const step = [1, 2, 3, 6, 12, 24, 60, 120].find(size => months / size <= 4.5) ?? 240
  const first = step >= 12 ? 0 : start.getUTCMonth()
  const marks: Html[] = []
  for (let month = first; marks.length < 6; month += step) {
    const at = Date.UTC(start.getUTCFullYear(), month, 1)
    if (at > to) break
    if (at < from - 15 * DAY_MS) continue
    const day = new Date(at)
    const name = step >= 12 ? String(day.getUTCFullYear()) : MONTHS[day.getUTCMonth()]
    const px = Math.min(RIGHT - 10, Math.max(LEFT + 4, x(at)))
    marks.push(
      html`<path class="grid" d="M${px} 150v4"/><text x="${px}" y="168" text-anchor="middle">${name}</text>`,
    )
  }
  return marks
}

type Series = 'systolic' | 'diastolic'

function formatPoints(readings: readonly Reading[], { x, y }: Scale, series: Series): string {
  return readings.map(reading => `${x(reading.at)},${y(toNumber(reading[series]))}`).join(' ')
}

function renderDots(readings: readonly Reading[], { x, y }: Scale, series: Series): readonly Html[] {
  const name = series === 'systolic' ? 'd1' : 'd2'
  return readings.map(
    reading =>
      html`<circle class="${name}" cx="${x(reading.at)}" cy="${y(toNumber(reading[series]))}" r="2.75"/>`,
  )
}

function renderSeriesName(readings: readonly Reading[], { x, y }: Scale, series: Series): Html {
  const middle = (LEFT + RIGHT) / 2
  const near = readings.filter(({ at }) => Math.abs(x(at) - middle) < 60)
  const heights = (near.length > 0 ? near : readings).map(reading => y(toNumber(reading[series])))
  const above = Math.max(10, Math.min(...heights) - 9)
  const below = Math.max(...heights) + 17
  const [className, name, height] =
    series === 'systolic'
      ? ['name1', 'Systolic', above]
      : ['name2', 'Diastolic', below <= BOTTOM - 4 ? below : above]
  return html`<text class="${className}" x="${middle}" y="${round(height)}" text-anchor="middle">${name}</text>`
}

function formatTitle(readings: readonly Reading[]): string {
  return `Blood pressure, ${formatDate(readings[0]?.date)} to ${formatDate(readings.at(-1)?.date)}`
}

function describeReadings(readings: readonly Reading[]): string {
  const first = readings[0]
  const last = readings.at(-1)
  const highest = readings.reduce((top, reading) =>
    toNumber(reading.systolic) > toNumber(top.systolic) ? reading : top,
  )
  return `${readings.length} readings in millimetres of mercury. First ${formatPoint(first)}, last ${formatPoint(last)}, highest ${formatPoint(
    highest,
  )} on ${formatDate(highest.date)}.`
}

function formatPoint(reading: Reading | undefined): string {
  return reading === undefined
    ? ''
    : `${formatPressure(reading.systolic)} over ${formatPressure(reading.diastolic)}`
}

/** The digits as recorded. A calculated value, which may have fifteen decimal places, is rounded to one. */
export function formatPressure(pressure: Decimal): string {
  const digits = formatDigits(pressure)
  return /^\d+(?:\.\d{1,2})?$/.test(digits) ? digits : String(round(Number(digits)))
}

function toNumber(decimal: Decimal): number {
  return Number(formatDigits(decimal))
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
