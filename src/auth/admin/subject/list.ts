import { findOwn, isFailure } from '../../../core/index.ts'
import { OneOf } from '../../../endpoint/index.ts'
import type { Html } from '../../../web/ui/index.ts'
import type { Fault } from '../../base/fault.ts'
import type { AdministrationPurpose } from '../../base/purposes.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  failAdmin,
  type ListPage,
  type PageRequest,
  type Properties,
  recordAction,
} from '../base/action.ts'
import type { SubjectColumns } from './columns.ts'
import type { Filters, Meant, Wanted } from './filters.ts'
import type { MeantPatients } from './page/find-patients.ts'
import type { AdminRequest } from './page/route.ts'
import type { AdminPage } from './page/shell.ts'

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

/** The page of a list. */
interface ListPageWords<Row, Of extends Filters> extends Omit<AdminPage, 'actions' | 'done'> {
  /** By default that of its section. */
  readonly path?: `/${string}`
  readonly caption: string
  /** What people see, if it is not in the order of the columns. */
  readonly cells?: SubjectColumns<Row>
  /** The filters that differ from those of programs. */
  readonly filters?: Filters
  /** The filters that have a field, in their order; by default those with a label. */
  readonly fields?: readonly (keyof Of & string)[]
  /** Many filters, which are folded. */
  readonly isFolded?: true
  /** Why somebody looks patients up here. */
  readonly purpose?: AdministrationPurpose
  /** The label of the search, if there is a filter `text`. */
  readonly search?: string
  /** Why there are no rows, or none with this text. */
  readonly notFound: ListExplanation
  /** Why no row meets the filters. */
  readonly noMatch?: string
  /** Why a page is empty that others follow. */
  readonly notYetFound?: ListExplanation
  readonly unknown?: UnknownWords
  readonly done?: Readonly<Record<string, string>>
  /** The link to the next page. */
  readonly next?: string
  actions?(request: AdminRequest, view: ShownList<Of>): AdminPage['actions']
  /** What can be done with a row. */
  renderAction?(row: Row, request: AdminRequest): Html
  complete?(request: AdminRequest, view: ShownList<Of>, items: readonly Row[]): Promise<MoreOfList<Row>>
}

/** What a page says about filters that name nobody who is known. Without it, the page shows nothing. */
export interface UnknownWords {
  readonly title: string
  readonly patient: string
  readonly misspelt: string
  /** A patient who could not be looked up. */
  readonly unsure: string
}

/** What a page shows of a list. */
export interface ShownList<Of extends Filters = Filters> {
  readonly wanted: Wanted<Of>
  readonly meant: Meant<Of>
  readonly patients: MeantPatients | undefined
  /** Whether older rows are shown. */
  readonly isContinued: boolean
  /** The path of the page with its filters, some replaced, by their names in the URL. */
  buildPath(filters?: Readonly<Record<string, string>>): string
}

/** The rows with what else the page needs, and what is beside them. */
export interface MoreOfList<Row> {
  readonly items?: readonly Row[]
  readonly above?: Html | false | undefined
  readonly between?: Html | false | undefined
  readonly below?: Html | false | undefined
  /** Instead of the reason why there are none. */
  readonly none?: Html | false | undefined
}

/** A list of administration. Its endpoint, page, file and command, with their filters, follow from it. */
export interface List<Row, Of extends Filters = Filters> {
  readonly columns: SubjectColumns<Row>
  readonly filters: Of
  /** The tabs of the page. */
  readonly states?: States<Of>
  /** Its reading is recorded, with the filters as these properties. */
  readonly recorded?: { readonly operation: AdminOperation; describe(opened: Opened<Of>): Properties }
  read(admin: Admin, meant: Meant<Of> & PageRequest): Promise<ListPage<Row>>
  /** Rows of another kind after the last page, and their name in JSON. */
  readonly others?: {
    readonly name: string
    readonly columns: SubjectColumns<Row>
    read(admin: Admin, meant: Meant<Of>): Promise<readonly Row[]>
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
  readonly page?: ListPageWords<Row, Of>
  /** A download, which is recorded: a list of users says who may be attacked. */
  readonly csv?: {
    readonly path: `/${string}.csv`
    /** The name of the file, by default the end of the path. */
    readonly file?: string
    readonly operation: AdminOperation
    readonly target?: string
  }
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

/** The filters of a list, and `state`. */
export function listFilters<Row>({ filters, states }: Pick<List<Row>, 'filters' | 'states'>): Filters {
  if (!states) return filters
  const about = 'A part of the list, whose conditions other filters override.'
  const schema = OneOf(Object.keys(states))
  return { state: { schema, about }, ...filters }
}

/** A list with what the filters of a request mean. */
export interface Opened<Of extends Filters = Filters> {
  readonly meant: Meant<Of>
  /** Who is not known. */
  readonly unknown: readonly Fault[]
}

/** Finds what the filters mean. The conditions of a state give way to those of the request. */
export async function openList<Row>(
  { states, filters }: Pick<List<Row>, 'states' | 'filters'>,
  admin: Pick<Admin, 'store' | 'actor'>,
  { state, ...wanted }: Wanted,
): Promise<Opened | AdminFailure> {
  const meant = new Map<string, unknown>()
  const unknown: Fault[] = []
  for (const [name, value] of Object.entries({ ...findState(states, state)?.filter, ...wanted })) {
    const found = value === undefined ? undefined : await filters[name]?.find?.(admin, String(value))
    if (isFailure(found)) return found
    meant.set(name, found ? found.found : value)
    unknown.push(...(found?.unknown ? [found.unknown] : []))
  }
  return { meant: Object.fromEntries(meant), unknown }
}

/** Records that a list is read, if that is recorded. */
export async function recordReading<Row>(
  { recorded }: List<Row>,
  admin: Admin,
  opened: Opened,
): Promise<AdminFailure | undefined> {
  if (!recorded) return undefined
  return recordAction(admin, { operation: recorded.operation, after: recorded.describe(opened) })
}

/** Reads a page of a list for a program or a file, which would take an empty page for one without rows. */
export async function readList<Row>(
  list: List<Row>,
  admin: Admin,
  { after, limit, ...wanted }: Wanted & PageRequest,
): Promise<ListPage<Row> | AdminFailure> {
  const opened = await openList(list, admin, wanted)
  if (isFailure(opened)) return opened
  const refused = await recordReading(list, admin, opened)
  if (refused) return refused
  const page = await list.read(admin, { ...opened.meant, after, limit })
  return refuseUnknown(opened, page) ?? page
}

/** Somebody who reads "no rows" must not think that a known user has none. */
export function refuseUnknown(
  { unknown }: Opened,
  { items, next }: ListPage<unknown>,
): AdminFailure | undefined {
  return unknown.length > 0 && items.length === 0 && next === undefined
    ? failAdmin('filter-unknown', { faults: unknown })
    : undefined
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
