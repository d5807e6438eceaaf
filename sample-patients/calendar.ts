/** A day, counted from 1970-01-01 (UTC). */
export type Day = number

export const dayMs = 86_400_000
const minuteMs = 60_000

/**
 * The moment that all sample records are told from. Everything follows from the day; the hour only places what is
 * still going on, so that an open encounter began lately and nothing lies in the future.
 */
export interface Today {
  readonly day: Day
  /** The last full hour, in milliseconds. */
  readonly hour: number
}

export function todayOf(now: number): Today {
  return { day: Math.floor(now / dayMs), hour: Math.floor(now / 3_600_000) * 3_600_000 }
}

/** A moment on a day, in milliseconds. */
export function momentOn(day: Day, minutes: number): number {
  return day * dayMs + minutes * minuteMs
}

export function dateText(day: Day): string {
  return new Date(day * dayMs).toISOString().slice(0, 10)
}

export function instantText(moment: number): string {
  return `${new Date(moment).toISOString().slice(0, 19)}Z`
}

export function dayOf(moment: number): Day {
  return Math.floor(moment / dayMs)
}

/** Whole years between two days, as birthdays count. */
export function yearsBetween(from: Day, to: Day): number {
  const start = new Date(from * dayMs)
  const end = new Date(to * dayMs)
  const years = end.getUTCFullYear() - start.getUTCFullYear()
  const before =
    end.getUTCMonth() < start.getUTCMonth() ||
    (end.getUTCMonth() === start.getUTCMonth() && end.getUTCDate() < start.getUTCDate())
  return before ? years - 1 : years
}

/** The birthday (`MM-DD`) of someone who is `years` old on `day`. */
export function bornOn(monthDay: string, years: number, day: Day): Day {
  const year = new Date(day * dayMs).getUTCFullYear() - years
  const thisYear = Math.floor(Date.parse(`${year}-${monthDay}T00:00:00Z`) / dayMs)
  return yearsBetween(thisYear, day) === years
    ? thisYear
    : Math.floor(Date.parse(`${year - 1}-${monthDay}T00:00:00Z`) / dayMs)
}

/** The day itself or the next weekday: clinics are closed on Saturday and Sunday. */
export function weekday(day: Day): Day {
  // 1970-01-01 was a Thursday.
  const inWeek = (day + 3) % 7
  return inWeek < 5 ? day : day + (7 - inWeek)
}
