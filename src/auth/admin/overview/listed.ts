import { isFailure, shortenList } from '../../../core/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { MANY_WRONG_CODES, UNUSED_DAYS } from '../accounts/user-filters.ts'
import { ALL_USERS } from '../accounts/user-list.ts'
import type { UserDescription } from '../accounts/users.ts'
import { CLIENTS } from '../apps/client-list.ts'
import type { Admin } from '../base/action.ts'
import type { Wanted } from '../subject/filters.ts'
import { buildListPath, countRows, type List, readList } from '../subject/list.ts'
import type { Matter } from './matter.ts'

/** Rows of a list that need attention. The page of its link shows the rows that it counts. */
interface ListedMatter<Row> {
  readonly code: string
  readonly list: List<Row>
  /** The rows, by the filters of the list. */
  readonly wanted: Wanted
  /** It does not matter on loopback. */
  readonly isOffLoopback?: true
  getName(row: Row): string
  describe(count: number, names: string): string
}

type Find = (admin: Admin) => Promise<readonly Matter[]>

function defineListed<Row>(matter: ListedMatter<Row>): Find {
  const { code, list, wanted, isOffLoopback, getName, describe } = matter
  return async admin => {
    if (isOffLoopback && admin.rules.onLoopback) return []
    const page = await readList(list, admin, { ...wanted, limit: LIMITS.adminPage })
    if (isFailure(page)) throw new Error(`Cannot read the list of ${code}: ${page.text}`)
    const { items, next } = page
    const all = next === undefined ? undefined : await countRows(list, admin, wanted)
    const count = all ?? items.length
    const text = describe(count, shortenList(items.map(getName)))
    return count === 0 ? [] : [{ code, text, path: buildListPath(list, wanted) }]
  }
}

function ofUsers(matter: Omit<ListedMatter<UserDescription>, 'list' | 'getName'>): Find {
  return defineListed({ ...matter, list: ALL_USERS, getName: user => user.username })
}

export const APPS: readonly Find[] = [
  defineListed({
    code: 'apps-unverified',
    list: CLIENTS,
    wanted: { state: 'unverified' },
    getName: client => client.name,
    describe: count => `${count === 1 ? '1 app waits' : `${count} apps wait`} for approval.`,
  }),
]

export const USERS: readonly Find[] = [
  ofUsers({
    code: 'administrators-one-factor',
    isOffLoopback: true,
    wanted: { state: 'without-second-factor', admin: true, has_password: true },
    describe: (count, names) =>
      `${count === 1 ? 'An administrator has' : `${count} administrators have`} no second factor: ${names}.`,
  }),
  ofUsers({
    code: 'auditors-open-records',
    isOffLoopback: true,
    wanted: { state: 'auditors', records: true, disabled: false },
    describe: (count, names) =>
      `${count === 1 ? 'An auditor can' : `${count} auditors can`} open patient records: ${names}.`,
  }),
  ofUsers({
    code: 'users-wrong-codes',
    wanted: { wrong_codes: true },
    describe: (_, names) =>
      `More than ${MANY_WRONG_CODES} wrong codes or passkeys in the last 24 hours: ${names}. Somebody may know the password.`,
  }),
  ofUsers({
    code: 'users-locked',
    wanted: { state: 'locked' },
    describe: (count, names) =>
      `${count === 1 ? 'An account is' : `${count} accounts are`} locked after too many wrong passwords: ${names}.`,
  }),
  ofUsers({
    code: 'users-unused',
    wanted: { state: 'unused' },
    describe: count =>
      `Nobody has signed in to ${count === 1 ? 'an account' : `${count} accounts`} for ${UNUSED_DAYS} days.`,
  }),
]
