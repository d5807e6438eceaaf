/** The figures of two trees, which a bench measured in turns. */
import { formatNumber, type Table, takeMedian } from '../shared/report.ts'

/** The figures of one run of a bench, by name: `code: Sallyport, on SQLite, audited`. */
export type Figures = ReadonlyMap<string, number>

export interface Turn {
  readonly before: Figures
  readonly now: Figures
}

export interface Compared {
  readonly name: string
  readonly before: number
  readonly now: number
  /** The median of the ratios of all turns. */
  readonly ratio: number
  /** Contains the true median with a probability of at least 90 %. */
  readonly interval: readonly [low: number, high: number]
  readonly turns: number
}

const CONFIDENCE = 0.9
/** The columns of the tables that are compared. Rates depend on what else the machine does. */
const COLUMNS: readonly string[] = ['CPU (µs)', 'value']

export function readFigures(tables: Iterable<Table>): Figures {
  return new Map(
    [...tables].flatMap(({ header, rows }) => {
      const column = header.findIndex(name => COLUMNS.includes(name))
      return rows.map(
        cells =>
          [cells.slice(0, column).join(': '), Number((cells[column] ?? '').replaceAll(',', ''))] as const,
      )
    }),
  )
}

/** The figures that both trees have in each turn. */
export function compareFigures(turns: readonly Turn[]): readonly Compared[] {
  const names = [...(turns[0]?.now.keys() ?? [])]
  return names
    .filter(name => turns.every(({ before, now }) => (before.get(name) ?? 0) > 0 && (now.get(name) ?? 0) > 0))
    .map(name => {
      const before = turns.map(turn => turn.before.get(name) ?? 0)
      const now = turns.map(turn => turn.now.get(name) ?? 0)
      const ratios = now.map((value, at) => value / (before[at] ?? 0))
      return {
        name,
        before: takeMedian(before),
        now: takeMedian(now),
        ratio: takeMedian(ratios),
        interval: findInterval(ratios),
        turns: turns.length,
      }
    })
}

/** From the nth lowest to the nth highest, by the binomial distribution of values below the median. */
export function findInterval(values: readonly number[]): readonly [low: number, high: number] {
  const sorted = values.toSorted((a, b) => a - b)
  let outside = 0
  let left = 0
  for (let ways = 1; left < sorted.length / 2; left++) {
    outside += (2 * ways) / 2 ** sorted.length
    if (outside > 1 - CONFIDENCE) break
    ways = (ways * (sorted.length - left)) / (left + 1)
  }
  const from = Math.max(left - 1, 0)
  return [sorted[from] ?? 0, sorted.at(-1 - from) ?? 0]
}

export function makeTable(all: readonly Compared[]): Table {
  return {
    name: 'against',
    header: ['figure', 'before', 'now', 'ratio', '90 % interval', 'turns'],
    rows: all.map(({ name, before, now, ratio, interval, turns }) => [
      name,
      formatNumber(before),
      formatNumber(now),
      ratio.toFixed(2),
      interval.map(it => it.toFixed(2)).join('–'),
      `${turns}`,
    ]),
  }
}
