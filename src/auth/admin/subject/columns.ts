import { type TObject, type TSchema, Type } from 'typebox'
import { formatTime, type JsonSchema, Members } from '../../../endpoint/index.ts'
import { type Html, renderDateTime } from '../../../web/ui/index.ts'
import type { AdminRequest } from './page/route.ts'

/** A value of the rows of a list, and where it is shown. Its key is its name in JSON and CSV. */
export interface SubjectColumn<Row> {
  /** The property of the row that it shows, or how it is read. A time is in milliseconds. */
  readonly of?: keyof Row | ((row: Row) => unknown)
  /** JSON has it if it has a schema. */
  readonly schema?: TSchema
  /** Its description in the OpenAPI document. */
  readonly about?: string | undefined
  /** CSV has what JSON has, or not, or under another name, or with another value. */
  readonly csv?: false | string | ((row: Row) => CsvValue)
  /** The page has it: its heading, and how it is shown. */
  readonly page?: string | readonly [head: string | HiddenHead, render: (row: Row) => Cell]
  /** The details page has it: its label, and how it is shown. What has no value is left out. */
  readonly detail?:
    | string
    | readonly [label: string | ((row: Row) => string), render: (row: Row, request: AdminRequest) => Cell]
  /** The table of the command has it: its heading, and how it is written. */
  readonly table?: string | readonly [head: string, format: (row: Row) => string]
}

/** For those who hear the page: the cells say what they are. */
interface HiddenHead {
  readonly head: string
  readonly isHidden: true
}

export type SubjectColumns<Row> = Readonly<Record<string, SubjectColumn<Row>>>

type Cell = Html | string | number | undefined
type CsvValue = string | number | boolean | undefined

/** The schema of a row in JSON. */
export function describeColumns<Row>(columns: SubjectColumns<Row>): TObject {
  const members = Object.entries(columns).flatMap(([name, { schema, about }]) =>
    schema ? [[name, describeSchema(schema, about)]] : [],
  )
  return Members(Object.fromEntries(members))
}

export function describeSchema(schema: TSchema, description: string | undefined): TSchema {
  return description === undefined ? schema : Type.With(schema, { description })
}

/** A row as JSON, without the members that have no value. */
export function toJson<Row>(columns: SubjectColumns<Row>, row: Row): Readonly<Record<string, unknown>> {
  const members = Object.entries(columns).map(
    ([name, column]) => [name, column.schema && readPlain(column, row)] as const,
  )
  return Object.fromEntries(members.filter(([, value]) => value !== undefined))
}

function readValue<Row>({ of }: SubjectColumn<Row>, row: Row): unknown {
  return typeof of === 'function' ? of(row) : of !== undefined ? row[of] : undefined
}

function readPlain<Row>(column: SubjectColumn<Row>, row: Row): unknown {
  const value = readValue(column, row)
  return isTime(column, value) ? formatTime(value) : value
}

function isTime<Row>({ schema }: SubjectColumn<Row>, value: unknown): value is number {
  const { format }: JsonSchema = schema ?? {}
  return typeof value === 'number' && format === 'date-time'
}

/** The headings of a CSV file, and the values of a row. */
export function readCsv<Row>(columns: SubjectColumns<Row>) {
  const shown = Object.entries(columns).filter(([, { csv, schema }]) => csv ?? schema)
  return {
    heads: shown.map(([name, { csv }]) => (typeof csv === 'string' ? csv : name)),
    readRow: (row: Row) => shown.map(([, column]) => readCsvValue(column, row)),
  }
}

function readCsvValue<Row>(column: SubjectColumn<Row>, row: Row): CsvValue {
  if (typeof column.csv === 'function') return column.csv(row)
  const value = readPlain(column, row)
  if (Array.isArray(value)) return value.join(' ')
  return typeof value === 'boolean' || typeof value === 'number' || value === undefined
    ? value
    : String(value)
}

/** The headings and the rows of the table of a command. */
export function tabulate<Row>(
  columns: SubjectColumns<Row>,
  rows: readonly Row[],
): readonly (readonly string[])[] {
  const shown = Object.values(columns).filter(({ table }) => table !== undefined)
  const heads = shown.map(({ table = '' }) => (typeof table === 'string' ? table : table[0]))
  return [heads, ...rows.map(row => shown.map(column => formatText(column, row)))]
}

function formatText<Row>(column: SubjectColumn<Row>, row: Row): string {
  if (typeof column.table === 'object') return column.table[1](row)
  const value = readValue(column, row)
  return isTime(column, value) ? formatMinute(value) : String(value ?? '-')
}

/** To the minute, in UTC. */
export function formatMinute(at: number): string {
  return `${formatTime(at).slice(0, 16)}Z`
}

/** The headings of a page, and the cells of a row. */
export function readCells<Row>(columns: SubjectColumns<Row>) {
  const shown = Object.values(columns).filter(({ page }) => page !== undefined)
  return {
    heads: shown.map(({ page = '' }) => (typeof page === 'string' ? page : page[0])),
    renderRow: (row: Row) => shown.map(column => renderCell(column, row)),
  }
}

/** The labels and values of a details page. */
export function listDetails<Row>(
  columns: SubjectColumns<Row>,
  row: Row,
  request: AdminRequest,
): readonly (readonly [label: string, value: Cell])[] {
  return Object.values(columns).flatMap(column => {
    const { detail } = column
    if (detail === undefined) return []
    const [label, value] =
      typeof detail === 'string' ? [detail, renderCell(column, row)] : [detail[0], detail[1](row, request)]
    if (value === undefined) return []
    return [[typeof label === 'string' ? label : label(row), value] as const]
  })
}

function renderCell<Row>(column: SubjectColumn<Row>, row: Row): Cell {
  if (typeof column.page === 'object') return column.page[1](row)
  const value = readValue(column, row)
  return isTime(column, value) ? renderDateTime(value) : String(value ?? 'None')
}
