import { DAY_MS, HOUR_MS } from '../core/index.ts'

/** The midnight (UTC) at which the histories of `patients.ndjson` end. */
const RECORDED_DAY = '2026-11-18'
const RECORDED = Date.parse(RECORDED_DAY)
const WEEK_MS = 7 * DAY_MS
/** Who is born later has childhood vaccinations on record. */
const LAST_ADULT = '2007-11-18'

const DATE = /(?<!"birthDate":)"(\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\dZ)?)"/g
const BIRTH_DATE = /"birthDate":"([\d-]+)"/g

/**
 * Moves the dates of recorded lines so that the histories end now:
 * - by whole weeks, because clinics are closed at weekends; planned encounters to the next whole week, so that none has passed
 * - by days in the last six days: stays in progress and newborns
 * - by hours in the last two hours: other encounters in progress and their measurements
 *
 * A date never moves by less than an earlier one, so that the order stays. Adults keep their birthday and their age. The births
 * of children move with their records, which begin at birth.
 */
export function createDateMover(now: number): (lines: string) => string {
  const hours = roundDown(now - RECORDED, HOUR_MS)
  const days = roundDown(hours, DAY_MS)
  const weeks = roundDown(days, WEEK_MS)
  const nextWeeks = -roundDown(-days, WEEK_MS)
  const findDistance = (moment: number) => {
    if (moment > RECORDED) return nextWeeks
    if (moment > RECORDED - 2 * HOUR_MS) return hours
    return moment >= RECORDED - 6 * DAY_MS ? days : weeks
  }
  const move = (text: string) => {
    const moment = Date.parse(text)
    const moved = new Date(moment + findDistance(moment)).toISOString()
    return text.length === RECORDED_DAY.length
      ? moved.slice(0, RECORDED_DAY.length)
      : moved.replace('.000', '')
  }
  const today = move(RECORDED_DAY)
  const moveBirth = (born: string) => (born > LAST_ADULT ? move(born) : moveBirthYear(born, today))
  return lines =>
    lines
      .replace(DATE, (_, text: string) => `"${move(text)}"`)
      .replace(BIRTH_DATE, (_, born: string) => `"birthDate":"${moveBirth(born)}"`)
}

function roundDown(distance: number, step: number): number {
  return Math.floor(distance / step) * step
}

/** Keeps the birthday, and moves the year so that the person is as old today as on the day of the recording. */
function moveBirthYear(born: string, today: string): string {
  const birthday = born.slice(4)
  const years = findBirthdayYear(birthday, today) - findBirthdayYear(birthday, RECORDED_DAY)
  return `${Number(born.slice(0, 4)) + years}${birthday}`
}

/** The year of the last birthday. */
function findBirthdayYear(birthday: string, today: string): number {
  const year = Number(today.slice(0, 4))
  return birthday <= today.slice(4) ? year : year - 1
}
