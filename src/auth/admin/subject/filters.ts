import { type RawBuilder, sql } from 'kysely'
import { type Static, type TObject, type TSchema, Type } from 'typebox'
import { isFailure } from '../../../core/index.ts'
import { type InvalidMembers, Members, readMembers } from '../../../endpoint/index.ts'
import { type Fault, makeFault } from '../../base/fault.ts'
import { type Admin, type AdminFailure, failAdmin } from '../base/action.ts'
import { describeSchema } from './columns.ts'

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
  /** What its text names. The page suggests users and apps, and finds patients by their names too. */
  readonly names?: 'user' | 'app' | 'patient'
  /** Finds what its text means. */
  find?(admin: Pick<Admin, 'store' | 'actor'>, text: string): Promise<Found<unknown> | AdminFailure>
  /** The condition for the rows of a table. */
  where?(value: unknown, context: FilterContext): RawBuilder<boolean>
}

/** What a text means. `unknown`: it names nobody who is known, but rows may contain it. */
export interface Found<Value> {
  readonly found: Value
  readonly unknown?: Fault | undefined
}

type FilterContext = Pick<Admin, 'clock' | 'rules'>

export type Filters = Readonly<Record<string, Filter>>

/** The values of filters, by their names in the API. */
export type Wanted<Of extends Filters = Filters> = {
  readonly [Name in keyof Of]?: Static<Of[Name]['schema']> | undefined
}

/** What those values mean. */
export type Meant<Of extends Filters = Filters> = {
  readonly [Name in keyof Of]?: MeaningOf<Of[Name]> | undefined
}

type MeaningOf<One extends Filter> = One extends { find(...args: never[]): Promise<infer Result> }
  ? Extract<Result, Found<unknown>>['found']
  : Static<One['schema']>

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

/** The filters as members of a query, by the names of the API. */
export function describeFilters(filters: Filters): TObject {
  const members = Object.entries(filters).map(([name, { schema, about }]) => [
    name,
    Type.Optional(describeSchema(schema, about)),
  ])
  return Members(Object.fromEntries(members))
}

/** A filter that is not known, or whose value is not: a list without it would be taken for the whole. */
export interface FilterFault {
  /** As in the URL, or as the option. */
  readonly name: string
  readonly isUnknown: boolean
  readonly fault: Fault
}

/** Reads the filters of a URL or of a command, by the names that they have there. */
export function readFilters(
  filters: Filters,
  sent: Readonly<Record<string, unknown>>,
  by: 'name' | 'option',
): { readonly wanted: Wanted; readonly faults: readonly FilterFault[] } {
  const byName = new Map(
    Object.entries(filters).map(([key, filter]) => [filter[by] ?? filter.name ?? key, { key, filter }]),
  )
  const schema = describeFilters(Object.fromEntries([...byName].map(([name, { filter }]) => [name, filter])))
  const read: unknown = readMembers(schema, sent, { isText: true })
  if (!isFailure<unknown, InvalidMembers>(read)) {
    const wanted = Object.entries(read ?? {}).map(([name, value]) => [byName.get(name)?.key, value])
    return { wanted: Object.fromEntries(wanted), faults: [] }
  }
  const known = [...byName.keys()].join(', ')
  const names = known === '' ? makeFault('filters-none') : makeFault('filters-known', { known })
  const faults = read.faults.map(({ kind, name, text: expected }) => {
    const isUnknown = kind === 'unknown'
    return { name, isUnknown, fault: isUnknown ? names : makeFault('not-as-expected', { expected }) }
  })
  return { wanted: {}, faults }
}

/** Of a page or a file. */
export function refuseFilters(faults: readonly FilterFault[]): AdminFailure {
  return failAdmin('filters-invalid', {
    faults: faults.map(({ name, isUnknown, fault }) =>
      makeFault(isUnknown ? 'filter-not-known' : 'filter-invalid', { name, fault }),
    ),
  })
}
