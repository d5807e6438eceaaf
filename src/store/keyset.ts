import { type SelectQueryBuilder, sql } from 'kysely'

/** Where a page ends: lists are sorted by a time and, for rows of the same time, by the id, both descending. */
export interface Position<Id = string> {
  readonly at: number
  readonly id: Id
}

/** As a client sends it back. */
export function formatPosition({ at, id }: Position<string | number>): string {
  return `${at}.${id}`
}

export function parsePosition(text: string | undefined): Position | undefined {
  const [, at, id] = /^(\d{1,15})\.(.{1,100})$/.exec(text ?? '') ?? []
  return at === undefined || id === undefined ? undefined : { at: Number(at), id }
}

/** The position in a list whose ids are numbers. */
export function parseNumberedPosition(text: string | undefined): Position<number> | undefined {
  const { at, id } = parsePosition(text) ?? {}
  return at === undefined || !/^\d{1,15}$/.test(id ?? '') ? undefined : { at, id: Number(id) }
}

/** Sorts a list by the columns of the time and the id, and continues it after a position. */
export function readAfter<Tables, From extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, From, Row>,
  position: Position | undefined,
  columns: readonly [at: string, id: string],
): SelectQueryBuilder<Tables, From, Row> {
  const at = sql.ref(columns[0])
  const id = sql.ref(columns[1])
  const sorted = query.orderBy(at, 'desc').orderBy(id, 'desc')
  return position ? sorted.where(sql<boolean>`(${at}, ${id}) < (${position.at}, ${position.id})`) : sorted
}

/** The rows of a page, and the last of them if others follow. */
export function cutPage<Row>(
  rows: readonly Row[],
  limit: number,
): { readonly shown: readonly Row[]; readonly last: Row | undefined } {
  const shown = rows.slice(0, limit)
  return { shown, last: rows.length > limit ? shown.at(-1) : undefined }
}
