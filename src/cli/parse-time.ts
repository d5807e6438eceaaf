import { DAY_MS, HOUR_MS, MINUTE_MS } from '../core/index.ts'
import { failMisuse } from './command.ts'

const UNITS: Readonly<Record<string, number>> = {
  s: 1000,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
}

/** The time that an option names: so long ago, or a date. */
export function parseTime(option: string, text: string, now: number): number {
  const [, count, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  if (count !== undefined) return now - Number(count) * (UNITS[unit] ?? 0)
  const time = /^\d{4}-\d{2}-\d{2}(T|$)/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time)) throw failMisuse(`Cannot use --${option}: expected 90s, 15m, 2h, 7d or a date`)
  return time
}
