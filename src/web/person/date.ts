import { type Html, html } from '../html.ts'

/** What a missing value says. A blank would read as "none" (design: Missing). */
export const NOT_RECORDED = 'Not recorded'
export const NOT_KNOWN = 'Not known'

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const

/** A FHIR date or dateTime, or milliseconds since 1970. */
export type When = string | number

/** A calendar day that is known in full, in month or in year only. */
export interface PartialDate {
  readonly year: number
  readonly month?: number
  readonly day?: number
}

const FHIR_DATE = /^(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?$/

/** The zone of this server: a clinic sets `TZ`. */
export function getLocalZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone
}

/** Reads a FHIR date as it is, and a moment as the day it is in the zone. Undefined when it is neither. */
export function parseDate(when: When | undefined, zone = getLocalZone()): PartialDate | undefined {
  if (typeof when === 'string') {
    const parts = FHIR_DATE.exec(when)
    if (parts) return checked(Number(parts[1]), toNumber(parts[2]), toNumber(parts[3]))
  }
  const moment = parseMoment(when)
  if (moment === undefined) return undefined
  const { year, month, day } = partsIn(moment, zone)
  return { year, month, day }
}

function toNumber(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}

function checked(year: number, month: number | undefined, day: number | undefined): PartialDate | undefined {
  if (month === undefined) return { year }
  if (month < 1 || month > 12) return undefined
  if (day === undefined) return { year, month }
  const lastDay = new Date(Date.UTC(year, month, 0)).getUTCDate()
  return day >= 1 && day <= lastDay ? { year, month, day } : undefined
}

function parseMoment(when: When | undefined): number | undefined {
  const ms = typeof when === 'string' && when.includes('T') ? Date.parse(when) : when
  return typeof ms === 'number' && Number.isFinite(ms) ? ms : undefined
}

type Clockface = Readonly<Record<'year' | 'month' | 'day' | 'hour' | 'minute' | 'second', number>>

function partsIn(ms: number, zone: string): Clockface {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]))
  const part = (type: keyof Clockface): number => parts.get(type) ?? 0
  return {
    year: part('year'),
    month: part('month'),
    day: part('day'),
    hour: part('hour'),
    minute: part('minute'),
    second: part('second'),
  }
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}

/** `14-Mar-1958`; partly known `Mar 1958` or `1958`; missing or unreadable `Not recorded`. */
export function formatDate(when: When | undefined, zone = getLocalZone()): string {
  const date = parseDate(when, zone)
  if (!date) return NOT_RECORDED
  const year = String(date.year).padStart(4, '0')
  if (date.month === undefined) return year
  const month = MONTHS[date.month - 1]
  return date.day === undefined ? `${month} ${year}` : `${two(date.day)}-${month}-${year}`
}

/** The date in `<time>`, which keeps it on one line. */
export function renderDate(when: When | undefined, zone = getLocalZone()): Html {
  const date = parseDate(when, zone)
  if (!date) return html`<span class="unknown">${NOT_RECORDED}</span>`
  return html`<time datetime="${formatMachine(date)}">${formatDate(when, zone)}</time>`
}

function formatMachine({ year, month, day }: PartialDate): string {
  return [String(year).padStart(4, '0'), month, day]
    .filter(part => part !== undefined)
    .map(part => (typeof part === 'number' ? two(part) : part))
    .join('-')
}

/** `14:04` or `14:04:52`, 24 hours, in the zone. Empty when the value has no time of day. */
export function formatTime(
  when: When | undefined,
  { seconds = false, zone = getLocalZone() }: { readonly seconds?: boolean; readonly zone?: string } = {},
): string {
  const moment = parseMoment(when)
  if (moment === undefined) return ''
  const { hour, minute, second } = partsIn(moment, zone)
  return `${two(hour)}:${two(minute)}${seconds ? `:${two(second)}` : ''}`
}

/** `13-Nov-2026 14:04`, or only the date where no time is known. */
export function renderDateTime(when: When | undefined, zone = getLocalZone()): Html {
  const time = formatTime(when, { zone })
  return time === '' ? renderDate(when, zone) : html`${renderDate(when, zone)} ${time}`
}
