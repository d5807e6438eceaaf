import { Type } from 'typebox'
import { isFailure } from '../../../core/index.ts'
import { Time } from '../../../endpoint/index.ts'
import { cutPage, formatPosition, parsePosition, readAfter, type Store } from '../../../store/index.ts'
import { keepGoodLogins, type LoginRow, selectLogins } from '../../users/find-login.ts'
import { type SignIn as FoundSignIn, toSignIn } from '../../users/sign-ins.ts'
import { type Admin, type AdminFailure, failAdmin, type ListPage, type PageRequest } from '../base/action.ts'
import { USER_FILTER } from '../base/find-named.ts'
import { defineArea } from '../subject/area.ts'
import type { SubjectColumn, SubjectColumns } from '../subject/columns.ts'
import { defineList } from '../subject/list.ts'
import type { Subject } from '../subject/subject.ts'
import { endSignIn } from './change-sign-in.ts'
import { getUserOperation } from './user-operations.ts'
import type { UserDescription } from './users.ts'

/** A sign-in, and who signed in. */
export interface UserSignIn extends FoundSignIn {
  readonly userId: string
  readonly username: string
}

export interface SignInFilter extends PageRequest {
  readonly userIds?: readonly string[] | undefined
}

/** Rows that are read for a page. */
const READ_AT_ONCE = 1_000

/** Lists sign-ins that are still good, those that end last first. A page may have fewer than `limit`, and others may follow. */
export async function listSignIns(
  { store, rules, clock }: Pick<Admin, 'store' | 'rules' | 'clock'>,
  { after, limit, userIds }: SignInFilter,
): Promise<ListPage<UserSignIn>> {
  const rows = userIds?.length === 0 ? [] : await readLogins(store, userIds, after)
  const good = await keepGoodLogins(store.db, rules, rows, clock())
  const { shown, last = rows[READ_AT_ONCE - 1] } = cutPage(good, limit)
  return {
    items: shown.map(row => ({ ...toSignIn(row), userId: row.clinician_id, username: row.username })),
    next: last && formatPosition({ at: last.expires_at, id: last.id_hash }),
  }
}

function readLogins(
  { db }: Store,
  userIds: readonly string[] | undefined,
  after: string | undefined,
): Promise<LoginRow[]> {
  return selectLogins(db)
    .$if(userIds !== undefined, query => query.where('login.clinician_id', 'in', userIds ?? []))
    .$call(query => readAfter(query, parsePosition(after), ['login.expires_at', 'login.id_hash']))
    .limit(READ_AT_ONCE)
    .execute()
}

const END_SIGN_IN = getUserOperation('clinician', 'end-sign-in')

/** Ends a sign-in of anybody. */
export async function endSignInById(admin: Admin, id: string): Promise<UserDescription | AdminFailure> {
  const login = await admin.store.db
    .selectFrom('login')
    .select('clinician_id')
    .where('id_hash', '=', id)
    .executeTakeFirst()
  return login ? endSignIn(admin, { id: login.clinician_id }, id) : failAdmin('sign-in-unknown')
}

const ID: SubjectColumn<FoundSignIn> = {
  schema: Type.String(),
  about: 'Not a secret: it gives no access.',
  of: 'id',
  table: 'ID',
}

const USE: SubjectColumns<FoundSignIn> = {
  signed_in_at: { schema: Time, of: 'createdAt', page: 'Signed in', table: 'SIGNED IN' },
  last_used_at: { schema: Time, of: 'lastUsedAt', page: 'Last used', table: 'LAST USED' },
  expires_at: { schema: Time, of: 'endsAt', page: 'Ends by' },
  address: { schema: Type.Optional(Type.String()), of: 'address', table: 'ADDRESS' },
  browser: {
    schema: Type.Optional(Type.String()),
    about: 'For example `Firefox on Windows`.',
    of: 'browser',
    table: 'BROWSER',
  },
}

/** The sign-ins of one user. */
export const SIGN_IN_COLUMNS: SubjectColumns<FoundSignIn> = {
  from: { page: ['Browser', signIn => signIn.browser ?? 'Unknown'] },
  at: { page: ['Address', signIn => signIn.address ?? 'Unknown'] },
  id: ID,
  ...USE,
}

const FILTERS = {
  clinician_id: {
    ...USER_FILTER,
    help: 'Only sign-ins of this user: a username, a name, the id of an account or a FHIR user (Practitioner/1).',
  },
}

/** The browsers in which users are signed in. */
export const SIGN_INS = defineList<UserSignIn, typeof FILTERS>({
  columns: {
    id: ID,
    clinician_id: { schema: Type.String(), of: 'userId' },
    username: { schema: Type.String(), of: 'username', table: 'USER' },
    ...USE,
  },
  filters: FILTERS,
  read: (admin, { clinician_id: userIds, ...page }) => listSignIns(admin, { userIds, ...page }),
  api: {
    path: '/sign-ins',
    title: 'Browsers in which users are signed in now, those that end latest come first',
    description: 'Of everybody, or of a user. A page may have fewer items than `limit`.',
  },
  command: {
    name: 'sign-in list',
    nouns: 'sign-ins',
    about: 'Prints the browsers in which users are signed in now. Those that end latest come first.',
    more: 'To end one: sign-in end <id>',
    none: 'Nobody is signed in.',
  },
})

const SIGN_IN: Subject<never, string, { readonly id: string; readonly username: string }, UserSignIn> = {
  name: 'sign-in',
  lists: [SIGN_INS],
  operations: {
    end: {
      signIn: END_SIGN_IN.signIn,
      operation: END_SIGN_IN,
      api: {
        method: 'DELETE',
        path: '',
        title: 'End a sign-in',
        description: 'Apps that were launched in it lose their access, except with `offline_access`.',
      },
      command: {
        done: ({ username }) => `Ended the sign-in of ${username}`,
        help: `
The user is signed out in this browser. Apps that were launched in it lose their access, except with offline_access.`,
      },
      async perform(admin, id) {
        const user = await endSignInById(admin, id)
        return isFailure(user) ? user : { id, username: user.username }
      },
    },
  },
  toTarget: id => id,
  api: { path: '/sign-ins/:id', describe: ({ id }) => ({ id }) },
  command: { noun: 'sign-in', option: 'id' },
}

export const SIGN_IN_AREA = defineArea(SIGN_IN)
