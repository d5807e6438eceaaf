import { isFailure } from '../../../core/index.ts'
import type { Admin, AdminFailure } from '../base/action.ts'
import { tabulate, toJson } from './columns.ts'
import { type Filters, type List, listFilters, readPages, type Wanted } from './list.ts'

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
        const items: Row[] = []
        for await (const rows of readPages(list, admin, wanted)) {
          if (isFailure(rows)) return rows
          items.push(...rows)
        }
        const more = others ? await others.read(admin, wanted) : []
        if (isFailure(more)) return more
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
