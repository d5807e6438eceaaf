import { HOUR_MS } from '../../core/index.ts'
import { type Html, html } from './html.ts'

/** Texts for a missing value. A blank would read as "none". */
export const NOT_RECORDED = 'Not recorded'
export const NOT_KNOWN = 'Not known'

export const MONTHS = [
  'Jan',
  'Feb',
  'Mar',
  'Apr',
  'May',
  'Jun',
  'Jul',
  'Aug',
  'Sep',
  'Oct',
  'Nov',
  'Dec',
] as const

/** A FHIR date or dateTime, or milliseconds since 1970. */
export type When = string | number

/** A date, or only its month or its year. */
interface PartialDate {
  readonly year: number
  readonly month?: number
  readonly day?: number
}

const FHIR_DATE = /^(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?$/

/** Returns the time zone of this server, which the environment variable `TZ` sets. */
function getLocalZone(): string {
  return localZone
}

const localZone = new Intl.DateTimeFormat().resolvedOptions().timeZone

/** Parses a FHIR date, or finds the date of an instant in the zone. Returns undefined for anything else. */
function parseDate(when: When | undefined, zone = getLocalZone()): PartialDate | undefined {
  if (typeof when === 'string') {
    const parts = FHIR_DATE.exec(when)
    if (parts) return checkDate(Number(parts[1]), toNumber(parts[2]), toNumber(parts[3]))
  }
  const moment = parseMoment(when)
  if (moment === undefined) return undefined
  const { year, month, day } = readClock(moment, zone)
  return { year, month, day }
}

function toNumber(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}

function checkDate(
  year: number,
  month: number | undefined,
  day: number | undefined,
): PartialDate | undefined {
  if (month === undefined) return { year }
  if (month < 1 || month > 12) return undefined
  if (day === undefined) return { year, month }
  return day >= 1 && day <= countDays({ year, month }) ? { year, month, day } : undefined
}

function countDays(month: { readonly year: number; readonly month: number }): number {
  return Temporal.PlainYearMonth.from(month).daysInMonth
}

function parseMoment(when: When | undefined): number | undefined {
  const ms = typeof when === 'string' && when.includes('T') ? Date.parse(when) : when
  return typeof ms === 'number' && Number.isFinite(ms) ? ms : undefined
}

/** The date and the time of day at a moment in the zone. */
function readClock(ms: number, zone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(Math.floor(ms)).toZonedDateTimeISO(zone)
}

/** Each knows the short names of its own zones, and writes others as an offset. */
const LOCALES_OF_ZONES = ['en-GB', 'en-US', 'en-CA', 'en-AU', 'en-NZ', 'en-IN', 'en-ZA']

/** The usual short name of the zone at a moment: `UTC`, `CET`, `EST`. An offset where English has none: `GMT+4`. */
function formatZone(ms: number, zone: string): string {
  // One by one: the first name is nearly always the usual one.
  const names = () =>
    getZoneFormatters(zone)
      .values()
      .map(formatter => readZoneName(formatter, ms) ?? zone)
  return names().find(name => !/[+-]\d/.test(name)) ?? names().next().value ?? zone
}

function readZoneName(formatter: Intl.DateTimeFormat, ms: number): string | undefined {
  return formatter.formatToParts(ms).find(({ type }) => type === 'timeZoneName')?.value
}

// A formatter takes a hundred times longer to create than to use. There is one zone, except in tests.
const zoneFormatters = new Map<string, readonly Intl.DateTimeFormat[]>()

function getZoneFormatters(timeZone: string): readonly Intl.DateTimeFormat[] {
  const known = zoneFormatters.get(timeZone)
  if (known) return known
  const made = LOCALES_OF_ZONES.map(
    locale => new Intl.DateTimeFormat(locale, { timeZone, timeZoneName: 'short' }),
  )
  zoneFormatters.set(timeZone, made)
  return made
}

function padTwo(value: number): string {
  return String(value).padStart(2, '0')
}

/** Formats a date: `14-Mar-1958`, `Mar 1958`, `1958`, or `Not recorded` if it is missing or invalid. */
export function formatDate(when: When | undefined, zone = getLocalZone()): string {
  const date = parseDate(when, zone)
  return date ? formatPartialDate(date) : NOT_RECORDED
}

function formatPartialDate({ year, month, day }: PartialDate): string {
  const fullYear = String(year).padStart(4, '0')
  if (month === undefined) return fullYear
  const name = MONTHS[month - 1]
  return day === undefined ? `${name} ${fullYear}` : `${padTwo(day)}-${name}-${fullYear}`
}

/** Renders a date in `<time>`, which keeps it on one line. */
export function renderDate(when: When | undefined, zone = getLocalZone()): Html {
  const date = parseDate(when, zone)
  if (!date) return html`<span class="unknown">${NOT_RECORDED}</span>`
  return html`<time datetime="${formatMachine(date)}">${formatPartialDate(date)}</time>`
}

function formatMachine({ year, month, day }: PartialDate): string {
  return [String(year).padStart(4, '0'), month, day]
    .filter(part => part !== undefined)
    .map(part => (typeof part === 'number' ? padTwo(part) : part))
    .join('-')
}

interface TimeOptions {
  readonly seconds?: boolean
  /** Names the zone too: `14:04 UTC`. */
  readonly withZone?: boolean
  readonly zone?: string
}

/** Formats the time of day in the zone: `14:04` or `14:04:52`. Returns an empty string if the value has none. */
export function formatTime(when: When | undefined, options: TimeOptions = {}): string {
  const { seconds = false, withZone = false, zone = getLocalZone() } = options
  const moment = parseMoment(when)
  if (moment === undefined) return ''
  const { hour, minute, second } = readClock(moment, zone)
  const time = `${padTwo(hour)}:${padTwo(minute)}${seconds ? `:${padTwo(second)}` : ''}`
  return withZone ? `${time} ${formatZone(moment, zone)}` : time
}

/** Renders `13-Nov-2026 14:04 UTC`, or only the date if the value has no time. */
export function renderDateTime(when: When | undefined, zone = getLocalZone()): Html {
  const moment = parseMoment(when)
  return moment === undefined ? renderDate(when, zone) : renderMoment(moment, { zone })
}

/** Renders the date of a FHIR date or dateTime of a record. `renderDateTime` names the same day. */
export function renderRecordDate(when: string | undefined, zone = getLocalZone()): Html {
  const moment = parseMoment(when)
  return moment === undefined ? renderDate(when, zone) : renderMoment(moment, { form: 'date', zone })
}

const MOMENTS = {
  date: (at: number, zone: string) => formatDate(at, zone),
  time: (at: number, zone: string) => formatTime(at, { zone, withZone: true }),
  clock: (at: number, zone: string) => formatTime(at, { zone }),
  exact: (at: number, zone: string) => formatTime(at, { zone, seconds: true, withZone: true }),
  seconds: (at: number, zone: string) => `${formatDate(at, zone)} ${MOMENTS.exact(at, zone)}`,
  minutes: (at: number, zone: string) =>
    `${formatDate(at, zone)} ${formatTime(at, { zone, withZone: true })}`,
  milliseconds: (at: number, zone: string) =>
    `${formatTime(at, { zone, seconds: true })}.${String(at % 1000).padStart(3, '0')}`,
} as const

/**
 * Renders a moment in the zone of this server. The script `time.js`, which every page has, shows it in the reader's zone.
 * `clock` and `milliseconds` do not name the zone: name it once, by `renderZoneName`.
 */
export function renderMoment(
  at: number,
  {
    form = 'minutes',
    zone = getLocalZone(),
  }: { readonly form?: keyof typeof MOMENTS; readonly zone?: string } = {},
): Html {
  if (!Number.isFinite(at)) return renderDate(undefined)
  return html`<time datetime="${new Date(at).toISOString()}" data-moment="${form}">${MOMENTS[form](at, zone)}</time>`
}

/** Renders a moment in the past: `14:04 UTC`, with the date if that was another day. */
export function renderSince(since: number, now: number, zone = getLocalZone()): Html {
  const isToday = formatDate(since, zone) === formatDate(now, zone)
  return renderMoment(since, { form: isToday ? 'time' : 'minutes', zone })
}

/** Names the zone of the moments on a page. */
export function renderZoneName(zone = getLocalZone()): Html {
  return html`<span data-zone-name>${zone}</span>`
}

/** The cookie in which `time.js` keeps the reader's zone, for pages that are grouped by day. */
const ZONE_COOKIE = 'sallyport-zone'

/** The reader's zone if the browser told it, otherwise that of this server. */
export function readZone(cookies: Readonly<Record<string, string | undefined>>): string {
  return parseZone(cookies[ZONE_COOKIE] ?? '') ?? getLocalZone()
}

/** A zone by its name. Offsets such as `+05:30` are no names of places, and there are too many to keep a formatter for each. */
function parseZone(name: string): string | undefined {
  if (!/^[A-Za-z]/.test(name)) return undefined
  try {
    return new Intl.DateTimeFormat('en-GB', { timeZone: name }).resolvedOptions().timeZone
  } catch {
    return undefined
  }
}

/** The start of the day of a moment in the zone, or of one of the days after or before it. */
export function findDayStart(at: number, zone: string, later = 0): number {
  return findStart(readClock(at, zone).toPlainDate(), zone, later)
}

/** The start of a day such as `2026-11-30` in the zone, or of one of the days after it. Undefined for anything else. */
export function parseDay(text: string, zone: string, later = 0): number | undefined {
  const date = FHIR_DATE.test(text) ? parseDate(text, zone) : undefined
  if (date?.month === undefined || date.day === undefined) return undefined
  return findStart(new Temporal.PlainDate(date.year, date.month, date.day), zone, later)
}

/** The first moment of a day: one o'clock if the clocks go forward at midnight. */
function findStart(day: Temporal.PlainDate, zone: string, later: number): number {
  return day.add({ days: later }).toZonedDateTime(zone).epochMilliseconds
}

/**
 * Formats an age: hours under 2 days, days under 4 weeks, weeks under 1 year, months under 2 years, `3 y 6 mo` under 18
 * years, then years. Hours need the time of birth. The age is only as exact as the birth date.
 */
export function formatAge(born: When | undefined, now: When, zone = getLocalZone()): string {
  const birth = parseDate(born, zone)
  const end = parseDate(now, zone)
  if (!birth || !end) return NOT_KNOWN
  const last = findLastDay(end)
  if (birth.month !== undefined && birth.day !== undefined && end.day !== undefined)
    return computeExactAge(findFirstDay(birth), last, countHours(born, now))
  return describeVagueAge(birth, end)
}

function findFirstDay({ year, month = 1, day = 1 }: PartialDate): Temporal.PlainDate {
  return new Temporal.PlainDate(year, month, day)
}

function findLastDay({ year, month = 12, day }: PartialDate): Temporal.PlainDate {
  return new Temporal.PlainDate(year, month, day ?? countDays({ year, month }))
}

function countHours(born: When | undefined, now: When): number | undefined {
  const from = toInstant(born)
  const to = toInstant(now)
  return from === undefined || to === undefined ? undefined : Math.floor((to - from) / HOUR_MS)
}

function toInstant(when: When | undefined): number | undefined {
  if (typeof when === 'number') return when
  return when?.includes('T') ? Date.parse(when) : undefined
}

function computeExactAge(
  birth: Temporal.PlainDate,
  end: Temporal.PlainDate,
  hours: number | undefined,
): string {
  const { days } = birth.until(end)
  if (days < 0 || (hours !== undefined && hours < 0)) return NOT_KNOWN
  if (hours !== undefined && hours < 48) return formatAmount(hours, 'hour')
  // A child born on 31 January is one month old on 1 March, not on 28 February.
  const { months } = birth.until(end, { largestUnit: 'months' })
  if (days < 28) return formatAmount(days, 'day')
  if (months < 12) return formatAmount(Math.floor(days / 7), 'week')
  if (months < 24) return formatAmount(months, 'month')
  const years = Math.floor(months / 12)
  if (years >= 18) return formatAmount(years, 'year')
  return months % 12 === 0 ? `${years} y` : `${years} y ${months % 12} mo`
}

function formatAmount(amount: number, unit: string): string {
  return `${amount} ${unit}${amount === 1 ? '' : 's'}`
}

/** Describes an age from a partial date: exact if the youngest and the oldest possible age agree, else approximate. */
function describeVagueAge(birth: PartialDate, end: PartialDate): string {
  if (Temporal.PlainDate.compare(findFirstDay(birth), findLastDay(end)) > 0) return NOT_KNOWN
  const youngest = countYears(findLastDay(birth), findFirstDay(end))
  const oldest = countYears(findFirstDay(birth), findLastDay(end))
  if (oldest < 2) return 'Under 2 years'
  if (youngest === oldest) return formatAmount(oldest, 'year')
  return `About ${formatAmount(oldest, 'year')}`
}

function countYears(from: Temporal.PlainDate, to: Temporal.PlainDate): number {
  return from.until(to, { largestUnit: 'years' }).years
}

/** A length of time, exactly: `30 minutes`, `8 hours`, `1 minute and 15 seconds`. */
export function formatLength(seconds: number): string {
  const minutes = Math.floor(seconds / 60)
  const rest = seconds % 60
  if (rest === 0)
    return seconds % 3600 === 0 ? formatAmount(seconds / 3600, 'hour') : formatAmount(minutes, 'minute')
  return [...(minutes > 0 ? [formatAmount(minutes, 'minute')] : []), formatAmount(rest, 'second')].join(
    ' and ',
  )
}
