/** The tables of all benches. `bench/run.ts` collects those of several benches and prints them together. */
export interface Table {
  /** Tables of the same name have the same header and become one. */
  readonly name: string
  readonly header: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** The CPU time of a request in microseconds, and the requests a second. */
export interface Measured {
  readonly request: string
  readonly server: string
  readonly cpu: number
  readonly rate: number
  readonly goal?: Goal | undefined
}

interface Goal {
  readonly value: number
  readonly least: number
}

/** A further column of a table. */
interface Column<T> {
  readonly heading: string
  format(row: T): string
}

/** Servers beside the first one of the same request. The bench fails if a goal is not reached. */
export function reportServers<T extends Measured>(
  name: string,
  all: readonly T[],
  ...columns: readonly Column<T>[]
): Promise<void> {
  if (all.some(({ goal }) => goal && goal.value < goal.least)) process.exitCode = 1
  return report({
    name,
    header: [
      ...['request', 'server', 'CPU (µs)', 'requests/s', 'CPU ratio', 'rate ratio'],
      ...columns.map(it => it.heading),
      'goal',
    ],
    rows: all.map(it => [
      ...formatServer(it, all.find(({ request }) => request === it.request) ?? it),
      ...columns.map(column => column.format(it)),
      it.goal ? formatGoal(it.goal) : '',
    ]),
  })
}

function formatServer(it: Measured, first: Measured): readonly string[] {
  return [
    it.request,
    it.server,
    formatInteger(it.cpu),
    formatInteger(it.rate),
    (it.cpu / first.cpu).toFixed(2),
    (it.rate / first.rate).toFixed(2),
  ]
}

function formatGoal({ value, least }: Goal): string {
  const [found, goal] = [value, least].map(it => it.toFixed(2))
  return value < least ? `**${found} < ${goal}**` : `${found} ≥ ${goal}`
}

export interface Value {
  readonly measured: string
  readonly value: number
  readonly most?: number
}

/** Single values. The bench fails if one is above its limit. */
export function reportValues(values: readonly Value[]): Promise<void> {
  if (values.some(({ value, most }) => most !== undefined && value > most)) process.exitCode = 1
  return report({
    name: 'values',
    header: ['measured', 'value', 'limit'],
    rows: values.map(it => [it.measured, formatNumber(it.value), formatLimit(it)]),
  })
}

function formatLimit({ value, most }: Value): string {
  if (most === undefined) return ''
  const limit = `${Number(most.toFixed(2))}`
  return value > most ? `**${limit}**` : limit
}

async function report(table: Table): Promise<void> {
  if (process.send) await new Promise(resolve => process.send?.(table, undefined, undefined, resolve))
  else process.stdout.write(formatTable(table))
}

export function formatTable({ header, rows }: Pick<Table, 'header' | 'rows'>): string {
  const lines = [header, header.map(() => '---'), ...rows]
  return lines.map(cells => `| ${cells.join(' | ')} |\n`).join('')
}

/** Three digits at least. */
export function formatNumber(value: number): string {
  return value < 100 ? value.toPrecision(3) : formatInteger(value)
}

function formatInteger(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

export function takeMedian(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
}
