import { isFailure, shortenList } from '../../../core/index.ts'
import { LIMITS } from '../../base/limits.ts'
import type { AdminCall } from './endpoint.ts'
import type { Wanted } from './filters.ts'
import { buildListPath, countRows, type List, readList } from './list.ts'

/** What an administrator should look at, if there is something to say about it. */
export interface Attention {
  /** The same for the same matter. */
  readonly code: string
  /** The page below the area where something can be done about it, and the link to it. */
  readonly path: string
  readonly action: string
  find(call: Pick<AdminCall, 'admin' | 'context' | 'app'>): Promise<Note | undefined | readonly Note[]>
}

/** A text; of several, each with a name, which its code ends with. */
export type Note = string | { readonly text: string; readonly name?: string; readonly path?: string }

/** Rows of a list that need attention. The page of its link shows the rows that it counts. */
interface ListedMatter<Row> extends Pick<Attention, 'code' | 'action'> {
  readonly list: List<Row>
  /** The rows, by the filters of the list. */
  readonly wanted: Wanted
  /** It does not matter on loopback. */
  readonly isOffLoopback?: true
  getName(row: Row): string
  describe(count: number, names: string): string
}

export function noteRows<Row>(matter: ListedMatter<Row>): Attention {
  const { code, action, list, wanted, isOffLoopback, getName, describe } = matter
  return {
    code,
    action,
    path: buildListPath(list, wanted),
    async find({ admin }) {
      if (isOffLoopback && admin.rules.onLoopback) return undefined
      const page = await readList(list, admin, { ...wanted, limit: LIMITS.adminPage })
      if (isFailure(page)) throw new Error(`Cannot read the list of ${code}: ${page.text}`)
      const { items, next } = page
      const all = next === undefined ? undefined : await countRows(list, admin, wanted)
      const count = all ?? items.length
      return count === 0 ? undefined : describe(count, shortenList(items.map(getName)))
    },
  }
}
