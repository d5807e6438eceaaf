import { setImmediate as yieldTurn } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import { type Static, type TObject, type TSchema, Type } from 'typebox'
import { findOwn, isFailure } from '../../../core/index.ts'
import { CLOSED, type InvalidMembers, OneOf, readMembers } from '../../../endpoint/index.ts'
import { formatCsvRow, type Html } from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  failAdmin,
  type ListPage,
  type PageRequest,
  recordAction,
} from '../base/action.ts'
import { describeSchema, readCsv, type SubjectColumns } from './columns.ts'
import type { AdminRequest } from './page/route.ts'
import type { AdminPage } from './page/shell.ts'

/** A condition for the rows of a list. Its key is its name in the API. */
export interface Filter {
  readonly schema: TSchema
  /** The text of the OpenAPI document, and of `--help` if it has no other. */
  readonly about: string
  readonly help?: string
  /** In the URL of the page, if it has another name there. */
  readonly name?: string
  /** As an option, if it has another name than in the URL. */
  readonly option?: string
  /** The label of its field on the page. Without one, the URL of the page has it only. */
  readonly label?: string
  /** The choice of no value, for a filter with few values. */
  readonly all?: string
  readonly isDate?: true
  /** The condition for the rows of a table. */
  where?(value: unknown, context: FilterContext): RawBuilder<boolean>
}

type FilterContext = Pick<Admin, 'clock' | 'rules'>

export type Filters = Readonly<Record<string, Filter>>

/** The values of filters, by their names in the API. */
export type Wanted<Of extends Filters = Filters> = {
  readonly [Name in keyof Of]?: Static<Of[Name]['schema']> | undefined
}

export interface ListExplanation {
  readonly title: string
  readonly text: string
}

/** A part of a list, which `state` names. */
interface State<Of extends Filters> {
  readonly text: string
  readonly filter: Wanted<Of>
  /** Why it is empty, and how something gets there. */
  readonly none: ListExplanation
}

export type States<Of extends Filters> = Readonly<Record<string, State<Of>>> & { readonly all: State<Of> }

/** A list of administration. Its endpoint, page, file and command, with their filters, follow from it. */
export interface List<Row, Of extends Filters = Filters> {
  readonly columns: SubjectColumns<Row>
  readonly filters: Of
  /** The tabs of the page. */
  readonly states?: States<Of>
  /** A page of it, or why a filter cannot be used. */
  read(admin: Admin, wanted: Wanted<Of> & PageRequest): Promise<ListPage<Row> | AdminFailure>
  /** Rows of another kind after the last page, and their name in JSON. */
  readonly others?: {
    readonly name: string
    readonly columns: SubjectColumns<Row>
    read(admin: Admin, wanted: Wanted<Of>): Promise<readonly Row[] | AdminFailure>
  }
  /** How many rows there are. */
  count?(admin: Admin, wanted: Wanted<Of>): Promise<number>
  readonly api?: {
    readonly path: `/${string}`
    readonly title: string
    readonly description?: string
    /** It is not read in pages. */
    readonly isWhole?: true
  }
  readonly page?: Omit<AdminPage, 'actions' | 'done'> & {
    /** By default that of its section. */
    readonly path?: `/${string}`
    readonly caption: string
    /** The label of the search, if there is a filter `text`. */
    readonly search?: string
    /** Why a search or a filter finds nothing. */
    readonly notFound: ListExplanation
    readonly done?: Readonly<Record<string, string>>
    actions?(request: AdminRequest): AdminPage['actions']
    /** What can be done with a row. */
    renderAction?(row: Row): Html
  }
  /** A download, which is recorded: a list of users says who may be attacked. */
  readonly csv?: { readonly path: `/${string}.csv`; readonly operation: AdminOperation }
  readonly command?: {
    /** `sign-in list`. */
    readonly name: string
    /** What it lists: `sign-ins`. */
    readonly nouns: string
    /** The text of `--help` before the options, and after them. */
    readonly about?: string
    readonly more?: string
    /** Instead of an empty table. */
    readonly none?: string
  }
}

/** Infers the values of the filters from their schemas. */
export function defineList<Row, Of extends Filters>(list: List<Row, Of>): List<Row> {
  return list
}

/** A filter for the rows that meet a condition, or for `false` do not. */
export function defineFlag(
  about: string,
  condition: RawBuilder<boolean> | ((context: FilterContext) => RawBuilder<boolean>),
) {
  const schema = Type.Boolean()
  const where = (isWanted: boolean, context: FilterContext) => {
    const met = typeof condition === 'function' ? condition(context) : condition
    return isWanted ? met : sql<boolean>`not ${met}`
  }
  return { schema, about, where }
}

/** The conditions of the filters that a request has, for the rows of a table. */
export function listConditions(
  filters: Filters,
  wanted: Wanted,
  context: FilterContext,
): readonly RawBuilder<boolean>[] {
  return Object.entries(filters).flatMap(([name, filter]) =>
    wanted[name] === undefined ? [] : (filter.where?.(wanted[name], context) ?? []),
  )
}

/** The filters of a list, and `state`. */
export function listFilters<Row>({ filters, states }: Pick<List<Row>, 'filters' | 'states'>): Filters {
  if (!states) return filters
  const about = 'A part of the list, whose conditions other filters override.'
  const schema = OneOf(Object.keys(states))
  return { state: { schema, about }, ...filters }
}

/** The filters as members of a query, by the names of the API. */
export function describeFilters(filters: Filters): TObject {
  const members = Object.entries(filters).map(([name, { schema, about }]) => [
    name,
    Type.Optional(describeSchema(schema, about)),
  ])
  return Type.Object(Object.fromEntries(members), CLOSED)
}

/** A filter that is not known, or whose value is not: a list without it would be taken for the whole. */
export interface FilterFault {
  /** As in the URL, or as the option. */
  readonly name: string
  readonly isUnknown: boolean
  /** The end of a sentence: `expected one of allowed, refused`. */
  readonly text: string
}

/** Reads the filters of a URL or of a command, by the names that they have there. */
export function readFilters(
  filters: Filters,
  sent: Readonly<Record<string, unknown>>,
  by: 'name' | 'option',
): { readonly wanted: Wanted; readonly faults: readonly FilterFault[] } {
  const named = Object.entries(filters).map(([key, filter]) => ({
    key,
    ...filter,
    name: filter[by] ?? filter.name ?? key,
  }))
  const schema = describeFilters(Object.fromEntries(named.map(filter => [filter.name, filter])))
  const read: unknown = readMembers(schema, sent, { isText: true })
  if (isFailure<unknown, InvalidMembers>(read)) {
    const known = named.map(({ name }) => name).join(', ')
    const faults = read.faults.map(({ kind, name, text }) =>
      kind === 'unknown'
        ? { name, isUnknown: true, text: `the filters are ${known}` }
        : { name, isUnknown: false, text },
    )
    return { wanted: {}, faults }
  }
  const values = new Map(Object.entries(read ?? {}))
  return {
    wanted: Object.fromEntries(
      named.filter(({ name }) => values.has(name)).map(({ key, name }) => [key, values.get(name)]),
    ),
    faults: [],
  }
}

/** Of a page or a file. */
export function refuseFilters(faults: readonly FilterFault[]): AdminFailure {
  const texts = faults.map(({ name, isUnknown, text }) =>
    isUnknown ? `there is no filter ${name}: ${text}` : `the filter ${name} is not valid: ${text}`,
  )
  return failAdmin('filters-invalid', { faults: texts.join('; ') })
}

/** Reads a page of a list. The conditions of its state give way to those of the request. */
export function readList<Row>(
  { states, read }: List<Row>,
  admin: Admin,
  { state, ...wanted }: Wanted & PageRequest,
): Promise<ListPage<Row> | AdminFailure> {
  return read(admin, { ...findState(states, state)?.filter, ...wanted })
}

export function findState<Of extends Filters>(states: States<Of> | undefined, state: unknown) {
  return states && (findOwn(states, String(state ?? 'all')) ?? states.all)
}

/** How many rows of a list meet a filter. Undefined if it cannot be counted. */
export async function countRows<Row>(
  list: List<Row>,
  admin: Admin,
  { state, ...wanted }: Wanted,
): Promise<number | undefined> {
  return list.count?.(admin, { ...findState(list.states, state)?.filter, ...wanted })
}

/** The page of a list below the area, with filters in its URL. */
export function buildListPath<Row>({ page, filters }: List<Row>, wanted: Wanted): string {
  const query = Object.entries(wanted).map(([name, value]) => [
    findOwn(filters, name)?.name ?? name,
    String(value),
  ])
  return `${page?.path ?? `/${page?.section}`}?${new URLSearchParams(query)}`
}

/** The pages of a list, one after the other. The first one that fails is the last. */
export async function* readPages<Row>(
  list: List<Row>,
  admin: Admin,
  wanted: Wanted,
): AsyncGenerator<readonly Row[] | AdminFailure> {
  let after: string | undefined
  do {
    const page = await readList(list, admin, { ...wanted, after, limit: LIMITS.adminPage })
    if (isFailure(page)) return yield page
    yield page.items
    after = page.next
    await yieldTurn()
  } while (after !== undefined)
}

/** Exports a list as CSV, in parts, and records the export. */
export async function exportList<Row>(
  list: List<Row>,
  operation: AdminOperation,
  admin: Admin,
  wanted: Wanted,
): Promise<AsyncGenerator<string> | AdminFailure> {
  const refused = await recordAction(admin, { operation, after: wanted })
  return refused ?? writeList(list, admin, wanted)
}

async function* writeList<Row>(list: List<Row>, admin: Admin, wanted: Wanted): AsyncGenerator<string> {
  const { heads, readRow } = readCsv(list.columns)
  yield formatCsvRow(heads)
  for await (const rows of readPages(list, admin, wanted))
    if (!isFailure(rows)) yield rows.map(row => formatCsvRow(readRow(row))).join('')
}
