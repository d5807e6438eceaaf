import { getLocalZone, NOT_KNOWN, type PartialDate, parseDate, type When } from './date.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

type WholeDate = Required<PartialDate>

/**
 * Formats an age: hours under 2 days, days under 4 weeks, weeks under 1 year, months under 2 years, `3 y 6 mo` under 18
 * years, then years. Hours need the time of birth. The age is only as exact as the birth date.
 */
export function formatAge(born: When | undefined, at: When, zone = getLocalZone()): string {
  const birth = parseDate(born, zone)
  const end = parseDate(at, zone)
  if (!birth || !end) return NOT_KNOWN
  const last = findLastDay(end)
  if (birth.month !== undefined && birth.day !== undefined && end.day !== undefined)
    return computeExactAge(findFirstDay(birth), last, countHours(born, at))
  return describeVagueAge(birth, end)
}

function findFirstDay({ year, month = 1, day = 1 }: PartialDate): WholeDate {
  return { year, month, day }
}

function findLastDay({ year, month = 12, day }: PartialDate): WholeDate {
  return { year, month, day: day ?? new Date(Date.UTC(year, month, 0)).getUTCDate() }
}

function countHours(born: When | undefined, at: When): number | undefined {
  const from = toInstant(born)
  const to = toInstant(at)
  return from === undefined || to === undefined ? undefined : Math.floor((to - from) / HOUR_MS)
}

function toInstant(when: When | undefined): number | undefined {
  if (typeof when === 'number') return when
  return when?.includes('T') ? Date.parse(when) : undefined
}

function computeExactAge(birth: WholeDate, end: WholeDate, hours: number | undefined): string {
  const days = toDayNumber(end) - toDayNumber(birth)
  if (days < 0 || (hours !== undefined && hours < 0)) return NOT_KNOWN
  if (hours !== undefined && hours < 48) return formatAmount(hours, 'hour')
  const months = countMonths(birth, end)
  if (days < 28) return formatAmount(days, 'day')
  if (months < 12) return formatAmount(Math.floor(days / 7), 'week')
  if (months < 24) return formatAmount(months, 'month')
  const years = Math.floor(months / 12)
  if (years >= 18) return formatAmount(years, 'year')
  return months % 12 === 0 ? `${years} y` : `${years} y ${months % 12} mo`
}

function toDayNumber({ year, month, day }: WholeDate): number {
  return Math.round(Date.UTC(year, month - 1, day) / DAY_MS)
}

/** Counts whole months. A child born on 31 January is one month old on 1 March, not on 28 February. */
function countMonths(from: WholeDate, to: WholeDate): number {
  const months = (to.year - from.year) * 12 + to.month - from.month
  return to.day < from.day ? months - 1 : months
}

function formatAmount(amount: number, unit: string): string {
  return `${amount} ${unit}${amount === 1 ? '' : 's'}`
}

/** Describes an age from a partial date: exact if the youngest and the oldest possible age agree, else approximate. */
function describeVagueAge(birth: PartialDate, end: PartialDate): string {
  const youngest = countYears(findLastDay(birth), findFirstDay(end))
  const oldest = countYears(findFirstDay(birth), findLastDay(end))
  if (oldest < 0) return NOT_KNOWN
  if (oldest < 2) return 'Under 2 years'
  if (youngest === oldest) return formatAmount(oldest, 'year')
  return `About ${formatAmount(oldest, 'year')}`
}

function countYears(from: WholeDate, to: WholeDate): number {
  return Math.floor(countMonths(from, to) / 12)
}
