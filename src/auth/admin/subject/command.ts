import { isFailure } from '../../../core/index.ts'
import { type Admin, AdminFailure } from '../base/action.ts'
import { tabulate, toJson } from './columns.ts'
import { readAll } from './export.ts'
import type { Filters, Wanted } from './filters.ts'
import { type List, listFilters, openList, refuseUnknown } from './list.ts'
import type { Subject } from './subject.ts'

export interface ListCommand extends NonNullable<List<never>['command']> {
  readonly filters: Filters
  /** All rows: as JSON, and as a table with its headings. */
  read(
    admin: Admin,
    wanted: Wanted,
  ): Promise<{ readonly json: object; readonly table: readonly (readonly string[])[] } | AdminFailure>
}

export function defineListCommand<Row>(list: List<Row>): readonly ListCommand[] {
  const { columns, command, others } = list
  if (!command) return []
  return [
    {
      ...command,
      filters: listFilters(list),
      async read(admin, wanted) {
        const opened = await openList(list, admin, wanted)
        if (isFailure(opened)) return opened
        const items: Row[] = []
        for await (const rows of readAll(list, admin, opened.meant)) items.push(...rows)
        const fault = refuseUnknown(opened, { items, next: undefined })
        if (fault) return fault
        const more = (await others?.read(admin, opened.meant)) ?? []
        return {
          json: {
            items: items.map(row => toJson(columns, row)),
            ...(others && { [others.name]: more.map(row => toJson(others.columns, row)) }),
          },
          table: tabulate(columns, [...items, ...more]),
        }
      },
    },
  ]
}

/** The command that prints one row. */
export interface ShowCommand {
  readonly name: string
  readonly noun: string
  readonly option: string
  /** The row as JSON. */
  read(admin: Admin, text: string): Promise<Readonly<Record<string, unknown>> | AdminFailure>
}

export function defineShowCommand<Row, Target, Changed, Listed>({
  name,
  command,
  pages,
}: Subject<Row, Target, Changed, Listed>): readonly ShowCommand[] {
  const { noun = name, option = 'id', find } = command ?? {}
  const columns = pages?.details?.columns
  if (!find || !columns) return []
  return [
    {
      name: `${name} show`,
      noun,
      option,
      async read(admin, text) {
        const row = await find(admin, text)
        return row instanceof AdminFailure ? row : toJson(columns, row)
      },
    },
  ]
}
