import { Type } from 'typebox'
import { isFailure } from '../../../core/index.ts'
import { Members, PageOf } from '../../../endpoint/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { describeColumns, toJson } from './columns.ts'
import { type AdminEndpoint, defineEndpoint } from './endpoint.ts'
import { describeFilters } from './filters.ts'
import { type List, listFilters, readList } from './list.ts'

const PAGE_QUERY = {
  after: Type.Optional(
    Type.String({ maxLength: LIMITS.cursorCharacters, description: '`next` of the previous page.' }),
  ),
  limit: Type.Integer({ minimum: 1, maximum: LIMITS.adminPage, default: 50 }),
}

export function defineListEndpoint<Row>(list: List<Row>): readonly AdminEndpoint[] {
  const { api, columns, recorded } = list
  if (!api) return []
  const { isWhole, ...words } = api
  const Row = describeColumns(columns)
  const query = describeFilters(listFilters(list))
  return [
    defineEndpoint({
      method: 'GET',
      ...words,
      query: isWhole ? query : Members({ ...query.properties, ...PAGE_QUERY }),
      ...(recorded && { operation: recorded.operation }),
      result: isWhole ? Members({ items: Type.Array(Row) }) : PageOf(Row),
      async handle({ admin, query: { limit = LIMITS.adminPage, ...wanted } }) {
        const page = await readList(list, admin, { limit: Number(limit), ...wanted })
        if (isFailure(page)) return page
        const { items, next } = page
        return { items: items.map(row => toJson(columns, row)), ...(next !== undefined && { next }) }
      },
    }),
  ]
}
